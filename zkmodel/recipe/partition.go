package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/rendezvous"
)

// DefaultSettle is how long the members of a Partition must have been the same
// before they divide the shares.
const DefaultSettle = 3 * time.Second

// Partition divides shares of work evenly among the processes that can work them. Each process
// registers as a member of the partition, with the shares that it can work. Once the membership has
// been calm for a while, each member takes the shares that rendezvous.Spread gives it. A share is
// worked under its own lock, so two members never work it at the same time, even while they disagree.
//
// Earlier releases have a partition per share, in the share's folder. Each member registers there
// too. While a member of an earlier release is registered in a share's folder, all members divide this
// share as that release does, so that the share always has a member that works it.
type Partition struct {
	client *Client
	dir    string
	member string
	shares []string
	opts   PartitionOptions
	log    hclog.Logger
}

// PartitionOptions change a Partition.
type PartitionOptions struct {
	// Settle is how long the membership must be calm; 0 means DefaultSettle.
	Settle time.Duration
	// Logger receives which shares are taken and released; nil discards it.
	Logger hclog.Logger
}

// NewPartition returns the partition in dir, which is created if missing, for the process called
// member, which must be unique and contain no slash. shares are the folders below dir of the shares
// that the process can work.
func NewPartition(c *Client, dir, member string, shares []string, opts PartitionOptions) *Partition {
	p := &Partition{client: c, dir: dir, member: member, shares: shares, opts: opts, log: opts.Logger}
	if p.log == nil {
		p.log = hclog.NewNullLogger()
	}
	if p.opts.Settle == 0 {
		p.opts.Settle = DefaultSettle
	}
	return p
}

// Run takes part until ctx ends or the Client is closed. work is called, in a goroutine, for each
// share that falls to this member, once its lock is held; its context ends when the share falls to
// another member or the lock is lost. If work returns before that, it is called again a second later.
func (p *Partition) Run(ctx context.Context, work func(ctx context.Context, share string, h *Held) error) error {
	return p.client.Serve(ctx, func(ctx context.Context, s *Session) error {
		return (&shareholder{
			Partition: p, session: s, work: work, held: map[string]*holding{},
			known: map[string]map[string]string{}, changed: make(chan struct{}, 1),
		}).run(ctx)
	})
}

// shareholder is a Partition in one session.
type shareholder struct {
	*Partition
	session *Session
	work    func(context.Context, string, *Held) error
	held    map[string]*holding
	changed chan struct{} // known has changed

	mu    sync.Mutex
	known map[string]map[string]string // by folder: the data of each member
}

// holding is a share that is ours, or was until a moment ago.
type holding struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// What the node of a member in a share's folder contains. Members of the first release have an empty
// node and hash the name of the share alone; later ones hash its path; today's spread all shares.
const (
	dutyName  = "duty" // the name of the one share of each such folder
	namesHash = ""
	spreads   = "spread"
)

func (p *shareholder) run(ctx context.Context) error {
	shares, err := json.Marshal(p.shares)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	folders := map[string]string{p.dir: string(shares)}
	for _, share := range p.shares {
		folders[joinPath(p.dir, share)] = spreads
	}
	for folder, data := range folders {
		group.Go(func() error { return p.follow(ctx, folder+"/members", data) })
	}
	group.Go(func() error {
		defer p.keep(nil)
		return p.divide(ctx, len(folders))
	})
	err = group.Wait()
	for folder := range folders { // after the work has ended
		p.session.discard(joinPath(folder+"/members", p.member))
	}
	return err
}

// follow registers this member in a folder, and keeps its members known until ctx ends.
func (p *shareholder) follow(ctx context.Context, folder, data string) error {
	own := joinPath(folder, p.member)
	for {
		n, err := p.session.childrenWatch(ctx, folder)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
		members, err := p.read(ctx, folder, n.children)
		if err != nil {
			return err
		}
		if now, registered := members[p.member]; !registered || now != data { // or another process removed the node
			if err := p.join(ctx, own, data); err != nil {
				return err
			}
			continue
		}
		p.publish(folder, members)
		select {
		case <-n.watch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// read returns the data of members. The watch reports those that have left since.
func (p *shareholder) read(ctx context.Context, folder string, names []string) (map[string]string, error) {
	members := map[string]string{}
	for _, name := range names {
		data, _, err := p.session.Get(ctx, joinPath(folder, name))
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
		if err == nil {
			members[name] = string(data)
		}
	}
	return members, nil
}

func (p *shareholder) publish(folder string, members map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[folder] = members
	select {
	case p.changed <- struct{}{}:
	default: // divide has not seen the last change yet
	}
}

// join registers us. If ctx ends while that is under way, our node is removed as soon as it is known to exist: shares would fall
// to it as long as the session lives, and nobody would work them.
func (p *shareholder) join(ctx context.Context, own, data string) error {
	_, err := runDetached(ctx, p.session, "join", own,
		func() (string, error) { return own, p.register(own, data) }, p.session.discard)
	return err
}

// register creates our node, and replaces one of an earlier session or an earlier run.
func (p *shareholder) register(own, data string) error {
	ctx := p.session.ctx
	for {
		_, err := p.session.Create(ctx, own, []byte(data), Ephemeral)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrNoNode):
			dir, _ := splitPath(own)
			if err := p.session.EnsurePath(ctx, dir); err != nil {
				return err
			}
		case errors.Is(err, ErrNodeExists):
			was, stat, err := p.session.Get(ctx, own)
			if err == nil && stat.EphemeralOwner == p.session.ID() && string(was) == data {
				return nil
			}
			if err != nil && !errors.Is(err, ErrNoNode) {
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

// divide takes and releases shares whenever the members of all folders have been the same for the
// settling time.
func (p *shareholder) divide(ctx context.Context, folders int) error {
	for {
		settled := p.session.Clock().NewTimer(p.opts.Settle)
		select {
		case <-p.changed:
			settled.Stop()
			continue
		case <-ctx.Done():
			settled.Stop()
			return context.Cause(ctx)
		case <-settled.C:
		}
		if ours, complete := p.ours(folders); complete {
			p.keep(ours)
			p.take(ctx, ours)
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ours returns the shares that fall to this member; complete is false until all folders are known.
func (p *shareholder) ours(folders int) (ours []string, complete bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.known) < folders {
		return nil, false
	}
	able := map[string][]string{}
	for member, data := range p.known[p.dir+"/members"] {
		var shares []string
		if json.Unmarshal([]byte(data), &shares) == nil { // another program's node takes no shares
			able[member] = shares
		}
	}
	owners := rendezvous.Spread(able)
	for _, share := range p.shares {
		folder := joinPath(p.dir, share)
		owner, earlier := earlierOwner(folder, p.known[folder+"/members"])
		if !earlier {
			owner = owners[share]
		}
		if owner == p.member {
			ours = append(ours, share)
		}
	}
	return ours, true
}

// earlierOwner returns the member that a share falls to while a member of an earlier release is
// registered in its folder, as that release decides.
func earlierOwner(folder string, members map[string]string) (owner string, earlier bool) {
	names, prefix := slices.Sorted(maps.Keys(members)), folder+"/"
	for _, data := range members {
		earlier = earlier || data != spreads
		if data == namesHash {
			prefix = ""
		}
	}
	return Owner(names, prefix+dutyName), earlier
}

// keep releases all shares but those, and waits until their work has ended.
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
	lock := NewLock(p.session, joinPath(p.dir, share)+"/locks/"+dutyName, p.member, EnsureParents())
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
