package local

import (
	"context"
	"sync"
	"time"
)

// parking holds the conversations that began before the guests ran, until somebody
// watches: so no event is missed, and QEMU keeps them in order meanwhile. One that
// nobody asks for is closed after a while, for it keeps other processes out.
type parking struct {
	mu     sync.Mutex
	parked map[string]*parked
}

type parked struct {
	q     *qmp
	timer *time.Timer
}

// put parks a conversation, in place of what is there.
func (p *parking) put(id string, q *qmp) {
	p.drop(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parked == nil {
		p.parked = map[string]*parked{}
	}
	one := &parked{q: q}
	one.timer = time.AfterFunc(parkTime, func() { p.expire(id, one) })
	p.parked[id] = one
}

// take hands a conversation over; nil when there is none.
func (p *parking) take(id string) *qmp {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.parked[id]
	if one == nil {
		return nil
	}
	one.timer.Stop()
	delete(p.parked, id)
	return one.q
}

// expire closes a conversation that is still parked.
func (p *parking) expire(id string, one *parked) {
	p.mu.Lock()
	still := p.parked[id] == one
	if still {
		delete(p.parked, id)
	}
	p.mu.Unlock()
	if still {
		_ = one.q.close()
	}
}

// drop closes a conversation, if there is one.
func (p *parking) drop(id string) {
	if q := p.take(id); q != nil {
		_ = q.close()
	}
}

// close closes all.
func (p *parking) close() {
	p.mu.Lock()
	ids := make([]string, 0, len(p.parked))
	for id := range p.parked {
		ids = append(ids, id)
	}
	p.mu.Unlock()
	for _, id := range ids {
		p.drop(id)
	}
}

// unpark is the conversation about a guest's events: the one that began before it
// ran, or a new one.
func (p *Provider) unpark(ctx context.Context, id string) (*qmp, error) {
	if q := p.events.take(id); q != nil {
		return q, nil
	}
	return dialQMP(ctx, p.guests.path(id), eventsName)
}
