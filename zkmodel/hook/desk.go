package hook

import (
	"cmp"
	"context"
	"path"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
)

// Settings are those of one hook.
type Settings struct {
	Name   string
	Secret string   // that signs what comes
	Events []string // patterns of what is told; none is all
	Refs   []string // patterns of branches and tags; none is all
	// Priority orders deliveries that wait; 0 is PriorityNormal.
	Priority int
}

// Wants says why a delivery is of no interest, "" when it is. What asks whether we are
// there is not.
func (s Settings) Wants(d *Delivery) string {
	switch {
	case d.Event == "ping":
		return "this hook is here"
	case !anyLike(s.Events, d.Event):
		return "this hook does not take the event " + cmp.Or(d.Event, "that has no name")
	case !anyLike(s.Refs, d.Ref):
		return "this hook does not take " + cmp.Or(d.Ref, "what names no ref")
	}
	return ""
}

// anyLike tells whether a text is like one of some patterns, in which * stands for any text.
func anyLike(patterns []string, text string) bool {
	for _, pattern := range patterns {
		// path.Match would not pass over slashes.
		if ok, _ := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(text, "/", "\x00")); ok {
			return true
		}
	}
	return len(patterns) == 0
}

// Desk is a daemon's part in hooks: it takes deliveries. It is a prometheus.Collector.
type Desk struct {
	client *recipe.Client
	by     string
	hooks  atomic.Pointer[[]Settings]
	told   *prometheus.CounterVec
}

// NewDesk makes a Desk without hooks. by is shown as who took a delivery.
func NewDesk(client *recipe.Client, by string) *Desk {
	return &Desk{client: client, by: by, told: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "poolkeeper_hook_requests_total", Help: "What came to a hook, by result: taken, known, unwanted, refused or failed.",
	}, []string{"hook", "result"})}
}

// Set goes on with other hooks.
func (d *Desk) Set(hooks []Settings) {
	d.hooks.Store(&hooks)
}

// Hook is a hook by its name.
func (d *Desk) Hook(name string) (Settings, bool) {
	if hooks := d.hooks.Load(); hooks != nil {
		for _, h := range *hooks {
			if h.Name == name {
				return h, true
			}
		}
	}
	return Settings{}, false
}

// Count counts what came to a hook.
func (d *Desk) Count(hook, result string) { d.told.WithLabelValues(hook, result).Inc() }

// Keep stores a delivery, and reports false when it is known already.
func (d *Desk) Keep(ctx context.Context, one *Delivery) (bool, error) {
	session, err := d.client.Session(ctx)
	if err != nil {
		return false, err
	}
	one.By, one.Received = d.by, clock.Now(ctx).UTC().Truncate(time.Second)
	for _, text := range []*string{&one.Event, &one.Ref, &one.Repository, &one.Commit} {
		*text = brief(*text)
	}
	return NewStore(session).Keep(ctx, one)
}

// brief is a text that others wrote, as much as a person reads of it.
func brief(text string) string {
	const longest = 200
	if len(text) > longest {
		text = text[:longest]
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}

// Describe implements prometheus.Collector.
func (d *Desk) Describe(out chan<- *prometheus.Desc) { d.told.Describe(out) }

// Collect implements prometheus.Collector.
func (d *Desk) Collect(out chan<- prometheus.Metric) { d.told.Collect(out) }
