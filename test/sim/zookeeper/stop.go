package zookeeper

// Fate is what becomes of a request.
type Fate int

// The fates.
const (
	// Done: it is done, as ever.
	Done Fate = iota
	// Refused: it is not done, and answered as if rights were lacking.
	Refused
	// Lost: it never arrives, and the connection ends.
	Lost
	// Unanswered: a write is done, and the connection ends instead of an answer; a read is lost.
	Unanswered
)

// stop is where a client's requests are stopped.
type stop struct {
	left      int
	meanwhile func()
	fate      Fate
}

// AtRequest stops the n-th request of a client from now on, pings and watches that are restored not counted, when it arrives.
// Once meanwhile, which may be nil, has returned, it has its fate. Other stops of the client are forgotten; n is 0 for none.
func (c *Cluster) AtRequest(client string, n int, meanwhile func(), fate Fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.stops, client)
	if n > 0 {
		c.stops[client] = &stop{n, meanwhile, fate}
	}
}

// Stopped reports whether a client's request was stopped, so that no stop is left.
func (c *Cluster) Stopped(client string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stops[client] == nil
}

// stopped takes a request that is to be stopped.
func (c *Cluster) stopped(cn *conn, q *request) bool {
	at := c.stops[cn.client]
	if at == nil || q.code == opPing || q.code == opSetWatches || q.code == opClose {
		return false
	}
	if at.left--; at.left > 0 {
		return false
	}
	delete(c.stops, cn.client)
	go func() {
		if at.meanwhile != nil {
			at.meanwhile()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.meet(cn, q, at.fate)
	}()
	return true
}

// meet has a request meet its fate.
func (c *Cluster) meet(cn *conn, q *request, fate Fate) {
	if cn.gone || c.closed {
		return
	}
	switch fate {
	case Refused:
		c.answer(cn, header(q.xid, cn.server.tree.zxid, errNoAuth))
		return
	case Lost:
		cn.reset()
		return
	case Unanswered:
		look := *q
		if look.prepare(); look.list == nil {
			cn.reset()
			return
		}
		c.drops[cn.client]++
	case Done:
	}
	cn.queue = append(cn.queue, q)
	c.work(cn)
}
