package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
)

// Trial is a build that is to prove itself in a provider before it serves there, or before it serves all.
type Trial struct {
	Kind     TrialKind `json:"kind"`
	Image    string    `json:"image"`
	Build    string    `json:"build"`
	Provider string    `json:"provider"`
	Share    float64   `json:"share_percent,omitempty"` // of new nodes, that a canary serves
	Says     string    `json:"says"`                    // how far it has come
	Asks     bool      `json:"asks,omitempty"`          // a person is to decide
	Since    time.Time `json:"since"`
}

// TrialKind says how a build proves itself.
type TrialKind string

// The kinds of trials.
const (
	Validation TrialKind = "validation"
	Canary     TrialKind = "canary"
)

// Rollout is how far the fleet's configuration has come.
type Rollout struct {
	Version uint64     `json:"version,omitempty"` // that is to run; 0 when it cannot be read
	Since   *time.Time `json:"since,omitempty"`   // when it was pushed
	By      string     `json:"by,omitempty"`
	Message string     `json:"message,omitempty"`
	Daemons int        `json:"daemons"` // that follow it
	Behind  int        `json:"behind"`  // of them, that do not run it
}

// trials are the builds that prove themselves, by image.
func (t *Tree) trials(cfg *configs.Config) []Trial {
	list := []Trial{}
	for _, image := range t.Images {
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				one := Trial{Image: image.Name, Build: b.ID, Provider: u.Provider}
				switch c := image.Canary(u.Provider); {
				case u.OnTrial():
					one.Kind, one.Since, one.Says = Validation, u.StateTime.Time(), "it is not tried yet"
					if v := zkmodel.ValidationOf(t.Trials, u); v != nil {
						one.Since, one.Says = v.Since.Time(), v.Text()
					}
				case c != nil && c.Trial != nil && image.OnTrial(u.Provider) == u:
					one.Kind, one.Since, one.Says, one.Asks = Canary, c.Trial.Since.Time(), c.Uses(b.Build), c.Trial.Asked != 0
					if configured, _ := cfg.DiskImage(image.Name); configured != nil && configured.Canary != nil {
						one.Share = configured.Canary.Share
					}
				default:
					continue
				}
				one.Since = whole(one.Since)
				list = append(list, one)
			}
		}
	}
	return list
}

// Name is the build's.
func (t *Trial) Name() string { return t.Image + "-" + t.Build }

// Words says of a canary what share it has, and of both how far they have come.
func (t *Trial) Words() string {
	says := strings.TrimPrefix(t.Says, "canary: ")
	if t.Share > 0 {
		return fmt.Sprintf("%g %% of new nodes: %s", t.Share, says)
	}
	return says
}

// Words says how many daemons run the newest version.
func (r *Rollout) Words() string {
	if r.Version == 0 {
		return "the newest version cannot be read"
	}
	return fmt.Sprintf("version %d, run by %d of %d daemons", r.Version, r.Daemons-r.Behind, r.Daemons)
}

// rollout is how far the fleet's configuration has come; nil where daemons have files.
func (t *Tree) rollout() *Rollout {
	if len(t.Members) == 0 || t.Current == nil && t.Unversioned == nil {
		return nil
	}
	r := &Rollout{Daemons: len(t.Members)}
	if t.Current != nil {
		r.Version, r.Since, r.By, r.Message = t.Current.Number, at(t.Current.When()), t.Current.By, t.Current.Message
	}
	for _, m := range t.Members {
		if t.Current == nil || !m.Runs(t.Current) {
			r.Behind++
		}
	}
	return r
}

// settles is how long daemons have to take a version that was pushed.
const settles = 15 * time.Minute

// fleetItems are what is wrong with the fleet's configuration, and the daemons that do not run it.
func (t *Tree) fleetItems() (items []attention.Item) {
	if t.Unversioned != nil {
		items = append(items, attention.Item{
			Kind: attention.VersionUnread, What: "The version that the fleet is to run cannot be read", Why: t.Unversioned.Error(), Name: "current",
		})
	}
	for _, m := range t.Members {
		switch {
		case m.Err != nil:
			items = append(items, attention.Item{
				Kind: attention.DaemonUnread, What: "Which configuration " + m.Name + " runs cannot be read", Why: m.Err.Error(), Name: m.Name,
			})
			continue
		case t.Current == nil || m.Runs(t.Current) && m.Reason == "":
			continue
		case m.Reason == "" && t.Now.Sub(t.Current.When()) < settles:
			continue // it is on its way
		}
		why := cmp.Or(m.Reason, "it does not say why")
		if m.Number > 0 && !m.Runs(t.Current) {
			why = fmt.Sprintf("it runs version %d of %d: %s", m.Number, t.Current.Number, why)
		}
		items = append(items, attention.Item{
			Kind: attention.Behind, What: "The " + m.Kind + " on " + m.Host + " does not run the fleet's configuration", Why: why, Name: m.Host,
		})
	}
	return items
}

// SinkLate is for how long a sink may not have an event; as the alarm PoolkeeperEventsStuck says.
const SinkLate = 15 * time.Minute

// sinkItems are the sinks that do not get events, or have refused some.
func (t *Tree) sinkItems(cfg *configs.Config) (items []attention.Item) {
	if cfg.Events == nil {
		return nil // what is left of sinks is of nobody
	}
	for _, s := range t.Sinks {
		if !slices.ContainsFunc(cfg.Events.Sinks, func(c configs.EventSink) bool { return c.Name == s.Sink }) {
			continue
		}
		if !s.Next.IsZero() && t.Now.Sub(s.Next) > SinkLate {
			items = append(items, attention.Item{
				Kind: attention.EventsStuck, What: "Sink " + s.Sink + " does not get its events", Why: "no daemon dispatches them, or the sink does not take them; the log of daemons says why",
				Since: s.Next, Name: s.Sink,
			})
		}
		if s.Letters > 0 {
			items = append(items, attention.Item{
				Kind: attention.DeadLetters, What: fmt.Sprintf("Sink %s has refused %s", s.Sink, listing.Count(s.Letters, "event")), Why: "they are kept as dead letters until they are replayed", Name: s.Sink,
			})
		}
	}
	return items
}

// nearly is the part of a cloud's limit, in percent, from which on it is nearly used up.
const nearly = 90

// limitItems are the clouds whose own limits end what their pools may still take.
func (t *Tree) limitItems(c *capacities) (items []attention.Item) {
	for n := range c.providers {
		p := &c.providers[n]
		resource, use := p.Fullest()
		if use.Share() < nearly || !c.room(p.Provider) {
			continue
		}
		items = append(items, attention.Item{
			Kind: attention.NearLimit, Provider: p.Provider, Name: resource,
			What: fmt.Sprintf("Provider %s has few %s left: %d of %d are in use", p.Provider, resource, use.Used, *use.Limit),
			Why:  "its cloud allows less than its pools may take",
		})
	}
	return items
}

// room reports whether a pool of a provider may take more by its own limits.
func (c *capacities) room(provider string) bool {
	return slices.ContainsFunc(c.pools, func(q Capacity) bool { return q.Provider == provider && !q.Disabled && !q.full() })
}
