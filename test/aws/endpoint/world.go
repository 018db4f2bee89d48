package endpoint

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Thing is something that exists: a machine, an image, a snapshot...
type Thing struct {
	ID   string
	Kind string
	Tags map[string]string
	// Doc is what is answered of it, without its tags.
	Doc Doc

	made, gone time.Time
	blocks     map[int64][]byte            // of a snapshot
	written    map[int64][sha256.Size]byte // of a snapshot that is being written: the sums of its own blocks

	ended bool
}

// State is that of a machine, an image, a snapshot, a volume, a host or a task.
func (t *Thing) State() string {
	if state := t.Doc.Sub("State"); state != nil {
		return state.Str("Name")
	}
	return t.Doc.Str("State")
}

// key is one that signs.
type key struct {
	name, secret, token string
	until               time.Time
}

// world is what exists.
type world struct {
	e         *Endpoint
	counter   int
	hosts     int
	things    map[string]*Thing
	order     []*Thing
	keys      map[string]key
	bearers   map[string]bool // of SSO, that are good
	lasting   time.Duration   // of sessions; 0 is as long as was asked for
	buckets   map[string]map[string]*object
	uploads   map[string]*upload
	quotas    map[string]float64
	tokens    map[string]idempotent
	templates map[string]Doc
	encrypt   bool
	later     []event
}

// event is what happens by itself.
type event struct {
	at time.Time
	do func()
}

// idempotent is what a request with a token made, so that its repetition makes nothing.
type idempotent struct {
	request string
	result  Doc
}

// settle lets happen what is due.
func (w *world) settle(now time.Time) {
	for len(w.later) > 0 && !w.later[0].at.After(now) {
		due := w.later[0]
		w.later = w.later[1:]
		due.do()
	}
}

func (w *world) after(now time.Time, d time.Duration, do func()) {
	w.later = append(w.later, event{now.Add(d), do})
	slices.SortStableFunc(w.later, func(a, b event) int { return a.at.Compare(b.at) })
}

func (w *world) id(prefix string) string {
	w.counter++
	return fmt.Sprintf("%s%017x", prefix, 0xa0000000+w.counter)
}

// add makes something new; its ID stands in a member of its document, too.
func (w *world) add(now time.Time, kind, id string, tags map[string]string, doc Doc) *Thing {
	if tags == nil {
		tags = map[string]string{}
	}
	t := &Thing{ID: id, Kind: kind, Tags: tags, Doc: doc, made: now}
	if member := kinds[kind].id; member != "" {
		doc[member] = id
	}
	w.things[id] = t
	w.order = append(w.order, t)
	return t
}

// of are the things of a kind that are really there.
func (w *world) of(kind string) []*Thing {
	var list []*Thing
	for _, t := range w.order {
		if t.Kind == kind && t.gone.IsZero() {
			list = append(list, t)
		}
	}
	return list
}

// get is a thing as somebody sees it who asks now; nil where it is not seen.
func (c *call) get(kind, id string) *Thing {
	t := c.w.things[id]
	if t == nil || t.Kind != kind || !t.gone.IsZero() || c.now.Sub(t.made) < c.lagOf(t) {
		return nil
	}
	return t
}

// lagOf is how long nobody sees what was made: nothing lags that was there from the beginning.
func (c *call) lagOf(t *Thing) time.Duration {
	if t.made.IsZero() {
		return 0
	}
	return c.e.faults.lag
}

// listed says whether a list has a thing now.
func (c *call) listed(t *Thing) bool {
	lag := c.e.faults.lag
	if !t.gone.IsZero() {
		return c.now.Sub(t.gone) < lag && c.now.Sub(t.made) >= lag
	}
	return c.now.Sub(t.made) >= c.lagOf(t)
}

func (c *call) notFound(kind, id string) error {
	return fault(kinds[kind].notFound, "The %s ID '%s' does not exist", kinds[kind].word, id)
}

// tagged is a document with its tags.
func (t *Thing) tagged() Doc {
	doc := maps.Clone(t.Doc)
	if len(t.Tags) > 0 {
		doc["Tags"] = tagList(t.Tags)
	}
	return doc
}

func tagList(tags map[string]string) []Doc {
	var list []Doc
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, Doc{"Key": name, "Value": tags[name]})
	}
	return list
}

// tagsOf reads tags, and refuses what Amazon refuses.
func tagsOf(list []Doc) (map[string]string, error) {
	tags := map[string]string{}
	for _, tag := range list {
		name, value := tag.Str("Key"), tag.Str("Value")
		switch {
		case name == "" || len([]rune(name)) > 128:
			return nil, fault("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters, or is empty: '%s'", name)
		case len([]rune(value)) > 256:
			return nil, fault("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters")
		case strings.HasPrefix(strings.ToLower(name), "aws:"):
			return nil, fault("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		}
		if _, twice := tags[name]; twice {
			return nil, fault("InvalidParameterValue", "Duplicate tag key '%s' specified.", name)
		}
		tags[name] = value
	}
	if len(tags) > 50 {
		return nil, fault("TagLimitExceeded", "More than 50 tags specified")
	}
	return tags, nil
}

// tagsFor are the tags that a request has for one kind of what it makes.
func (c *call) tagsFor(resource string, allowed ...string) (map[string]string, error) {
	found := map[string]string{}
	for _, s := range c.in.Docs("TagSpecifications") {
		kind := s.Str("ResourceType")
		if !slices.Contains(append(allowed, resource), kind) {
			return nil, fault("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
		tags, err := tagsOf(s.Docs("Tags"))
		if err != nil {
			return nil, err
		}
		if kind == resource {
			found = tags
		}
	}
	return found, nil
}
