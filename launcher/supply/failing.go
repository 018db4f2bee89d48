package supply

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	// slowAnswer is how long a cloud may take to answer a call until the call counts as slow.
	slowAnswer = 30 * time.Second
	// slowAge is how long a call counts as slow after its last slow answer.
	slowAge = 10 * time.Minute
	// failingAge is how long a label whose launches fail is shown after its last launch.
	failingAge = 24 * time.Hour
)

// poolLabel is one label of one pool.
type poolLabel struct{ pool, label string }

// failure counts the launches for a label since one succeeded.
type failure struct {
	zkmodel.Failing
	shown    bool // a node was given up, or a second launch has failed
	specific bool // a failure that may be of the label: not transient
}

// slowCall is a call to the cloud that takes long.
type slowCall struct{ since, last time.Time }

// Launched counts how a launch for a label of a pool ended. gaveUp says that no further launch of
// the node follows. A success ends the failures of its label, and the transient failures of all labels.
func (c *Provider) Launched(pool, label string, err error, gaveUp bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := poolLabel{pool, label}
	if err == nil {
		c.works(key)
		return
	}
	now, f := zkmodel.EpochOf(c.now()), c.failures[key]
	if f.Failed == 0 {
		f.Since = now
	}
	f.Failed++
	f.Last, f.Error = now, zkmodel.BriefTrouble(err.Error())
	f.shown = f.shown || gaveUp || f.Failed > 1
	f.specific = f.specific || !errors.Is(err, providers.ErrTransient)
	if c.failures == nil {
		c.failures = map[poolLabel]failure{}
	}
	c.failures[key] = f
}

// works deletes the failures that a success of a label disproves. The caller holds the lock.
func (c *Provider) works(label poolLabel) {
	for key, f := range c.failures {
		if key == label || !f.specific {
			delete(c.failures, key)
		}
	}
}

// Recovered deletes the failures that nodes of other launchers disprove.
func (c *Provider) Recovered(nodes []*zkmodel.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) == 0 {
		return
	}
	for _, n := range nodes {
		if n.Broken != nil || n.State != zkmodel.NodeReady || n.Provider != c.cfg.Name {
			continue
		}
		for key, f := range c.failures {
			if n.StateTime > f.Last && (!f.specific || n.Pool == key.pool && slices.Contains(n.Type, key.label)) {
				delete(c.failures, key)
			}
		}
	}
}

// Timing notes that the cloud is asked something, until answered is called. A call that takes
// longer than slowAnswer is slow until a faster answer.
func (c *Provider) Timing(ctx context.Context, call string) (answered func()) {
	began := c.now()
	late := clock.AfterFunc(ctx, slowAnswer, func() {
		c.noteSlow(call, began)
		c.notify()
	})
	return func() {
		late.Stop()
		if c.now().Sub(began) >= slowAnswer {
			c.noteSlow(call, began)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.slow, call)
	}
}

func (c *Provider) noteSlow(call string, began time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.slow[call]
	if !known {
		s.since = began
	}
	s.last = c.now()
	if c.slow == nil {
		c.slow = map[string]slowCall{}
	}
	c.slow[call] = s
}

// fails adds to a view what fails and what is slow. The caller holds the lock.
func (c *Provider) fails(v *View) {
	now := c.now()
	for key, f := range c.failures {
		if now.Sub(f.Last.Time()) > failingAge {
			delete(c.failures, key)
		} else if f.shown {
			if v.Failing == nil {
				v.Failing = map[string]map[string]zkmodel.Failing{}
			}
			if v.Failing[key.pool] == nil {
				v.Failing[key.pool] = map[string]zkmodel.Failing{}
			}
			v.Failing[key.pool][key.label] = f.Failing
		}
	}
	for call, s := range c.slow {
		if now.Sub(s.last) > slowAge {
			delete(c.slow, call)
		} else if since := zkmodel.EpochOf(s.since); v.Slow == (zkmodel.Slow{}) || since < v.Slow.Since {
			v.Slow = zkmodel.Slow{Call: call, Since: since}
		}
	}
	switch {
	case v.Trouble == "":
		c.troubled = time.Time{}
	case c.troubled.IsZero():
		c.troubled = now
	}
	if v.Trouble != "" {
		v.TroubleSince = zkmodel.EpochOf(c.troubled)
	}
}
