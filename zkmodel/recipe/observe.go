package recipe

import (
	"errors"
	"sync/atomic"
	"time"

	"poolkeeper/configs/clock"
)

// Observer is told of each request that was answered: whether it writes, and how long that
// took. It is called by many goroutines, and must not block.
type Observer func(writes bool, took time.Duration)

// SetObserver sets who is told of requests made through this Client; nil, as at first, is nobody.
func (c *Client) SetObserver(o Observer) {
	if o == nil {
		c.cfg.observer.Store(nil)
		return
	}
	c.cfg.observer.Store(&o)
}

// ClientState is how a Client stands with ZooKeeper.
type ClientState struct {
	Alive    bool          // there is a session
	Left     time.Duration // see Session.Left; 0 without a session
	Sessions int64         // that have begun
}

// State is how the Client stands at the moment.
func (c *Client) State() ClientState {
	c.mu.Lock()
	s, begun := c.session, c.begun
	c.mu.Unlock()
	state := ClientState{Sessions: begun}
	if s != nil && s.ctx.Err() == nil {
		state.Alive, state.Left = true, s.Left()
	}
	return state
}

// observed runs f, and tells the observer, if there is one, how long that took. What no
// server has answered, or what was never sent, is not told: it says how long a connection
// was dead, not how fast servers are.
func observed[T any](c clock.Clock, observer *atomic.Pointer[Observer], verb string, f func() (T, error)) (T, error) {
	o := observer.Load()
	if o == nil {
		return f()
	}
	began := c.Now()
	value, err := f()
	if unanswered(err) {
		return value, err
	}
	switch verb {
	case "create", "set", "delete", "multi":
		(*o)(true, c.Since(began))
	default:
		(*o)(false, c.Since(began))
	}
	return value, err
}

// unanswered reports whether an error of the client library is no answer of a server.
func unanswered(err error) bool {
	err = translate("", "", err)
	for _, none := range []error{ErrConnectionLost, ErrSessionLost, ErrTooLarge, ErrBadPath} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}
