package zkmodel

import (
	"strings"

	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// Build is the record of one image build (docs/wire.md §3.1). Keys from Reason
// on are Poolkeeper's own; Nodepool passes over them.
type Build struct {
	Image string
	ID    string
	Stat  recipe.Stat
	// Broken says why the data could not be read; such a record is listed and breaks
	// nothing. See Unknown and Leftover.
	Broken error

	State      BuildState `wire:"state"`
	StateTime  Epoch      `wire:"state_time"`
	Builder    string     `wire:"builder,omitempty"`
	BuilderID  string     `wire:"builder_id,omitempty"`
	Formats    Formats    `wire:"formats,omitempty"`
	Username   string     `wire:"username"`
	PythonPath string     `wire:"python_path"`
	ShellType  string     `wire:"shell_type"`

	Token    string               `wire:"token,omitempty"`     // finds our own record after a lost connection
	Reason   string               `wire:"reason,omitempty"`    // why it failed
	Tail     string               `wire:"tail,omitempty"`      // last lines of the log of a failed build
	ExitCode int                  `wire:"exit_code,omitempty"` // of diskimage-builder
	Files    map[string]ImageFile `wire:"files,omitempty"`     // by format
	Phases   map[string]float64   `wire:"phases,omitempty"`    // seconds each phase took
	Filename string               `wire:"filename,omitempty"`  // of the files, without extension
	Log      string               `wire:"log,omitempty"`       // where the log is served
	Failures int                  `wire:"failures,omitempty"`  // failures in a row, this one included
	RetryAt  Epoch                `wire:"retry_at,omitempty"`  // when it is tried again if nobody asks sooner

	by   Actor // who moved it since it was read or written
	rest wire.Extra
}

// ImageFile is what is known of one built file.
type ImageFile struct {
	Size   int64  `json:"size"` // bytes
	MD5    string `json:"md5,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Formats is a sorted list of formats; the wire holds it comma-separated.
type Formats []string

// MarshalText joins with commas.
func (f Formats) MarshalText() ([]byte, error) { return []byte(strings.Join(f, ",")), nil }

// UnmarshalText splits at commas.
func (f *Formats) UnmarshalText(text []byte) error {
	*f = nil
	for s := range strings.SplitSeq(string(text), ",") {
		if s = strings.TrimSpace(s); s != "" {
			*f = append(*f, s)
		}
	}
	return nil
}

// Name is "<image>-<id>", as the command line and the files on disk call it.
func (b *Build) Name() string { return b.Image + "-" + b.ID }

// Path is the record's path.
func (b *Build) Path() string { return BuildPath(b.Image, b.ID) }

// DecodeBuild reads a build record. It never fails: what cannot be read is
// Broken.
func DecodeBuild(image, id string, data []byte, stat recipe.Stat) *Build {
	b := &Build{Username: "zuul", PythonPath: "/usr/bin/python2"}
	b.rest, b.Broken = wire.Decode(data, b)
	b.Image, b.ID, b.Stat = image, id, stat
	if b.State == deleteByHand {
		b.State = BuildDeleting
	}
	return b
}

// Encode is the record as it goes into the znode.
func (b *Build) Encode() ([]byte, error) { return wire.Encode(b, b.rest) }
