package aws

import (
	"context"
	"maps"
	"sync"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// roster is the list of the provider's instances, shared by all who wait for one: a hundred
// launches cost as many calls as one.
type roster struct {
	list func(context.Context) (map[string]types.Instance, error)

	mu      sync.Mutex
	latest  *census // the last one that succeeded
	running *census
}

// census is one reading of the list.
type census struct {
	began     time.Time
	done      chan struct{} // closed when instances or err are there
	instances map[string]types.Instance
	err       error
	ended     bool // err is that of the reader's own context
}

// since gives a list whose reading began at or after t. Who comes first reads it for all.
func (r *roster) since(ctx context.Context, t time.Time) (map[string]types.Instance, error) {
	for {
		c, mine := r.join(t, clock.Now(ctx))
		if mine {
			r.read(ctx, c)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		switch {
		case c.ended && !mine:
			continue // its reader was called off; we were not
		case c.err != nil:
			return nil, c.err
		case !c.began.Before(t):
			return c.instances, nil
		}
	}
}

// join gives a list that is new enough, or the one being read, or one that the caller must read.
func (r *roster) join(t, now time.Time) (c *census, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.latest != nil && !r.latest.began.Before(t) {
		return r.latest, false
	}
	if r.running != nil {
		return r.running, false
	}
	r.running = &census{began: now, done: make(chan struct{})}
	return r.running, true
}

// read reads the list into c.
func (r *roster) read(ctx context.Context, c *census) {
	c.instances, c.err = r.list(ctx)
	c.ended = c.err != nil && ctx.Err() != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running = nil
	if c.err == nil {
		r.latest = c
	}
	close(c.done)
}

// listInstances reads all instances that carry the provider's name, those that have ended a
// while ago among them. What was made a moment ago and is not shown yet is there, too.
func (p *Provider) listInstances(ctx context.Context) (map[string]types.Instance, error) {
	all := map[string]types.Instance{}
	pages := ec2.NewDescribeInstancesPaginator(p.account.ec2, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: sdk.String("tag:" + providers.MetaProvider), Values: []string{p.cfg.Name}}},
	})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list instances", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				id, err := idOf("an instance", r.Instances[i].InstanceId)
				if err != nil {
					return nil, p.named(ctx, "list instances", err)
				}
				all[id] = r.Instances[i]
			}
		}
	}
	p.fresh.complete(all, clock.Now(ctx))
	p.noteInterruptions(all)
	return all, nil
}

// fresh are the instances that this process made a moment ago: the service may not show them
// yet, nor what it was told of them.
type fresh struct {
	settle time.Duration
	mu     sync.Mutex
	made   map[string]newborn
	ended  map[string]bool
}

type newborn struct {
	instance types.Instance
	at       time.Time
}

// add notes an instance that was made.
func (f *fresh) add(i types.Instance, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made == nil {
		f.made = map[string]newborn{}
	}
	maps.DeleteFunc(f.made, func(_ string, n newborn) bool { return now.Sub(n.at) > f.settle })
	f.made[sdk.ToString(i.InstanceId)] = newborn{i, now}
}

// has reports whether an instance was made a moment ago.
func (f *fresh) has(id string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, ok := f.made[id]
	return ok && now.Sub(n.at) <= f.settle
}

// gone notes that an instance that was made a moment ago has ended: its token would give it again.
func (f *fresh) gone(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, id)
	if len(f.ended) > 10000 { // the older ones are told by when they were launched
		clear(f.ended)
	}
	if f.ended == nil {
		f.ended = map[string]bool{}
	}
	f.ended[id] = true
}

// isGone reports whether an instance has ended.
func (f *fresh) isGone(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended[id]
}

// forget notes that the service knows an instance.
func (f *fresh) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.made, id)
}

// complete adds to a list what it does not show yet.
func (f *fresh) complete(all map[string]types.Instance, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, n := range f.made {
		if _, shown := all[id]; !shown && now.Sub(n.at) <= f.settle {
			all[id] = n.instance
		}
	}
}

// spent are launches whose tokens may not be used again, with what makes them others. The zero value is ready.
// Without the note, as in another launcher, one more request is refused, and noted.
type spent struct {
	mu   sync.Mutex
	anew map[string]string
}

func (s *spent) of(launch string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.anew[launch]
}

func (s *spent) add(launch string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.anew == nil || len(s.anew) > 10000 {
		s.anew = map[string]string{}
	}
	s.anew[launch] = randomID()
	return s.anew[launch]
}

// hasEnded tells an instance that nobody can use again.
func hasEnded(i *types.Instance) bool {
	return stateOf(i) == types.InstanceStateNameTerminated
}

// down is why an instance cannot be used; "" for one that runs or starts.
func down(i *types.Instance) string {
	switch state := stateOf(i); state {
	case types.InstanceStateNamePending, types.InstanceStateNameRunning:
		return ""
	default:
		return "its instance is " + string(state)
	}
}

// isLeaving tells an instance that ends or has.
func isLeaving(i *types.Instance) bool {
	return hasEnded(i) || stateOf(i) == types.InstanceStateNameShuttingDown
}

func stateOf(i *types.Instance) types.InstanceStateName {
	if i.State == nil {
		return types.InstanceStateNamePending
	}
	return i.State.Name
}

// metadata are the tags of what is in an account.
func metadata(tags []types.Tag) map[string]string {
	meta := map[string]string{}
	for _, t := range tags {
		meta[sdk.ToString(t.Key)] = sdk.ToString(t.Value)
	}
	return meta
}
