package configs

import (
	"net/url"
	"path/filepath"
	"slices"
	"time"
)

// Events says how changes are told; nil in a Config is not at all.
type Events struct {
	Keep  int           // entries
	Age   time.Duration // of an entry
	Sinks []EventSink
}

// EventSink is where events go. One of Webhook, Command and File is set.
type EventSink struct {
	Name    string
	Match   []string // of types and subjects; none is all
	Webhook string   // URL
	Command string   // path of a program
	File    string   // path
	Timeout time.Duration
	// Key signs what goes to a webhook; it is the secure file's. "" signs nothing.
	Key string `json:"-" yaml:"-"`
}

// String shows no URL, which may hold a token, and no key.
func (s EventSink) String() string { return "{" + s.Name + "}" }

// GoString is String, so that %#v shows no key either.
func (s EventSink) GoString() string { return s.String() }

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
		"keep":  number(&e.Keep, leastEvents, mostEvents),
		"days":  number(&days, 1, mostEventDays),
		"sinks": unique(refused, &e.Sinks, func(s EventSink) string { return s.Name }, l.eventSink),
	})
	e.Age = time.Duration(days) * day
	l.cfg.Events = e
}

// eventSink decodes one sink.
func (l *loader) eventSink(v value) EventSink {
	s := EventSink{Timeout: 10 * time.Second}
	have := v.decode("event sink", fields{
		"name":    checkedName("event sink", &s.Name),
		"match":   eventPatterns(&s.Match),
		"webhook": webAddress(&s.Webhook),
		"command": absolute(&s.Command),
		"file":    absolute(&s.File),
		"timeout": patience(&s.Timeout, time.Hour),
	})
	v.require(have, "name")
	targets := 0
	for _, key := range []string{"webhook", "command", "file"} {
		if have[key] {
			targets++
		}
	}
	if targets != 1 {
		v.lacks([]string{"webhook", "command", "file"}, "an event sink has one of webhook, command and file, this one has %d of them", targets)
	}
	return s
}

// eventPatterns decodes what is matched with types and subjects.
func eventPatterns(out *[]string) decodeFunc {
	return func(v value) {
		textOrTexts(out)(v)
		for _, pattern := range *out {
			checkPattern(v, pattern)
		}
	}
}

// webAddress decodes an address of the web.
func webAddress(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		u, err := url.Parse(*out)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			v.fail("expected an address as https://chat.example.org/hooks/ci")
		}
	}
}

// absolute decodes a path from the root: a daemon is wherever systemd has put it.
func absolute(out *string) decodeFunc {
	return func(v value) {
		if text(out)(v); !filepath.IsAbs(*out) {
			v.fail("expected a path that begins with /, got %s", v.describe())
		}
	}
}

// secureEvents decodes the keys of sinks.
func (l *loader) secureEvents(v value) {
	v.decode("secure events", fields{"sinks": func(v value) {
		for _, item := range v.items() {
			item.item = item.at
			var name, key string
			have := item.decode("secure event sink", fields{"name": text(&name), "key": eventKey(&key)})
			item.require(have, "name", "key")
			l.secure.sinks[name] = key
			item.later(func() {
				if e := l.cfg.Events; have["name"] && (e == nil || !slices.ContainsFunc(e.Sinks, func(s EventSink) bool { return s.Name == name })) {
					item.fail("the configuration has no event sink %q", name)
				}
			})
		}
	}})
}

// eventKey takes a key that is not to be guessed.
func eventKey(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		if len(*out) < minToken {
			v.fail("the key has %d characters, want at least %d; `openssl rand -hex 32` makes one", len(*out), minToken)
		}
	}
}

// overlayEvents gives sinks their keys.
func (l *loader) overlayEvents() {
	if l.cfg.Events == nil {
		return
	}
	for i := range l.cfg.Events.Sinks {
		sink := &l.cfg.Events.Sinks[i]
		sink.Key = l.secure.sinks[sink.Name]
	}
}
