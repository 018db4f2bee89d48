package zuul

import (
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"
)

// Lost tells whether the session that Dial began is over, and with it every lock
// that it held. The connection goes on with another one.
func (c *Client) Lost() bool { return c.conn.SessionID() != c.session }

// CleanUp deletes the requests of this system, as a Zuul does that has started
// again and knows none of them.
func (c *Client) CleanUp() error {
	ids, _, err := c.conn.Children(c.path("/requests"))
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	for _, id := range ids {
		r, err := c.read(c.path("/requests/%s", id))
		if errors.Is(err, ErrGone) {
			continue
		}
		if err == nil && r.text("requestor") == c.system {
			err = c.Cancel(id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
