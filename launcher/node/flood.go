package node

import (
	"errors"
	"net"
)

// scanBytes is how much a machine may say until its host key is known: a hundred
// times what a handshake takes.
const scanBytes = 256 << 10

// errFlood ends a connection on which a machine says more than that.
var errFlood = errors.New("it sends much, and no host key")

// frugal is a connection that reads so many bytes, and no more.
type frugal struct {
	net.Conn
	left int
}

// Read implements net.Conn.
func (c *frugal) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errFlood
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}
