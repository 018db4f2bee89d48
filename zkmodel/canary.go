package zkmodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// CanariesRoot holds how builds come into service, a provider and an image each, where
// an image has `canary:`. It is not there before the first.
const CanariesRoot = OwnRoot + "/canaries"

// CanaryPath is how builds of an image come into service in a provider.
func CanaryPath(provider, image string) string { return CanariesRoot + "/" + provider + "/" + image }

// CanaryCountPath is what the launchers of one host counted of a canary.
func CanaryCountPath(provider, image, host string) string {
	return CanaryPath(provider, image) + "/" + host
}

// KnowsCanaries is what a launcher that heeds canaries says in Component.Knows: its program
// does, and its configuration has one.
const KnowsCanaries = "canary"

// KnowsCanaryOf is what a launcher whose configuration has a canary of an image says in
// Component.Knows, besides KnowsCanaries.
func KnowsCanaryOf(image string) string { return KnowsCanaries + ":" + image }

// CanaryIsOf reports whether a launcher that is registered for a provider has a canary of an
// image, or may have: an older one does not say of which images it has.
func CanaryIsOf(pools []*Component, provider, image string) bool {
	return slices.ContainsFunc(pools, func(c *Component) bool {
		switch {
		case c.Broken != nil:
			return true
		case c.ProviderName != provider || !slices.Contains(c.Knows, KnowsCanaries):
			return false
		}
		says := slices.ContainsFunc(c.Knows, func(what string) bool { return strings.HasPrefix(what, KnowsCanaryOf("")) })
		return !says || slices.Contains(c.Knows, KnowsCanaryOf(image))
	})
}

// BuildRef is a build, by its id and by the transaction that made it: numbers begin anew
// in a new tree.
type BuildRef struct {
	Build string `json:"build"`
	Czxid int64  `json:"build_czxid"`
}

// RefOf is a build's.
func RefOf(b *Build) BuildRef { return BuildRef{b.ID, b.Stat.Czxid} }

// Canary is how builds of an image come into service in one provider (docs/wire.md §8.9).
type Canary struct {
	Provider string      `json:"-"`
	Image    string      `json:"-"`
	Stat     recipe.Stat `json:"-"`
	// Broken says why the record cannot be read; nothing is known then.
	Broken error `json:"-"`

	// Promoted is the newest build that serves without a limit. What was made after it
	// is not to serve but as Trial says.
	Promoted BuildRef `json:"promoted"`
	// Trial is the build that serves a share of new nodes; nil when there is none.
	Trial *Trial `json:"canary,omitempty"`
	// Counts is what the launchers of each host counted, those of an earlier canary too.
	Counts map[string]CanaryCounts `json:"-"`

	news news // what has changed since it was read, to be told with the write
}

// news is what an event tells of a changed record.
type news struct {
	kind string
	data event.Data
}

// Trial is a build that is the canary of its image in a provider.
type Trial struct {
	BuildRef
	Upload      string `json:"upload"` // path
	UploadCzxid int64  `json:"upload_czxid"`
	Since       Epoch  `json:"since"`           // on ZooKeeper's clock
	Began       Epoch  `json:"began,omitempty"` // when its first node began, alike
	Nodes       int    `json:"nodes"`           // that were begun on it
	Asked       Epoch  `json:"asked,omitempty"` // when a decision was asked for
}

// CanaryCounts is what the launchers of one host counted since a canary is one.
type CanaryCounts struct {
	Trial    BuildRef `json:"of"`
	Since    Epoch    `json:"since"` // of the trial
	Canary   Tally    `json:"canary"`
	Previous Tally    `json:"previous"`
	Version  int32    `json:"-"` // of the znode
}

// Tally is what became of the nodes of a build.
type Tally struct {
	Nodes  int `json:"nodes,omitempty"`  // begun; those of a canary are in Trial.Nodes
	Failed int `json:"failed,omitempty"` // did not boot
	Scans  int `json:"scans,omitempty"`  // showed no host keys
	Short  int `json:"short,omitempty"`  // were given back at once
	Served int `json:"served,omitempty"` // were used for longer
}

// Failures are all that speaks against the build.
func (t Tally) Failures() int { return t.Failed + t.Scans + t.Short }

// Ended are the nodes of which is known whether they speak against the build.
func (t Tally) Ended() int { return t.Failures() + t.Served }

// Add adds another tally.
func (t *Tally) Add(o Tally) {
	t.Nodes += o.Nodes
	t.Failed += o.Failed
	t.Scans += o.Scans
	t.Short += o.Short
	t.Served += o.Served
}

// String says it for people.
func (t Tally) String() string {
	return fmt.Sprintf("of %d nodes %d did not boot, %d showed no host keys, %d were given back at once, %d served",
		t.Nodes, t.Failed, t.Scans, t.Short, t.Served)
}

// DecodeCanary reads a record.
func DecodeCanary(provider, image string, data []byte, stat recipe.Stat) *Canary {
	c := &Canary{}
	if err := json.Unmarshal(data, c); err != nil {
		c = &Canary{Broken: fmt.Errorf("decode %s: %w", CanaryPath(provider, image), err)}
	}
	c.Provider, c.Image, c.Stat = provider, image, stat
	return c
}

// DecodeCanaryCounts reads what one host counted; what cannot be read counts nothing, and
// is written anew.
func DecodeCanaryCounts(data []byte, stat recipe.Stat) CanaryCounts {
	var c CanaryCounts
	if json.Unmarshal(data, &c) != nil {
		c = CanaryCounts{}
	}
	c.Version = stat.Version
	return c
}

// Clone is a copy that can be changed.
func (c *Canary) Clone() *Canary {
	one := *c
	if c.Trial != nil {
		one.Trial = new(*c.Trial)
	}
	one.Counts = maps.Clone(c.Counts)
	return &one
}

// SetOp is the write of a changed record, if nobody else has changed it.
func (c *Canary) SetOp() (recipe.Op, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return recipe.Op{}, fmt.Errorf("write %s: %w", CanaryPath(c.Provider, c.Image), err)
	}
	return recipe.OpSet(CanaryPath(c.Provider, c.Image), data, c.Stat.Version), nil
}

// NewCanary is the first record of a provider: what serves there now does so without a limit.
func NewCanary(provider, image string, promoted *Build) *Canary {
	return &Canary{Provider: provider, Image: image, Promoted: RefOf(promoted)}
}

// Begin is the record with an upload as the canary from now on.
func (c *Canary) Begin(u *Upload, b *Build, now Epoch) *Canary {
	one := c.Clone()
	one.Trial = &Trial{BuildRef: RefOf(b), Upload: u.Path(), UploadCzxid: u.Stat.Czxid, Since: now}
	one.news = news{event.CanaryBegan, event.Data{"build": b.ID, "previous": c.Promoted.Build}}
	return one
}

// Promote is the record with a build as the newest that serves without a limit.
func (c *Canary) Promote(b *Build, by, reason string) *Canary {
	one := c.Clone()
	one.Promoted, one.Trial = RefOf(b), nil
	one.news = news{event.CanaryPromoted, event.Data{"build": b.ID, "previous": c.Promoted.Build, "by": by, "reason": reason}}
	return one
}

// End is the record with a build that serves without a limit because no other build can be used.
func (c *Canary) End(b *Build, reason string) *Canary {
	one := c.Promote(b, "", reason)
	one.news.kind = event.CanaryEnded
	delete(one.news.data, "by")
	return one
}

// Retreat is the record without its canary, which failed too often.
func (c *Canary) Retreat(reason string) *Canary {
	one := c.Drop()
	one.news = news{event.CanaryRetreated, event.Data{"build": c.Trial.Build, "previous": c.Promoted.Build, "reason": reason}}
	return one
}

// Drop is the record without its canary, of which something else tells.
func (c *Canary) Drop() *Canary {
	one := c.Clone()
	one.Trial, one.news = nil, news{}
	return one
}

// Ask is the record with the note that people are to decide.
func (c *Canary) Ask(now Epoch, reason string) *Canary {
	one := c.Clone()
	one.Trial.Asked = now
	one.news = news{event.CanaryAsks, event.Data{"build": c.Trial.Build, "previous": c.Promoted.Build, "reason": reason}}
	return one
}

// told implements teller.
func (c *Canary) told() (kind, subject string, data event.Data) {
	if c.news.kind == "" {
		return "", "", nil
	}
	data = event.Data{"image": c.Image, "provider": c.Provider}
	maps.Copy(data, c.news.data)
	return c.news.kind, "image/" + c.Image, data
}

func (c *Canary) settle() { c.news = news{} }

// Tallies are what was counted of the canary and, since it is one, of what serves beside it.
func (c *Canary) Tallies() (canary, previous Tally) {
	if c.Trial == nil {
		return canary, previous
	}
	canary.Nodes = c.Trial.Nodes
	for _, one := range c.Counts {
		if one.Of(c.Trial) {
			canary.Add(one.Canary)
			previous.Add(one.Previous)
		}
	}
	return canary, previous
}

// Of reports whether something was counted of this trial, and not of an earlier one.
func (n *CanaryCounts) Of(t *Trial) bool { return n.Trial == t.BuildRef && n.Since == t.Since }

// Is reports whether a build is the one on trial.
func (t *Trial) Is(b *Build) bool { return t != nil && t.BuildRef == RefOf(b) }

// Canary is how the image's builds come into service in a provider; nil where all
// that are ready do.
func (i *Image) Canary(provider string) *Canary {
	n := slices.IndexFunc(i.Canaries, func(c *Canary) bool { return c.Provider == provider })
	if n < 0 || i.Canaries[n].Broken != nil {
		return nil
	}
	return i.Canaries[n]
}

// Unproven reports whether a build was made after the last one that serves without a limit
// in a provider, so that it is a canary, or is to be one.
func (i *Image) Unproven(b *Build, provider string) bool {
	c := i.Canary(provider)
	return c != nil && b.Stat.Czxid > c.Promoted.Czxid
}

// OnTrial is the ready upload of the image's canary in a provider; nil when there is no
// canary, its upload is not there any more, or something was said of its build.
func (i *Image) OnTrial(provider string) *Upload {
	c := i.Canary(provider)
	if c == nil || c.Trial == nil {
		return nil
	}
	for u := range i.Bootable(provider) {
		if u.Path() == c.Trial.Upload && u.Stat.Czxid == c.Trial.UploadCzxid && c.Trial.Is(i.Build(u.Build).Build) {
			return u
		}
	}
	return nil
}

// Kept says why a build stays in a provider although newer ones are there: it serves until
// these are proven, or is the canary; "" when neither is so.
func (i *Image) Kept(b *Build, provider string) string {
	c := i.Canary(provider)
	if c == nil {
		return ""
	}
	if c.Trial.Is(b) {
		return "it is the canary at " + provider
	}
	serving := i.Serving(provider, Suspect)
	serves := serving != nil && serving.Build == b.ID || c.Promoted == RefOf(b) && i.Verdict(b, provider) == nil
	if serves && slices.ContainsFunc(i.Builds, func(n *BuildTree) bool {
		return n.Broken == nil && n.State == BuildReady && i.Unproven(n.Build, provider) && i.Verdict(n.Build, provider) == nil
	}) {
		return "it serves at " + provider + " until a newer one is proven"
	}
	return ""
}

// Holds says why a build is not to be ready yet: another one is the canary. "" when none is,
// or the build serves already.
func (c *Canary) Holds(b *Build) string {
	if c == nil || c.Trial == nil || c.Trial.Is(b) || b.Stat.Czxid <= c.Promoted.Czxid {
		return ""
	}
	return "it waits until build " + c.Trial.Build + ", the canary, is decided"
}

// Waits says why an upload of a build that is sent to a provider is not to be ready there
// yet: another build is the canary, or the next. "" when it may be. refused says that no build is
// going to be a canary there (CanariesRefused), so that only one that is already is waited for.
func (i *Image) Waits(b *Build, provider string, refused bool) string {
	why := i.Canary(provider).Holds(b)
	if why != "" || !i.Unproven(b, provider) {
		return why
	}
	for _, n := range i.Builds {
		switch newer := n.Stat.Czxid > b.Stat.Czxid; {
		case n.Broken != nil || n.State != BuildReady || n.Stat.Czxid == b.Stat.Czxid || !i.awaits(n, provider):
		case newer:
			return "it waits behind build " + n.ID + ", which is newer"
		case !refused:
			why = "it waits until build " + n.ID + ", which is ready and the next canary, is decided"
		}
	}
	return why
}

// awaits reports whether a build is ready in a provider and is to be the canary: one that nodes can
// boot from (Bootable), as launchers begin no other.
func (i *Image) awaits(n *BuildTree, provider string) bool {
	return i.Unproven(n.Build, provider) && i.Verdict(n.Build, provider) == nil && slices.ContainsFunc(n.Uploads, func(u *Upload) bool {
		return u.Provider == provider && u.Broken == nil && u.State == UploadReady && !u.ExternalID.IsNull() && u.Suspect == ""
	})
}

// Uses says for people how a build of an image is used in a provider, where that is not
// simply as the newest; "" otherwise.
func (c *Canary) Uses(b *Build) string {
	switch {
	case c == nil || b.Stat.Czxid <= c.Promoted.Czxid:
		return ""
	case !c.Trial.Is(b):
		return "it waits to be the canary"
	}
	canary, previous := c.Tallies()
	text := "canary: " + canary.String() + "; of the build before: " + previous.String()
	if c.Trial.Asked != 0 {
		text += "; it waits for a decision (image-promote or image-reject)"
	}
	return text
}
