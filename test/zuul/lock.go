package zuul

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-zookeeper/zk"
)

// contender matches kazoo's lock nodes: the mark, a dash perhaps, the sequence.
var contender = regexp.MustCompile(`__lock__-?(\d{10})$`)

// lock waits for the lock at dir and returns the path of our contender.
func (c *Client) lock(ctx context.Context, dir string) (string, error) {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails
	if _, err := c.conn.Create(dir, []byte{}, 0, zk.WorldACL(zk.PermAll)); err != nil && !errors.Is(err, zk.ErrNodeExists) {
		return "", gone("lock", dir, err)
	}
	own, err := c.conn.Create(dir+"/"+hex.EncodeToString(bits[:])+"__lock__", []byte(c.system),
		zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return "", gone("lock", dir, err)
	}
	for {
		ahead, err := c.ahead(dir, own)
		if err != nil {
			return "", err
		}
		if ahead == "" {
			return own, nil
		}
		exists, _, changed, err := c.conn.ExistsW(dir + "/" + ahead)
		if err != nil {
			return "", gone("lock", dir, err)
		}
		if !exists {
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			_ = c.conn.Delete(own, -1) // it goes with the session at the latest
			return "", fmt.Errorf("lock %s: %w", dir, context.Cause(ctx))
		}
	}
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
	if err := c.conn.Delete(own, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
		return fmt.Errorf("unlock %s: %w", own, err)
	}
	return nil
}
