package configs

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	return text + ": " + f.Message
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (f *Finding) Unwrap() error { return ErrInvalid }

// severity says what a finding does to a configuration.
type severity int

const (
	// notice is a warning wherever the file is read.
	notice severity = iota
	// lint stops config-validate; a daemon goes on with a warning, because
	// Nodepool's daemons run such files.
	lint
	// unknown is lint, unless the file asks for an error (unknown-keys).
	unknown
	// fault always stops.
	fault
)

// findings collects the remarks about one configuration.
type findings struct {
	strict         bool // lint stops
	unknownIsFault bool
	seen           map[Finding]bool // a parent is read once for each child
	stopping       []*Finding
	warnings       []*Finding
}

func (fs *findings) add(s severity, f Finding) {
	if fs.seen[f] {
		return
	}
	if fs.seen == nil {
		fs.seen = map[Finding]bool{}
	}
	fs.seen[f] = true
	stops := s == fault || s >= lint && fs.strict || s == unknown && fs.unknownIsFault
	if stops {
		fs.stopping = append(fs.stopping, &f)
		return
	}
	fs.warnings = append(fs.warnings, &f)
}

// err joins what stops the configuration, in the order of the files' lines.
func (fs *findings) err() error {
	sortFindings(fs.stopping)
	errs := make([]error, len(fs.stopping))
	for i, f := range fs.stopping {
		errs[i] = f
	}
	return errors.Join(errs...)
}

// warningTexts renders the warnings, in the order of the files' lines.
func (fs *findings) warningTexts() []string {
	sortFindings(fs.warnings)
	var texts []string
	for _, f := range fs.warnings {
		texts = append(texts, f.Error())
	}
	return texts
}

func sortFindings(list []*Finding) {
	slices.SortStableFunc(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}
