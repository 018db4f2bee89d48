package zookeeper

import (
	"slices"
	"time"
)

// crown makes s the leader of all that reach it, in a new epoch.
func (c *Cluster) crown(s *server) {
	c.round++
	c.leader = s
	if len(c.servers) > 1 {
		c.epoch++
		c.zxid = c.epoch << 32
	}
	for _, one := range c.servers {
		if one.up && one.isolated == s.isolated {
			c.admit(one)
		}
	}
	s.leads = true
	for _, one := range c.sessions {
		c.heard(one)
	}
	c.healed()
}

// admit has a server serve, once it has caught up.
func (c *Cluster) admit(s *server) {
	for c.behind(s) {
		s.step(c)
	}
	s.tree.zxid = max(s.tree.zxid, c.zxid)
	s.serving, s.epoch = true, c.epoch
}

// dismiss ends what a server does for clients: it is no part of a quorum any more.
func (c *Cluster) dismiss(s *server) {
	s.serving, s.leads = false, false
	s.stint++
	s.waiting, s.syncs = nil, nil
	clear(s.touched)
	for _, cn := range slices.Clone(s.conns) {
		cn.queue = nil
		c.hangUp(cn)
	}
}

// elect finds a leader after some time, when there is a majority for one. Who serves
// until then stops doing so.
func (c *Cluster) elect(after time.Duration, not *server) {
	c.round++
	round := c.round
	c.after(after, func() {
		if c.round != round {
			return
		}
		c.leader = nil
		var able []*server
		for _, s := range c.servers {
			if s.up && !s.isolated {
				c.dismiss(s)
				able = append(able, s)
			}
		}
		if len(able) <= len(c.servers)/2 {
			return
		}
		c.after(c.ticks(), func() {
			able = slices.DeleteFunc(able, func(s *server) bool { return !s.up || s.isolated })
			if c.round != round || len(able) <= len(c.servers)/2 {
				return
			}
			if i := slices.Index(able, not); i >= 0 && len(able) > 1 {
				able = slices.Delete(able, i, i+1)
			}
			c.crown(able[c.rng.IntN(len(able))])
		})
	})
}

// ticks is up to three of them.
func (c *Cluster) ticks() time.Duration { return 1 + time.Duration(c.rng.Int64N(int64(3*c.opts.Tick))) }

// limit is how long a server without its leader, or a leader without a quorum, goes on.
func (c *Cluster) limit() time.Duration { return time.Duration(c.opts.SyncLimit) * c.opts.Tick }

// lost is called when s is no more to be reached: the others elect if it has led them, and
// a leader who has lost its quorum stops after a while.
func (c *Cluster) lost(s *server) {
	switch {
	case s == c.leader:
		c.elect(time.Duration(c.rng.Int64N(int64(c.limit())))+1, s)
	case c.leader != nil && !c.quorum(c.leader):
		c.elect(c.limit(), nil)
	}
}

// rejoin is called when s can be reached again.
func (c *Cluster) rejoin(s *server) {
	switch {
	case c.leader == nil || !c.leader.up || c.leader.isolated || s == c.leader && !s.serving:
		c.elect(1, nil)
	case s.serving && s.epoch == c.epoch && s.leads == (s == c.leader): // before anybody has noticed
		c.round++
		for _, one := range c.servers {
			c.goOn(one)
		}
	default:
		c.dismiss(s)
		c.after(c.ticks(), func() {
			if s.up && !s.isolated && c.leader != nil && c.quorum(c.leader) {
				c.admit(s)
			}
		})
	}
}

// goOn sends what waited for a leader, and applies what it has committed meanwhile.
func (c *Cluster) goOn(s *server) {
	waiting := s.waiting
	s.waiting = nil
	for _, q := range waiting {
		c.propose(q)
	}
	if s != c.leader && c.leading(s) != nil {
		s.follow(c)
	}
}
