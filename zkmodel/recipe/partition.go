package recipe

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/rendezvous"
)

// DefaultSettle is how long the members of a Partition must have been the same
// before shares are handed out anew.
const DefaultSettle = 3 * time.Second

// Partition divides work among the processes that are there. Each registers as a
// member; once the membership has been still for a while, each takes the shares
// that rendezvous hashing of their paths gives it. So members of many partitions
// with equal shares do not get all or none of them. A share is worked under its own
// lock, so that it is handed over, and never worked by two, even while members disagree.
type Partition struct {
	client *Client
	dir    string
	member string
	opts   PartitionOptions
	log    hclog.Logger

	mu     sync.Mutex
	shares []string
	wake   chan struct{}
}

// PartitionOptions change a Partition.
type PartitionOptions struct {
	// Settle is how long the membership must be still; 0 means DefaultSettle.
	Settle time.Duration
	// Logger receives what shares are taken and given up; nil discards it.
	Logger hclog.Logger
}

// NewPartition returns the partition in dir, created when missing, for the
// process called member, "<host>-<pid>" as a rule, which must be unique and hold no slash.
func NewPartition(c *Client, dir, member string, opts PartitionOptions) *Partition {
	p := &Partition{client: c, dir: dir, member: member, opts: opts, log: opts.Logger, wake: make(chan struct{}, 1)}
	if p.log == nil {
		p.log = hclog.NewNullLogger()
	}
	if p.opts.Settle == 0 {
		p.opts.Settle = DefaultSettle
	}
	return p
}

// SetShares says what there is to divide; the names must hold no slash. All
// members should know the same shares, but nothing breaks while they do not.
func (p *Partition) SetShares(shares []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares = slices.Clone(shares)
	select {
	case p.wake <- struct{}{}:
	default: // it is set already
	}
}

// Run takes part until ctx ends or the Client is closed. work is called, in a
// goroutine, for each share that is ours, once its lock is held; its context ends
// when the share is another's or the lock is lost. When work returns while the
// share is still ours, it is called again a second later.
func (p *Partition) Run(ctx context.Context, work func(ctx context.Context, share string, h *Held) error) error {
	return p.client.Serve(ctx, func(ctx context.Context, s *Session) error {
		return (&shareholder{
			Partition: p, session: s, work: work, held: map[string]*holding{}, known: map[string]bool{},
		}).run(ctx)
	})
}

// shareholder is a Partition in one session.
type shareholder struct {
	*Partition
	session *Session
	work    func(context.Context, string, *Held) error
	held    map[string]*holding
	known   map[string]bool // members whose node was read; true if they hash paths
}

// holding is a share that is ours, or was until a moment ago.
type holding struct {
	cancel context.CancelFunc
	done   chan struct{}
}

func (p *shareholder) run(ctx context.Context) error {
	members := p.dir + "/members"
	own := joinPath(members, p.member)
	if err := p.join(ctx, own); err != nil {
		return err
	}
	defer p.session.discard(own)
	defer p.keep(nil)
	for {
		n, err := p.session.childrenWatch(ctx, members)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		if !slices.Contains(n.children, p.member) { // somebody removed us, or all
			if err := p.join(ctx, own); err != nil {
				return err
			}
			continue
		}
		prefix, err := p.hashed(ctx, n.children)
		if err != nil {
			return err
		}
		if err := p.divide(ctx, n, prefix); err != nil {
			return err
		}
	}
}

// hashesPaths is what a member's node holds that hashes the paths of shares. Members
// of the first release have an empty node, and hash the names alone.
const hashesPaths = "paths"

// hashed is what members put before the names of shares to hash them: the folder
// that they lie in, or nothing while one of them knows no better. All must do alike,
// or a share may be worked by nobody.
func (p *shareholder) hashed(ctx context.Context, members []string) (prefix string, err error) {
	prefix = p.dir + "/"
	known := map[string]bool{}
	for _, member := range members {
		paths, seen := p.known[member]
		if !seen {
			data, _, err := p.session.Get(ctx, joinPath(p.dir+"/members", member))
			if errors.Is(err, ErrNoNode) {
				continue // it has left since, of which the watch tells
			}
			if err != nil {
				return "", err
			}
			paths = len(data) > 0
		}
		if known[member] = paths; !paths {
			prefix = ""
		}
	}
	p.known = known // of those that have left nothing is kept
	return prefix, nil
}

// join registers us. If ctx ends while that is under way, our node is removed as soon as it is known to exist: shares would fall
// to it as long as the session lives, and nobody would work them.
func (p *shareholder) join(ctx context.Context, own string) error {
	_, err := runDetached(ctx, p.session, "join", own,
		func() (string, error) { return own, p.register(own) }, p.session.discard)
	return err
}

// register makes our node; one of a session of ours that has ended is replaced.
func (p *shareholder) register(own string) error {
	ctx := p.session.ctx
	for {
		_, err := p.session.Create(ctx, own, []byte(hashesPaths), Ephemeral)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrNoNode):
			dir, _ := splitPath(own)
			if err := p.session.EnsurePath(ctx, dir); err != nil {
				return err
			}
		case errors.Is(err, ErrNodeExists):
			stat, exists, err := p.session.Exists(ctx, own)
			if err != nil || exists && stat.EphemeralOwner == p.session.ID() {
				return err
			}
			if err := p.session.deleteSurely(ctx, own); err != nil {
				return err
			}
		case !errors.Is(err, ErrConnectionLost):
			return err
		}
	}
}

// divide hands out shares, hashed with prefix, once the members in n have been the
// same for the settling time, and returns when they change.
func (p *shareholder) divide(ctx context.Context, n node, prefix string) error {
	settled := p.session.Clock().NewTimer(p.opts.Settle)
	defer settled.Stop()
	still := false
	for {
		select {
		case <-n.watch:
			return nil
		case <-settled.C:
			still = true
		case <-p.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if still {
			ours := p.ours(n.children, prefix)
			p.keep(ours)
			p.take(ctx, ours)
		}
	}
}

// ours returns the shares that fall to us among members, hashed with prefix.
func (p *Partition) ours(members []string, prefix string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var ours []string
	for _, share := range p.shares {
		if Owner(members, prefix+share) == p.member {
			ours = append(ours, share)
		}
	}
	return ours
}

// keep gives up all shares but those, and waits until their work has ended.
func (p *shareholder) keep(shares []string) {
	var leaving []*holding
	for share, h := range p.held {
		if !slices.Contains(shares, share) {
			h.cancel()
			leaving = append(leaving, h)
			delete(p.held, share)
		}
	}
	for _, h := range leaving {
		<-h.done
	}
}

// take begins with those of shares that we do not have yet.
func (p *shareholder) take(ctx context.Context, shares []string) {
	for _, share := range shares {
		if p.held[share] != nil {
			continue
		}
		bound, cancel := context.WithCancel(ctx)
		h := &holding{cancel: cancel, done: make(chan struct{})}
		p.held[share] = h
		go func() {
			defer close(h.done)
			defer cancel()
			p.hold(bound, share)
		}()
	}
}

// hold works share, each time under its lock, until ctx ends.
func (p *shareholder) hold(ctx context.Context, share string) {
	lock := NewLock(p.session, p.dir+"/locks/"+share, p.member, EnsureParents())
	for ctx.Err() == nil {
		held, err := lock.Acquire(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.log.Warn("Share cannot be taken; it is tried again", "share", share, "error", err)
				waitFor(ctx, p.session.Clock(), time.Second)
			}
			continue
		}
		p.log.Debug("Share taken", "share", share)
		bound, cancel := held.Bind(ctx)
		err = p.work(bound, share, held)
		cancel()
		_ = held.Release(context.WithoutCancel(ctx)) // until the session ends
		if ctx.Err() == nil {
			p.log.Warn("Work on a share ended; it begins again", "share", share, "error", err)
			waitFor(ctx, p.session.Clock(), time.Second)
		}
	}
	p.log.Debug("Share given up", "share", share)
}

// waitFor returns after d, or when ctx ends, which the caller sees for itself.
func waitFor(ctx context.Context, c clock.Clock, d time.Duration) { _ = c.Sleep(ctx, d) }

// Owner is rendezvous.Owner: the member that share falls to.
func Owner(members []string, share string) string { return rendezvous.Owner(members, share) }
