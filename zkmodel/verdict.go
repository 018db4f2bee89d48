package zkmodel

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"poolkeeper/zkmodel/recipe"
)

// VerdictsRoot holds what people said of the builds of images, an image each. It is
// not there before the first verdict.
const VerdictsRoot = OwnRoot + "/verdicts"

// VerdictsPath is what was said of one image's builds.
func VerdictsPath(image string) string { return VerdictsRoot + "/" + image }

// KnowsVerdicts is what a daemon that heeds verdicts says in Component.Knows.
const KnowsVerdicts = "verdicts"

// VerdictKind is what a verdict says of a build.
type VerdictKind string

// The kinds of verdicts. Neither build is used in the provider, nor uploaded there again.
const (
	// RolledBack is a build that served, and is not to serve any more.
	RolledBack VerdictKind = "rolled-back"
	// Rejected is a build of which a person said that it is not to serve.
	Rejected VerdictKind = "rejected"
	// Retreated is a canary that failed too often.
	Retreated VerdictKind = "retreated"
)

// Verdict is what was said of a build in one provider (docs/wire.md §8.1). The build is
// known by its id and by the transaction that made it: numbers begin anew in a new tree.
type Verdict struct {
	Kind       VerdictKind `json:"verdict"`
	Provider   string      `json:"provider"`
	Build      string      `json:"build"`
	BuildCzxid int64       `json:"build_czxid"`
	// Upload is the path of the record that it was said of, and UploadCzxid the
	// transaction that made it; "" and 0 when the build was not there.
	Upload      string `json:"upload,omitempty"`
	UploadCzxid int64  `json:"upload_czxid,omitempty"`
	// Delete is an operator's word that its uploads there are to be deleted, also those
	// that are sent yet, or again, by who does not heed verdicts.
	Delete bool   `json:"delete,omitempty"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Time   Epoch  `json:"time"`
}

// Text says for people what was said, by whom, and why; it is also the upload's suspect.
func (v *Verdict) Text() string {
	return said(strings.ReplaceAll(string(v.Kind), "-", " "), v.By, v.Reason)
}

// Pin keeps nodes of one provider at one build, whatever newer ones are there, until an
// operator releases it.
type Pin struct {
	Provider   string `json:"provider"`
	Build      string `json:"build"`
	BuildCzxid int64  `json:"build_czxid"`
	By         string `json:"by"`
	Reason     string `json:"reason,omitempty"`
	Time       Epoch  `json:"time"`
}

// Text says for people who pinned the build, and why.
func (p *Pin) Text() string { return said("pinned", p.By, p.Reason) }

func said(what, by, reason string) string {
	text := what + " by " + by
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// Holds reports whether a build is the one that is pinned.
func (p *Pin) Holds(b *Build) bool { return p.Build == b.ID && p.BuildCzxid == b.Stat.Czxid }

// Verdicts are all that was said of the builds of one image.
type Verdicts struct {
	Image string      `json:"-"`
	Stat  recipe.Stat `json:"-"`

	List []Verdict `json:"verdicts,omitempty"`
	Pins []Pin     `json:"pins,omitempty"`
}

// DecodeVerdicts reads what was said of an image's builds.
func DecodeVerdicts(image string, data []byte, stat recipe.Stat) (*Verdicts, error) {
	v := &Verdicts{}
	if len(data) == 0 {
		return nil, fmt.Errorf("decode %s: it is empty", VerdictsPath(image))
	}
	if err := json.Unmarshal(data, v); err != nil {
		return nil, fmt.Errorf("decode %s: %w", VerdictsPath(image), err)
	}
	v.Image, v.Stat = image, stat
	return v, nil
}

// Encode is the record as it goes into the znode.
func (v *Verdicts) Encode() ([]byte, error) { return json.Marshal(v) }

// Empty reports whether nothing is left of it.
func (v *Verdicts) Empty() bool { return v == nil || len(v.List) == 0 && len(v.Pins) == 0 }

// Clone is a copy that can be changed.
func (v *Verdicts) Clone() *Verdicts {
	if v == nil {
		return &Verdicts{}
	}
	c := *v
	c.List, c.Pins = slices.Clone(v.List), slices.Clone(v.Pins)
	return &c
}

// Verdict is what was said of a build of the image in a provider; nil when that is
// nothing.
func (i *Image) Verdict(b *Build, provider string) *Verdict {
	if i.Verdicts == nil {
		return nil
	}
	for n := range i.Verdicts.List {
		if v := &i.Verdicts.List[n]; v.Provider == provider && v.Build == b.ID && v.BuildCzxid == b.Stat.Czxid {
			return v
		}
	}
	return nil
}

// Pin is the pin of the image in a provider; nil when there is none, or it is stale.
func (i *Image) Pin(provider string) *Pin {
	if i.Verdicts == nil {
		return nil
	}
	for n := range i.Verdicts.Pins {
		if p := &i.Verdicts.Pins[n]; p.Provider == provider && !i.Replaced(p.Build, p.BuildCzxid) {
			return p
		}
	}
	return nil
}

// StaleRuling is a verdict or a pin that is not in force: another transaction created the build that has its id now,
// for example that of an import. It is kept for people to decide, until the build is deleted.
type StaleRuling struct {
	Build, Provider string
	Pin             bool
	Text            string // the verdict or pin in words
	Time            Epoch
}

// String describes the ruling and why it is not in force.
func (s StaleRuling) String() string {
	return fmt.Sprintf("stale, not in force: build %s in %s was %s, and the build's record was created again since", s.Build, s.Provider, s.Text)
}

// Stale are the verdicts and pins of the image that are not in force.
func (i *Image) Stale() (list []StaleRuling) {
	if i.Verdicts == nil {
		return nil
	}
	for _, v := range i.Verdicts.List {
		if i.Replaced(v.Build, v.BuildCzxid) {
			list = append(list, StaleRuling{Build: v.Build, Provider: v.Provider, Text: v.Text(), Time: v.Time})
		}
	}
	for _, p := range i.Verdicts.Pins {
		if i.Replaced(p.Build, p.BuildCzxid) {
			list = append(list, StaleRuling{Build: p.Build, Provider: p.Provider, Pin: true, Text: p.Text(), Time: p.Time})
		}
	}
	return list
}

// Replaced reports whether a build exists under an id, but another transaction created it.
func (i *Image) Replaced(id string, czxid int64) bool {
	b := i.Build(id)
	return b != nil && b.Stat.Czxid != czxid
}

// Bootable goes through the uploads of an image that nodes of a provider can boot from:
// of the build that is pinned there, then the newest first, but last a canary, and after
// it what waits to be one. Creation order is that of
// the transactions that made the records: ids that Nodepool made are random. What is
// being deleted, has failed, or was rolled back or rejected there never counts.
func (i *Image) Bootable(provider string) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		for rank := ofPin; rank <= ofUnproven; rank++ {
			for at := len(i.Builds) - 1; at >= 0; at-- { //nolint:modernize // slices.Backward makes closures here, and launchers ask at each look, for each label
				b := i.Builds[at]
				if b.Broken != nil || b.State != BuildReady || i.rank(b.Build, provider) != rank || i.Verdict(b.Build, provider) != nil {
					continue
				}
				for at := len(b.Uploads) - 1; at >= 0; at-- { //nolint:modernize // as above
					u := b.Uploads[at]
					if u.Provider == provider && u.Broken == nil && u.State == UploadReady && !u.ExternalID.IsNull() && !yield(u) {
						return
					}
				}
			}
		}
	}
}

// rank is when a build is asked for what nodes boot from.
type rank int

const (
	ofPin rank = iota
	ofProven
	ofCanary
	ofUnproven
)

func (i *Image) rank(b *Build, provider string) rank {
	switch pin := i.Pin(provider); {
	case pin != nil && pin.Holds(b):
		return ofPin
	case !i.Unproven(b, provider):
		return ofProven
	case i.Canary(provider).Trial.Is(b):
		return ofCanary
	}
	return ofUnproven
}

// Serving is the upload that nodes of a provider boot from, as far as the tree tells:
// that of the pinned build, else the newest that is not doubted, else the newest; nil when none
// can be. A canary serves so only where nothing else is there.
func (i *Image) Serving(provider string, doubted func(*Upload) bool) *Upload {
	pin := i.Pin(provider)
	var first *Upload
	for u := range i.Bootable(provider) {
		if first != nil && i.Unproven(i.Build(u.Build).Build, provider) && !i.Unproven(i.Build(first.Build).Build, provider) {
			return first
		}
		if !doubted(u) || pin != nil && pin.Build == u.Build {
			return u
		}
		if first == nil {
			first = u
		}
	}
	return first
}

// Unheeded is the upload that a launcher which heeds no verdicts and no pins boots from in
// a provider, where that is another one than what serves there; nil where it is not, or
// nothing was said of the image.
func (i *Image) Unheeded(provider string) *Upload {
	if i.Verdicts == nil {
		return nil
	}
	serving := i.Serving(provider, Suspect)
	bare := *i
	bare.Verdicts, bare.Canaries = nil, nil
	for u := range bare.Bootable(provider) {
		if serving != nil && serving.Build == u.Build {
			return nil
		}
		if i.Pin(provider) != nil || i.Verdict(i.Build(u.Build).Build, provider) != nil {
			return u
		}
		return nil
	}
	return nil
}

// Suspect reports whether an upload's record says that launchers doubt it.
func Suspect(u *Upload) bool { return u.Suspect != "" }

// Build finds a build of the image by its id; nil when it is not there.
func (i *Image) Build(id string) *BuildTree {
	n := slices.IndexFunc(i.Builds, func(b *BuildTree) bool { return b.ID == id })
	if n < 0 {
		return nil
	}
	return i.Builds[n]
}

// VerdictOn is what was said of the build that an upload, by its path, is of, in the
// upload's provider; nil when that is nothing. The upload may be gone.
func VerdictOn(images []*Image, upload string) *Verdict {
	key, err := ParseUploadPath(upload)
	if err != nil {
		return nil // an image that is not ours
	}
	n := slices.IndexFunc(images, func(i *Image) bool { return i.Name == key.Image })
	if n < 0 || images[n].Verdicts == nil {
		return nil
	}
	if b := images[n].Build(key.Build); b != nil {
		return images[n].Verdict(b.Build, key.Provider)
	}
	return nil
}

// Settled returns the verdicts without those of deleted builds, and without pins of builds that
// are deleted or are being deleted; gone are the ids of these builds. What is stale stays.
func (i *Image) Settled() (rest *Verdicts, gone []string) {
	if i.Verdicts == nil || i.Unread != nil {
		return nil, nil
	}
	rest = i.Verdicts.Clone()
	isGone := func(id string, deleting bool) bool {
		b := i.Build(id)
		is := b == nil || deleting && b.Broken == nil && b.State == BuildDeleting
		if is && !slices.Contains(gone, id) {
			gone = append(gone, id)
		}
		return is
	}
	rest.List = slices.DeleteFunc(rest.List, func(v Verdict) bool { return isGone(v.Build, false) })
	rest.Pins = slices.DeleteFunc(rest.Pins, func(p Pin) bool { return isGone(p.Build, true) })
	return rest, gone
}

// judgeCanaries notes how the image's builds come into service, or where nobody can tell.
func (i *Image) judgeCanaries(list []*Canary, err error) {
	i.Canaries = list
	if err != nil && i.Unread == nil {
		i.Unread = fmt.Errorf("which of its builds is a canary cannot be read: %w", err)
	}
	for _, c := range list {
		if c.Broken != nil && i.Unread == nil {
			i.Unread = fmt.Errorf("which of its builds serves in %s cannot be read: %w", c.Provider, c.Broken)
		}
	}
}

// errVerdicts says that what was said of an image's builds cannot be told.
var errVerdicts = errors.New("what was said of its builds cannot be read")

// judge notes what was said of an image's builds, or that nobody can tell.
func (i *Image) judge(v *Verdicts, err error) {
	i.Verdicts = v
	if err != nil && i.Unread == nil {
		i.Unread = fmt.Errorf("%w: %w", errVerdicts, err)
	}
}
