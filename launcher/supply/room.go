package supply

// Want notes whether a request waits for room in the cloud, as far as its limits may
// be the reason.
func (c *Provider) Want(wanted bool) {
	c.mu.Lock()
	began := wanted && !c.wanted
	c.wanted = wanted
	c.mu.Unlock()
	if began {
		select {
		case c.hurry <- struct{}{}:
		default:
		}
	}
}

// Wants reports whether a request waits for room.
func (c *Provider) Wants() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wanted
}

// Hurried tells when a request begins to wait for room.
func (c *Provider) Hurried() <-chan struct{} { return c.hurry }
