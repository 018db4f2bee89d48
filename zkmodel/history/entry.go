package history

import (
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// Kind is what an entry is about.
type Kind string

// The kinds.
const (
	Build   Kind = "build"
	Upload  Kind = "upload"
	Request Kind = "request"
	Node    Kind = "node"
	Action  Kind = "action" // what a person wanted from a page of this daemon
)

// Kinds are all of them; their place is part of the file.
var Kinds = []Kind{Build, Upload, Request, Node, Action}

// Outcome is what something came to.
type Outcome string

// The outcomes. What went without one was deleted, withdrawn or lost before it had any.
const (
	Succeeded Outcome = "succeeded"
	Failed    Outcome = "failed"
	None      Outcome = "none"
)

// Outcomes are all of them; their place is part of the file.
var Outcomes = []Outcome{Succeeded, Failed, None}

// Bounds of one entry.
const (
	maxText  = 512 // bytes of one text
	maxTimes = 16  // states that are told of
	maxList  = 32  // labels, or nodes
)

// Moment is when something came into a state.
type Moment struct {
	State string    `json:"state"`
	At    time.Time `json:"at"`
}

// Entry is the life of a build, an upload, a request or a node, as far as it was seen, or what a person did. Of
// secrets, addresses (but for where an action came from) and what users say of their nodes it has nothing.
type Entry struct {
	Kind Kind `json:"kind"`
	// ID is IMAGE-BUILD, IMAGE-BUILD/PROVIDER/UPLOAD, or that of the request or node; of an action, of what it was done to.
	ID      string  `json:"id"`
	Became  string  `json:"state"` // the last state that was seen
	Outcome Outcome `json:"outcome,omitempty"`
	Reason  string  `json:"reason,omitempty"`

	Begun time.Time `json:"begun"`
	// Ended is when a build or upload was ready or had failed, a request was fulfilled or
	// had failed, and a node, or what had come to nothing, was gone. Zero while it goes on.
	Ended time.Time `json:"ended,omitzero"`
	Gone  time.Time `json:"gone,omitzero"` // when the record was gone
	// Unsure says that the end was not seen: it was before Ended, or Gone, in a gap.
	Unsure bool     `json:"unsure,omitempty"`
	Times  []Moment `json:"times,omitempty"`

	Image     string   `json:"image,omitempty"`
	BuildID   string   `json:"build,omitempty"` // of the image
	Provider  string   `json:"provider,omitempty"`
	Pool      string   `json:"pool,omitempty"`
	Labels    []string `json:"labels,omitempty"`
	Host      string   `json:"host,omitempty"`    // the builder, or launcher; where an action came from
	Request   string   `json:"request,omitempty"` // that a node was for
	Nodes     []string `json:"nodes,omitempty"`   // of a request
	Requestor string   `json:"requestor,omitempty"`
	EventID   string   `json:"event_id,omitempty"` // Zuul's
	Tenant    string   `json:"tenant,omitempty"`

	Czxid int64 `json:"czxid,omitempty"` // of the record: ids may come again in another tree
}

// key names what an entry is about.
func (e *Entry) key() string { return string(e.Kind) + "/" + e.ID }

// place is where an entry that has ended stands: by time, kind, outcome, then what it is about.
func (e *Entry) place() []byte {
	at := make([]byte, 8, 10+len(e.ID)+8)
	binary.BigEndian.PutUint64(at, uint64(max(0, e.Ended.UnixMilli())))
	at = append(at, byte(slices.Index(Kinds, e.Kind)), byte(slices.Index(Outcomes, e.Outcome)))
	at = append(at, e.ID...)
	return binary.BigEndian.AppendUint64(at, uint64(e.Czxid))
}

// placed are the parts of a place that queries ask for; ok is false for one that is none.
func placed(at []byte) (ended time.Time, kind Kind, outcome Outcome, ok bool) {
	if len(at) < 10 || int(at[8]) >= len(Kinds) || int(at[9]) >= len(Outcomes) {
		return time.Time{}, "", "", false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(at))).UTC(), Kinds[at[8]], Outcomes[at[9]], true
}

// bound cuts off what is too long.
func (e *Entry) bound() {
	for _, text := range []*string{
		&e.ID, &e.Became, &e.Reason, &e.Image, &e.BuildID, &e.Provider, &e.Pool, &e.Host, &e.Request, &e.Requestor, &e.EventID, &e.Tenant,
	} {
		*text = cut(*text)
	}
	for _, list := range []*[]string{&e.Labels, &e.Nodes} {
		*list = slices.Clone((*list)[:min(len(*list), maxList)])
		for i, text := range *list {
			(*list)[i] = cut(text)
		}
	}
}

func cut(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// merge takes over what was seen before of the same record.
func (e *Entry) merge(was *Entry) {
	e.Times = slices.Clone(was.Times)
	e.Ended, e.Outcome, e.Gone, e.Unsure = was.Ended, was.Outcome, was.Gone, was.Unsure
	for _, text := range []struct{ now, was *string }{
		{&e.Request, &was.Request}, {&e.Provider, &was.Provider}, {&e.Reason, &was.Reason}, {&e.Host, &was.Host}, {&e.Image, &was.Image}, {&e.BuildID, &was.BuildID},
	} {
		if *text.now == "" {
			*text.now = *text.was
		}
	}
}

// come notes a state and what it means, if it is new. final are the states that are an outcome.
func (e *Entry) come(at time.Time, final map[string]Outcome) {
	if n := len(e.Times); n == 0 || e.Times[n-1].State != e.Became {
		if n == maxTimes {
			e.Times = slices.Delete(e.Times, 1, 2) // the first is when it began
		}
		e.Times = append(e.Times, Moment{e.Became, at})
	}
	outcome := final[e.Became]
	if outcome == "" || !e.Ended.IsZero() || e.Outcome == Succeeded {
		return
	}
	if e.Outcome = outcome; e.Kind != Node { // which ends when it is gone
		e.Ended = at
	}
}

// end notes that the record is gone.
func (e *Entry) end(at time.Time, unsure bool) {
	e.Gone = at
	e.Unsure = e.Unsure || unsure
	if e.Ended.IsZero() {
		e.Ended = at
	}
	if e.Outcome == "" {
		e.Outcome = None
	}
}
