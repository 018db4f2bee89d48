package zkmodel

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs/clock"
)

// shareDelay is how long what a daemon took or gave up waits to be told: much comes at
// once, and what is over in a moment need not be told at all.
const shareDelay = time.Second

// Process is a daemon's process as its component record tells of it: what it does for all
// at the moment (its shares: duties, elections that it has won, searches, waves that it
// drives), whether an operator has paused it, and which commands it takes. Any goroutine
// may use it. A nil one remembers nothing.
type Process struct {
	// ID names the process, whatever sessions it has; "" tells of none. Commands are those
	// that it takes. Both are set before the first use, and then stay.
	ID       string
	Commands Strings

	now     func() time.Time
	changed chan struct{}

	mu      sync.Mutex
	held    map[string]share
	paused  string
	refuses *Refusal
}

// share is one of them.
type share struct {
	since time.Time
	times int // that it is held: a new session may begin with it before the last has ended
}

// NewProcess makes one of a process without shares; now nil is the host's.
func NewProcess(now func() time.Time) *Process {
	if now == nil {
		now = clock.Clock{}.Now
	}
	return &Process{now: now, changed: make(chan struct{}, 1), held: map[string]share{}}
}

// ShareName is how records name what lies at a path below OwnRoot.
func ShareName(path string) string { return strings.TrimPrefix(path, OwnRoot+"/") }

// Hold notes that the share of a path is this daemon's, until the function that it
// returns is called.
func (p *Process) Hold(path string) (release func()) {
	if p == nil {
		return func() {}
	}
	name := ShareName(path)
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.held[name]
	if one.times++; one.times == 1 {
		one.since = p.now()
	}
	p.held[name] = one
	p.note()
	return sync.OnceFunc(func() { p.release(name) })
}

func (p *Process) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.held[name]
	if one.times--; one.times > 0 {
		p.held[name] = one
		return
	}
	delete(p.held, name)
	p.note()
}

// note wakes Follow. The caller holds the lock.
func (p *Process) note() {
	select {
	case p.changed <- struct{}{}:
	default: // it is awake
	}
}

// Held are the shares by name, with the time since when; nil for none.
func (p *Process) Held() map[string]Epoch {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.held) == 0 {
		return nil
	}
	held := map[string]Epoch{}
	for name, one := range p.held {
		held[name] = EpochOf(one.since)
	}
	return held
}

// Pause notes why an operator has this daemon take on nothing new; "" ends that.
func (p *Process) Pause(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = why
	p.note()
}

// Paused is why this daemon takes on nothing new, "" while it does.
func (p *Process) Paused() string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.paused
}

// Refuse records that the daemon does not use what its configuration file says; nil ends that.
func (p *Process) Refuse(r *Refusal) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses = r
	p.note()
}

// Refused returns what Refuse recorded.
func (p *Process) Refused() *Refusal {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refuses
}

// Describe has a component record of the daemon itself tell all this. What it says of
// being paused is the caller's to change, where there is more to say.
func (p *Process) Describe(c *Component) {
	if p == nil {
		return
	}
	c.Instance, c.Commands, c.Shares, c.Reason, c.Refused = p.ID, p.Commands, p.Held(), p.Paused(), p.Refused()
	if c.Reason != "" {
		c.State = ComponentPaused
	}
}

// Follow calls tell whenever what Describe says has changed, a moment later, until ctx
// ends. One goroutine at a time follows; at first nothing was told of shares and pauses.
func (p *Process) Follow(ctx context.Context, tell func()) {
	if p == nil {
		return
	}
	var told map[string]Epoch
	paused := ""
	var refused *Refusal
	for clock.Sleep(ctx, shareDelay) == nil {
		held, why, refusal := p.Held(), p.Paused(), p.Refused()
		if !maps.Equal(held, told) || why != paused || refusal != refused {
			told, paused, refused = held, why, refusal
			tell()
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
		}
	}
}
