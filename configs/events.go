package configs

import "time"

// Events says how changes are told; nil in a Config is not at all.
type Events struct {
	Keep int           // entries
	Age  time.Duration // of an entry
}

// Limits of what is kept. Less would be gone before anybody reads it; more would be a
// database.
const (
	leastEvents, mostEvents = 100, 1_000_000
	mostEventDays           = 3650
)

func defaultEvents() *Events { return &Events{Keep: 10_000, Age: 30 * day} }

// events decodes what a site tells of its changes.
func (l *loader) events(v value) {
	e, days := defaultEvents(), 30
	v.decode("events", fields{
		"keep": number(&e.Keep, leastEvents, mostEvents),
		"days": number(&days, 1, mostEventDays),
	})
	e.Age = time.Duration(days) * day
	l.cfg.Events = e
}
