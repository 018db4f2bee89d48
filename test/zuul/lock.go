package zuul

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// withdrawPause is between two tries to withdraw from a lock.
const withdrawPause = 100 * time.Millisecond

// contender matches kazoo's lock nodes: the mark, a dash perhaps, the sequence.
var contender = regexp.MustCompile(`__lock__-?(\d{10})$`)

// lock waits for the lock at dir and returns the path of our contender.
func (c *Client) lock(ctx context.Context, dir string) (string, error) {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	if _, err := c.conn.Create(dir, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", gone("lock", dir, err)
	}
	prefix := dir + "/" + hex.EncodeToString(bits[:]) + "__lock__"
	own, err := c.conn.Create(prefix, []byte(c.system), zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		err = gone("lock", dir, err)
	} else {
		err = c.await(ctx, dir, own)
	}
	if err != nil {
		c.withdraw(dir, prefix)
		return "", err
	}
	return own, nil
}

// await returns when our contender is the first.
func (c *Client) await(ctx context.Context, dir, own string) error {
	for {
		ahead, err := c.ahead(dir, own)
		if err != nil || ahead == "" {
			return err
		}
		exists, _, changed, err := c.conn.ExistsW(dir + "/" + ahead)
		if err != nil {
			return gone("lock", dir, err)
		}
		if !exists {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("lock %s: %w", dir, context.Cause(ctx))
		}
	}
}

// withdraw removes our contender, if there is one, however long the servers are
// away: left behind it would hold the lock for as long as our session lives. It is
// false when the session is over, which takes the contender along.
func (c *Client) withdraw(dir, prefix string) bool {
	for ; !c.Lost() && !c.closed.Load(); <-time.After(withdrawPause) {
		if _, err := c.conn.Sync(dir); errors.Is(err, zk.ErrClosing) {
			return false
		} else if err != nil {
			continue
		}
		names, _, err := c.conn.Children(dir)
		for _, name := range names {
			if own := dir + "/" + name; err == nil && strings.HasPrefix(own, prefix) {
				err = c.conn.Delete(own, -1)
			}
		}
		if err == nil || errors.Is(err, zk.ErrNoNode) {
			return true
		}
	}
	return false
}

// ahead is the contender right before ours, "" when ours is the first.
func (c *Client) ahead(dir, own string) (string, error) {
	names, _, err := c.conn.Children(dir)
	if err != nil {
		return "", gone("lock", dir, err)
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !contender.MatchString(n) })
	slices.SortFunc(names, func(a, b string) int { return slices.Compare([]byte(a[len(a)-10:]), []byte(b[len(b)-10:])) })
	i := slices.Index(names, own[len(dir)+1:])
	switch {
	case i < 0:
		return "", fmt.Errorf("lock %s: our contender was taken away: %w", dir, ErrGone)
	case i == 0:
		return "", nil
	}
	return names[i-1], nil
}

// unlock gives a lock back. One that is gone is no error.
func (c *Client) unlock(own string) error {
	err := c.conn.Delete(own, -1)
	if err == nil || errors.Is(err, zk.ErrNoNode) || c.withdraw(path.Dir(own), own) {
		return nil
	}
	return fmt.Errorf("unlock %s: %w", own, err)
}
