package zookeeper

import (
	"maps"
	"slices"
	"time"
)

// Cut lets no packet pass between a client and servers (all, if none is named): what is
// sent waits in the network, and so does who dials.
func (c *Cluster) Cut(client string, servers ...int) { c.cut(client, servers, cut{true, true}) }

// CutUp is Cut for what a client sends: servers do not hear it, and it hears them.
func (c *Cluster) CutUp(client string, servers ...int) { c.cut(client, servers, cut{up: true}) }

// CutDown is Cut for what servers send.
func (c *Cluster) CutDown(client string, servers ...int) { c.cut(client, servers, cut{down: true}) }

// Heal ends what Cut, CutUp, CutDown, Slow and Double have done to a client.
func (c *Cluster) Heal(client string) {
	c.mu.Lock()
	delete(c.slow, client)
	delete(c.doubles, client)
	c.mu.Unlock()
	c.cut(client, nil, cut{})
}

func (c *Cluster) cut(client string, servers []int, how cut) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		if servers == nil || slices.Contains(servers, s.number) {
			c.cuts[link{client, s.number}] = how
		}
	}
	c.healed()
}

// Break ends the connections of a client, and loses what is on its way in them.
func (c *Cluster) Break(client string) {
	c.each(client, func(cn *conn) { cn.reset() })
}

func (c *Cluster) each(client string, f func(*conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.servers {
		for _, cn := range slices.Clone(s.conns) {
			if cn.client == client {
				f(cn)
			}
		}
	}
}

// Slow has answers and events come to a client that much later. Their order in one
// connection stays: ZooKeeper promises it, and only it.
func (c *Cluster) Slow(client string, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow[client] = d
}

// Double has each event come to a client twice: half of them once more right behind, and half up to later
// afterwards, when the client may have read again what it tells of, and watch anew. Nothing has changed then.
func (c *Cluster) Double(client string, later time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubles[client] = later
}

// DropAnswer has the next write of a client take effect, or fail; instead of its answer, the
// connection ends.
func (c *Cluster) DropAnswer(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drops[client]++
}

// Expire ends the sessions of a client, as if their time were over.
func (c *Cluster) Expire(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == nil || c.leading(c.leader) == nil {
		return
	}
	var list []*session
	for _, s := range c.sessions {
		if s.client == client {
			list = append(list, s)
		}
	}
	slices.SortFunc(list, func(a, b *session) int { return int(a.id&0xffffff - b.id&0xffffff) })
	for _, s := range list {
		c.expire(s)
	}
}

// Lag has a server apply what the others commit that much later: clients read the past of it.
func (c *Cluster) Lag(server int, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.servers[server-1].lag = d
}

// Leader is the number of the server that leads, 0 while none does.
func (c *Cluster) Leader() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leader == nil {
		return 0
	}
	return c.leader.number
}

// LeaderChange has the servers elect another leader. All connections end, as they do then.
func (c *Cluster) LeaderChange() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.elect(1, c.leader)
}

// Isolate cuts a server off from the others, but not from its clients. For a while it
// serves them what it knows; a leader is followed by another meanwhile.
func (c *Cluster) Isolate(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[server-1]
	if s.isolated || len(c.servers) == 1 {
		return
	}
	s.isolated = true
	stint := s.stint
	c.after(c.limit(), func() {
		if s.isolated && s.stint == stint {
			c.dismiss(s)
		}
	})
	c.lost(s)
}

// Join ends Isolate.
func (c *Cluster) Join(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.servers[server-1]; s.isolated {
		s.isolated = false
		c.rejoin(s)
	}
}

// Kill ends a server's process; what was committed is not lost.
func (c *Cluster) Kill(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.servers[server-1]
	if !s.up {
		return
	}
	for _, cn := range slices.Clone(s.conns) {
		cn.queue = nil
		cn.reset()
	}
	c.dismiss(s)
	s.up = false
	c.lost(s)
}

// Start starts a server that was killed.
func (c *Cluster) Start(server int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.servers[server-1]; !s.up {
		s.up = true
		c.rejoin(s)
	}
}

// Snapshot is a backup of the servers' files.
type Snapshot struct {
	tree     *tree
	sessions []session
}

// Snapshot takes one of the leader's.
func (c *Cluster) Snapshot() *Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.servers[0]
	for _, s := range c.servers {
		if s.next > newest.next {
			newest = s
		}
	}
	snap := &Snapshot{tree: newest.tree.clone()}
	for _, s := range c.sessions {
		snap.sessions = append(snap.sessions, *s)
	}
	slices.SortFunc(snap.sessions, func(a, b session) int { return int(a.id&0xffffff - b.id&0xffffff) })
	return snap
}

// Each calls f with each node of the snapshot, in the order of their paths, and the session whose it is, 0
// for none.
func (s *Snapshot) Each(f func(path string, data []byte, session int64)) {
	for _, path := range slices.Sorted(maps.Keys(s.tree.nodes)) {
		n := s.tree.nodes[path]
		f(path, n.data, max(n.owner, 0))
	}
}

// Restore stops all servers, puts a snapshot in the place of their files, and starts them.
// Transactions get numbers that there were before.
func (c *Cluster) Restore(snap *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		s.ended = true
	}
	clear(c.sessions)
	c.log, c.base = nil, 0
	for _, s := range c.servers {
		for _, cn := range slices.Clone(s.conns) {
			cn.queue = nil
			cn.reset()
		}
		c.dismiss(s)
		s.tree, s.next, s.up, s.isolated = snap.tree.clone(), 0, true, false
	}
	c.zxid, c.epoch = snap.tree.zxid, snap.tree.zxid>>32
	for _, old := range snap.sessions {
		s := old
		s.ended = false
		c.sessions[s.id] = &s
		c.heard(&s)
		c.watch(&s)
	}
	c.leader = nil
	c.elect(1, nil)
}
