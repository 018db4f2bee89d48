package providers

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Backed is what a provider implements as well whose nodes are slots on nodes of other
// providers, its backing nodes. It asks for them in the tree, as Zuul asks for nodes; the
// launcher does that for it, and keeps in the tree what is known of them.
type Backed interface {
	// OnBacking gives it what is known of its backing nodes. It is given before nodes are
	// asked of it, and again with each session of the launcher; without it all that needs it
	// fails with ErrUnusable.
	OnBacking(known Backing)

	// Keeps says until when a backing node is kept none of whose slots is used, so that it is
	// given back then; the zero time is now.
	Keeps(n BackingNode) time.Time

	// Unreachable notes that the machine below a node of this provider could not be reached,
	// and why: it takes no new nodes.
	Unreachable(ctx context.Context, externalID string, why error) error
}

// Backing is what is known of the backing nodes of one provider, by all launchers alike.
type Backing interface {
	// List is all of them, at least as new as what was saved before the call. The list is
	// complete, or an error. The revision is that of the list: whoever adds one because of what
	// is, or is not, in it hands it on.
	List(ctx context.Context) (list []BackingNode, revision any, err error)
	// Save writes some as they were listed and changed, all or none; or adds one, whose ID is "",
	// with the revision of the list: the launcher then asks for its node.
	//
	// Errors: ErrChanged when one of them, or, for a new one, the list has changed since.
	Save(ctx context.Context, changed ...BackingNode) error
	// Watch tells of changes, from now on, until stop is called.
	Watch() (changed <-chan struct{}, stop func())
}

// ErrChanged says of what was to be saved that it was changed by another meanwhile: list
// again, and decide anew.
var ErrChanged = errors.New("changed by another")

// BackingNode is a node of another provider, or what stands for one that is asked for.
type BackingNode struct {
	ID       string
	Revision any       // that was listed, of a new one that of the list; whoever saves hands it on as it is
	Label    string    // of the provider, whose nodes are its slots
	Wants    string    // the label that is asked for
	Slots    []SlotUse // by number
	Launched time.Time
	Used     time.Time // when a slot became free last
	Failed   string    // why it takes no new nodes; "" when it does
	// Node is its record, "" until there is one; Like is what nodes on it have from it.
	Node string
	Like Instance
	// Unheard says of one without a node that nobody has begun to launch one, as far as is known.
	Unheard bool
	// Leaving says why it is to be given back as soon as nobody uses it, whatever Keeps says.
	Leaving string
}

// SlotUse is who uses a slot; the zero value is nobody.
type SlotUse struct {
	ExternalID string
	Node       string // the record
	Name       string
	Metadata   map[string]string
	// For is the request that the node is launched for; "" once it is over, or when it is not known.
	// Over says that its launch has ended in vain.
	For  string
	Over bool
	// Recorded says that only the node's record knows of it: Nodepool's launcher has given
	// it the slot. It is free when the record is gone.
	Recorded bool
}

// Free reports whether nobody uses a slot.
func (s SlotUse) Free() bool { return s.Node == "" }

// Idle reports whether nobody uses any of its slots.
func (n *BackingNode) Idle() bool {
	return !slices.ContainsFunc(n.Slots, func(s SlotUse) bool { return !s.Free() })
}

// Verbatim is JSON from a record that may have a secret in it, so that it prints nowhere.
type Verbatim struct{ raw string }

// NewVerbatim keeps the text of a JSON value.
func NewVerbatim(text []byte) Verbatim { return Verbatim{string(text)} }

// Text is the JSON.
func (v Verbatim) Text() []byte { return []byte(v.raw) }

// String is not the text.
func (Verbatim) String() string { return "(kept to itself)" }

// GoString is String.
func (v Verbatim) GoString() string { return v.String() }

// MarshalJSON writes null.
func (Verbatim) MarshalJSON() ([]byte, error) { return []byte("null"), nil }
