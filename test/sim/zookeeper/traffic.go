package zookeeper

import "github.com/go-zookeeper/zk"

// Traffic is what clients and servers have sent each other, pings and what opens connections
// left out.
type Traffic struct {
	Requests int
	Bytes    int // of requests, answers and events
	Events   int
	Doubled  int // of the events, those that came a second time
}

// Traffic is that since the cluster began.
func (c *Cluster) Traffic() Traffic {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.traffic
}

// Fill makes nodes, on all servers at once, as if they had always been there: for large trees.
// Those above must exist. Nobody is told.
func (c *Cluster) Fill(n int, node func(i int) (path string, data []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	acl := zk.WorldACL(zk.PermAll)
	for i := range n {
		path, data := node(i)
		x := c.next(opCreate)
		x.codes, x.changes = []int32{0}, []change{{code: opCreate, path: path, data: data, acl: acl}}
		c.log = append(c.log, x)
		for _, s := range c.servers {
			for c.behind(s) {
				s.step(c)
			}
		}
		c.trim()
	}
}
