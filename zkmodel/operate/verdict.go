package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// What stands against a verdict. Nothing is changed then.
var (
	// ErrNothingElse: no other build could serve.
	ErrNothingElse = errors.New("no other build is ready there")
	// ErrPinned: an operator keeps the build, or another one, in service.
	ErrPinned = errors.New("release it first (image-rollback --release)")
)

// Judgement is what is to be said of a build.
type Judgement struct {
	Image     string
	Build     string   // its id; "" is the newest that serves in one of the providers
	Providers []string // where; none is wherever the image is, and Listed
	Listed    []string // the providers whose configuration lists the image
	Kind      zkmodel.VerdictKind
	Pin       bool // keep what serves then until it is released
	Delete    bool // take its uploads out of ready, so that everybody leaves them
	Reason    string
}

// Judged is what a judgement led to in one provider.
type Judged struct {
	Provider, Build string
	Before          *zkmodel.Verdict     // what was said of the build already; nothing is changed then
	Uploads         []*zkmodel.Upload    // of the build, as they are now
	Serves          *zkmodel.Upload      // what serves from now on; nil where nothing ever did
	Pin             *zkmodel.Pin         // of the provider, now
	Deaf            []*zkmodel.Component // pools of the provider that go on with another build, as they heed no verdicts
}

// Judge says of a build that it is not to serve, in one transaction for all providers.
// All launchers that heed verdicts go back to what serves then, at once.
//
// Errors: zkmodel.ErrNotFound, ErrNothingElse, ErrPinned; nothing is changed then.
func (o *Operator) Judge(ctx context.Context, j Judgement) ([]Judged, error) {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	var all []Judged
	done := false // a first try may have been written although its answer was lost
	err := o.store.Rule(ctx, j.Image, func(i *zkmodel.Image) (*zkmodel.Ruling, error) {
		if len(j.Providers) == 0 {
			j.Providers = placesOf(i, j.Listed)
		}
		b, err := j.build(i)
		if err != nil {
			return nil, err
		}
		j.Build = b.ID // of the next try, too
		r, judged, err := o.judge(i, b, j)
		if !done || r != nil {
			all = judged
		}
		done = true
		return r, err
	})
	if err != nil {
		return nil, err
	}
	pools, err := o.store.Components(ctx, zkmodel.KindPool)
	if err != nil {
		return all, err
	}
	after, err := o.store.Image(ctx, j.Image)
	if err != nil {
		return all, err
	}
	for n := range all {
		if after.Unheeded(all[n].Provider) != nil {
			all[n].Deaf = zkmodel.Deaf(pools, all[n].Provider)
		}
	}
	return all, nil
}

// placesOf are the providers where an image is, or is to be.
func placesOf(i *zkmodel.Image, listed []string) []string {
	places := slices.Clone(listed)
	for _, b := range i.Builds {
		for _, u := range b.Uploads {
			places = append(places, u.Provider)
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// build is the build that is judged.
func (j Judgement) build(i *zkmodel.Image) (*zkmodel.BuildTree, error) {
	var newest *zkmodel.BuildTree
	for _, b := range i.Builds {
		serves := j.Build == b.ID
		for _, p := range j.Providers {
			u := i.Serving(p, zkmodel.Suspect)
			serves = serves || j.Build == "" && (u != nil && u.Build == b.ID || onTrial(i, b, p) != nil)
		}
		if serves {
			newest = b
		}
	}
	switch {
	case newest != nil && newest.Broken != nil:
		return nil, fmt.Errorf("build %s: %w: %w", newest.Name(), zkmodel.ErrUndecodable, newest.Broken)
	case newest != nil:
		return newest, nil
	case j.Build != "":
		return nil, fmt.Errorf("build %s-%s: %w", j.Image, j.Build, zkmodel.ErrNotFound)
	}
	return nil, fmt.Errorf("no build of image %s serves in %s", j.Image, strings.Join(j.Providers, ", "))
}

// judge makes the ruling of a judgement; nil when it stands already.
func (o *Operator) judge(i *zkmodel.Image, b *zkmodel.BuildTree, j Judgement) (*zkmodel.Ruling, []Judged, error) {
	after := *i
	after.Verdicts = withoutStale(i, b, j)
	r := &zkmodel.Ruling{Verdicts: after.Verdicts, Canaries: ended(i, b, j)}
	if j.Kind == zkmodel.Retreated && len(r.Canaries) == 0 {
		return nil, nil, nil // people decided otherwise meanwhile
	}
	list := make([]Judged, len(j.Providers))
	for n, p := range j.Providers {
		list[n] = Judged{Provider: p, Build: b.ID, Before: i.Verdict(b.Build, p)}
		if pin := i.Pin(p); pin != nil && (pin.Holds(b.Build) || j.Pin) && list[n].Before == nil {
			return nil, nil, fmt.Errorf("build %s of image %s is %s in provider %s: %w", pin.Build, i.Name, pin.Text(), p, ErrPinned)
		}
		uploads := ofBuild(b, p)
		if list[n].Before == nil {
			v := zkmodel.Verdict{
				Kind: j.Kind, Provider: p, Build: b.ID, BuildCzxid: b.Stat.Czxid, Delete: j.Delete, By: o.who, Reason: brief(j.Reason), Time: o.epoch(),
			}
			if len(uploads) > 0 {
				last := uploads[len(uploads)-1]
				v.Upload, v.UploadCzxid = last.Path(), last.Stat.Czxid
			}
			r.Verdicts.List = append(r.Verdicts.List, v)
		}
	}
	changed := slices.ContainsFunc(list, func(one Judged) bool { return one.Before == nil })
	for _, p := range j.Providers {
		if v := after.Verdict(b.Build, p); j.Delete && !v.Delete {
			v.Delete, changed = true, true
		}
	}
	for n, p := range j.Providers {
		out := &list[n]
		if out.Serves = after.Serving(p, zkmodel.Suspect); out.Serves == nil && i.Serving(p, zkmodel.Suspect) != nil {
			return nil, nil, fmt.Errorf("build %s serves in provider %s: %w; nothing is changed. "+
				"Other providers can be named with --provider", b.Name(), p, ErrNothingElse)
		}
		if j.Pin && out.Serves != nil && i.Pin(p) == nil {
			kept := after.Build(out.Serves.Build)
			r.Verdicts.Pins = append(r.Verdicts.Pins, zkmodel.Pin{
				Provider: p, Build: kept.ID, BuildCzxid: kept.Stat.Czxid, By: o.who, Reason: brief(j.Reason), Time: o.epoch(),
			})
			changed = true
		}
		if out.Serves != nil {
			r.Relied = append(r.Relied, out.Serves)
		}
		out.Pin, out.Uploads = after.Pin(p), ofBuild(b, p)
		for _, u := range out.Uploads {
			touched, err := o.mark(u, after.Verdict(b.Build, p), j.Delete)
			if err != nil {
				return nil, nil, err
			}
			if touched {
				r.Changed, changed = append(r.Changed, u), true
			}
		}
	}
	if !changed {
		return nil, list, nil
	}
	return r, list, nil
}

// withoutStale returns what was decided about an image, without the stale verdicts and pins that a judgement replaces.
func withoutStale(i *zkmodel.Image, b *zkmodel.BuildTree, j Judgement) *zkmodel.Verdicts {
	all := i.Verdicts.Clone()
	all.List = slices.DeleteFunc(all.List, func(v zkmodel.Verdict) bool {
		return v.Build == b.ID && i.Replaced(v.Build, v.BuildCzxid) && slices.Contains(j.Providers, v.Provider)
	})
	all.Pins = slices.DeleteFunc(all.Pins, func(p zkmodel.Pin) bool {
		return j.Pin && i.Replaced(p.Build, p.BuildCzxid) && slices.Contains(j.Providers, p.Provider)
	})
	return all
}

// onTrial is the record of a provider where a build is the canary; nil where it is not.
func onTrial(i *zkmodel.Image, b *zkmodel.BuildTree, provider string) *zkmodel.Canary {
	if c := i.Canary(provider); c != nil && c.Trial.Is(b.Build) {
		return c
	}
	return nil
}

// ended are the canaries that end with a judgement.
func ended(i *zkmodel.Image, b *zkmodel.BuildTree, j Judgement) []*zkmodel.Canary {
	var list []*zkmodel.Canary
	for _, p := range j.Providers {
		switch c := onTrial(i, b, p); {
		case c == nil:
		case j.Kind == zkmodel.Retreated:
			list = append(list, c.Retreat(brief(j.Reason)))
		default:
			list = append(list, c.Drop())
		}
	}
	return list
}

// promoted are the records of the providers where a build is to serve without a limit, and
// does not yet. Where it is not ready, its record stays: it would not serve, and the canary,
// which is older, would serve all. One that is sent and waits is promoted by the builder that
// makes it ready (PromoteTrials).
func (o *Operator) promoted(i *zkmodel.Image, b *zkmodel.BuildTree, providers []string) []*zkmodel.Canary {
	var list []*zkmodel.Canary
	for _, c := range i.Canaries {
		if (len(providers) == 0 || slices.Contains(providers, c.Provider)) && i.Unproven(b.Build, c.Provider) &&
			slices.ContainsFunc(ofBuild(b, c.Provider), func(u *zkmodel.Upload) bool { return usable(u) && u.Suspect == "" }) {
			list = append(list, c.Promote(b.Build, o.who, ""))
		}
	}
	return list
}

// mark writes into a ready upload's record that it is suspect, which releases heed that
// know no verdicts, or that it is to be deleted.
func (o *Operator) mark(u *zkmodel.Upload, v *zkmodel.Verdict, remove bool) (touched bool, err error) {
	if !usable(u) {
		return false, nil // one that is being sent is its sender's to end
	}
	if remove {
		return true, zkmodel.Move(u, zkmodel.UploadDeleting, zkmodel.ByOperator, o.epoch())
	}
	if u.Suspect == v.Text() {
		return false, nil
	}
	u.Suspect = v.Text()
	return true, nil
}

// usable reports whether launchers may boot from an upload, by its record.
func usable(u *zkmodel.Upload) bool { return u.Broken == nil && u.State == zkmodel.UploadReady }

// PromoteTrials lets the uploads of a build that are tried, or wait for a canary, serve without
// more ado, in some providers or in all, and returns these. The builder that holds them does it.
func (o *Operator) PromoteTrials(ctx context.Context, image, build string, providers []string) (where []Promoted, err error) {
	i, err := o.store.Image(ctx, image)
	if err != nil {
		return nil, err
	}
	b := i.Build(build)
	if b == nil {
		return nil, fmt.Errorf("build %s-%s: %w", image, build, zkmodel.ErrNotFound)
	}
	for _, u := range b.Uploads {
		if !u.OnTrial() || len(providers) > 0 && !slices.Contains(providers, u.Provider) {
			continue
		}
		v, err := o.store.Validation(ctx, u.UploadKey)
		if err == nil {
			err = o.store.PromoteValidation(ctx, u.UploadKey, o.who, "")
		}
		if err != nil {
			return where, err
		}
		where = append(where, Promoted{Provider: u.Provider, Canary: v.State() == zkmodel.ValidationPassed})
	}
	return where, nil
}

// Promoted is where a build was promoted.
type Promoted struct {
	Provider string
	Canary   bool // nothing was said of it there; it was a canary, or waited to be one
}

// withPlace adds a place to those that are not there yet: a ruling may be made twice.
func withPlace(where []Promoted, one Promoted) []Promoted {
	if slices.ContainsFunc(where, func(p Promoted) bool { return p.Provider == one.Provider }) {
		return where
	}
	return append(where, one)
}

// Promote takes back what was said of a build in some providers, or in all: it may serve
// again, at once; so does a canary, without a limit. It returns where something was said of it,
// or where it was no more than a canary.
//
// Errors: zkmodel.ErrNotFound when there is none.
func (o *Operator) Promote(ctx context.Context, image, build string, providers []string) (where []Promoted, err error) {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	err = o.store.Rule(ctx, image, func(i *zkmodel.Image) (*zkmodel.Ruling, error) {
		b := i.Build(build)
		if b == nil {
			return nil, fmt.Errorf("build %s-%s: %w", image, build, zkmodel.ErrNotFound)
		}
		r := &zkmodel.Ruling{Verdicts: i.Verdicts.Clone()}
		found := false
		r.Verdicts.List = slices.DeleteFunc(r.Verdicts.List, func(v zkmodel.Verdict) bool {
			if v.Build != b.ID || len(providers) > 0 && !slices.Contains(providers, v.Provider) { // also a stale one
				return false
			}
			found = true
			where = withPlace(where, Promoted{Provider: v.Provider})
			for _, u := range ofBuild(b, v.Provider) {
				if usable(u) && u.Suspect == v.Text() {
					u.Suspect = ""
					r.Changed = append(r.Changed, u)
				}
			}
			return true
		})
		r.Canaries = o.promoted(i, b, providers)
		for _, c := range r.Canaries {
			where = withPlace(where, Promoted{Provider: c.Provider, Canary: true})
		}
		switch {
		case found || len(r.Canaries) > 0:
			return r, nil
		case len(where) > 0: // the first try was written
			return nil, nil
		}
		return nil, fmt.Errorf("build %s is neither rolled back nor rejected, nor a canary: %w", b.Name(), zkmodel.ErrNotFound)
	})
	return where, err
}

// Release takes the pins of an image off, in some providers or in all, so that the newest
// build serves again that nobody has rejected. It returns the pins, by provider.
//
// Errors: zkmodel.ErrNotFound when there is none.
func (o *Operator) Release(ctx context.Context, image string, providers []string) (released []zkmodel.Pin, err error) {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	err = o.store.Rule(ctx, image, func(i *zkmodel.Image) (*zkmodel.Ruling, error) {
		r := &zkmodel.Ruling{Verdicts: i.Verdicts.Clone()}
		var off []zkmodel.Pin
		r.Verdicts.Pins = slices.DeleteFunc(r.Verdicts.Pins, func(p zkmodel.Pin) bool {
			is := len(providers) == 0 || slices.Contains(providers, p.Provider)
			if is {
				off = append(off, p)
			}
			return is
		})
		switch {
		case len(off) > 0:
			released = off
			return r, nil
		case len(released) > 0: // the first try was written
			return nil, nil
		}
		return nil, fmt.Errorf("image %s is not pinned there: %w", image, zkmodel.ErrNotFound)
	})
	slices.SortFunc(released, func(a, b zkmodel.Pin) int { return cmp.Compare(a.Provider, b.Provider) })
	return released, err
}

// DeafBuilders are the builders that run and do not heed verdicts: they clean up what is
// pinned when newer builds are there, and send again what was rejected once it is deleted.
func (o *Operator) DeafBuilders(ctx context.Context) ([]*zkmodel.Component, error) {
	builders, err := o.store.Components(ctx, zkmodel.KindBuilder)
	return slices.DeleteFunc(builders, (*zkmodel.Component).Heeds), err
}

// pinned refuses to delete what is pinned.
func (o *Operator) pinned(ctx context.Context, image, build, provider string) error {
	i, err := o.store.Image(ctx, image)
	if err != nil || i.Verdicts == nil {
		return nil //nolint:nilerr // the deletion itself will say so
	}
	b := i.Build(build)
	for n := range i.Verdicts.Pins {
		if p := &i.Verdicts.Pins[n]; b != nil && p.Holds(b.Build) && (provider == "" || provider == p.Provider) {
			return fmt.Errorf("build %s is %s in provider %s: %w", b.Name(), p.Text(), p.Provider, ErrPinned)
		}
	}
	return nil
}

// ofBuild are the uploads of a build in a provider.
func ofBuild(b *zkmodel.BuildTree, provider string) []*zkmodel.Upload {
	return slices.DeleteFunc(slices.Clone(b.Uploads), func(u *zkmodel.Upload) bool { return u.Provider != provider })
}

// brief bounds what a person says, as it stands in records that are read often.
func brief(reason string) string { return zkmodel.BriefTrouble(reason) }
