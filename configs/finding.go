package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"gopkg.in/yaml.v3"
)

// What went wrong, for errors.Is.
var (
	// ErrInvalid is behind every finding that stops a configuration.
	ErrInvalid = errors.New("invalid configuration")
	// ErrName is behind every refusal of CheckName.
	ErrName = errors.New("invalid name")
)

// Finding is one remark about a configuration: an error that stops it, or a
// warning that does not. Load joins those that stop it into its error; take
// them apart with errors.As, or print them as they are, one a line.
type Finding struct {
	File    string // as it was named to Load
	Line    int    // from 1; 0 when it is about the whole file
	Key     string // providers[ovh].pools[main].max-servers; "" for the whole file
	Message string // never holds a secret's text

	sev  severity
	more int // places that say the same for the same cause
}

// Error renders the finding as file:line: key: message.
func (f *Finding) Error() string {
	text := f.File
	if f.Line > 0 {
		text = fmt.Sprintf("%s:%d", text, f.Line)
	}
	if f.Key != "" {
		text += ": " + f.Key
	}
	text += ": " + f.Message
	switch f.more {
	case 0:
	case 1:
		text += " (and at another place)"
	default:
		text += fmt.Sprintf(" (and at %d other places)", f.more)
	}
	return text
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (f *Finding) Unwrap() error { return ErrInvalid }

// severity says what a finding does to a configuration.
type severity int

const (
	// notice is a warning wherever the file is read.
	notice severity = iota
	// lint stops config-validate only with --strict: Nodepool's validator takes
	// such a file.
	lint
	// refused stops config-validate, as it does Nodepool's; a daemon goes on
	// with a warning, because Nodepool's daemons run such files.
	refused
	// unknown is refused, unless the file asks for an error (unknown-keys).
	unknown
	// freezes is what is wrong with one item: it stops the validator; a daemon
	// leaves the item out. A fault within an item becomes one.
	freezes
	// fault always stops: it is wrong with the whole.
	fault
)

// findings collects the remarks about one configuration.
type findings struct {
	stopsAt        severity // the least severity that stops
	unknownIsFault bool
	all            map[cause]*Finding
	order          []*Finding
	places         map[Finding]bool // a value may be read more than once
}

// cause is what findings have in common that are to be told once: a mapping
// that ten aliases stand for is wrong ten times.
type cause struct {
	file    string
	node    *yaml.Node
	key     string // where there is no node
	message string
}

// add notes a finding that is not about a node of a file.
func (fs *findings) add(s severity, f Finding) { _ = fs.note(s, f, nil) }

// note adds a finding about a node of a file, and is the one that stands for its
// cause.
func (fs *findings) note(s severity, f Finding, node *yaml.Node) *Finding {
	why := cause{f.File, node, "", f.Message}
	if node == nil {
		why.key = f.Key
	}
	f.sev = s
	if fs.all == nil {
		fs.all, fs.places = map[cause]*Finding{}, map[Finding]bool{}
	}
	first := fs.all[why]
	switch {
	case first == nil:
		first = &f
		fs.all[why] = first
		fs.order = append(fs.order, first)
	case !fs.places[f]:
		first.more++
	}
	fs.places[f] = true
	return first
}

// stops reports whether a finding stops the configuration.
func (fs *findings) stops(f *Finding) bool {
	return f.sev >= fs.stopsAt || f.sev == unknown && fs.unknownIsFault
}

// err joins what stops the configuration, in the order of the files' lines.
func (fs *findings) err() error {
	var errs []error
	for _, f := range fs.sorted() {
		if fs.stops(f) {
			errs = append(errs, f)
		}
	}
	return errors.Join(errs...)
}

// warningTexts renders the warnings, in the order of the files' lines.
func (fs *findings) warningTexts() []string {
	var texts []string
	for _, f := range fs.sorted() {
		switch {
		case fs.stops(f):
		case f.sev == freezes:
			texts = append(texts, f.Error()+" (left out)")
		default:
			texts = append(texts, f.Error())
		}
	}
	return texts
}

func (fs *findings) sorted() []*Finding {
	slices.SortStableFunc(fs.order, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return fs.order
}
