package action

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

func (d *Doer) rollback(ctx context.Context, o Order) error {
	if o.Release {
		return d.release(ctx, o)
	}
	return d.judge(ctx, operate.Judgement{
		Image: o.Image, Build: o.Build, Providers: o.Providers, Kind: zkmodel.RolledBack, Pin: o.Pin, Delete: o.Delete, Reason: o.Reason,
	})
}

func (d *Doer) release(ctx context.Context, o Order) error {
	released, err := d.operator().Release(ctx, o.Image, o.Providers)
	for _, pin := range released {
		d.sayf("%s in %s: build %s is released; the newest build serves that is neither rolled back nor rejected", o.Image, pin.Provider, pin.Build)
	}
	return err
}

func (d *Doer) reject(ctx context.Context, o Order) error {
	return d.judge(ctx, operate.Judgement{
		Image: o.Image, Build: o.Build, Providers: o.Providers, Kind: zkmodel.Rejected, Delete: o.Delete, Reason: o.Reason,
	})
}

// promote takes back what was said of a build, and ends its trials.
func (d *Doer) promote(ctx context.Context, o Order) error {
	op := d.operator()
	tried, err := op.PromoteTrials(ctx, o.Image, o.Build, o.Providers)
	for _, one := range tried {
		what := "serves without more ado; its trial is over"
		if one.Canary {
			what = "waits no more: it is promoted, and serves all new nodes once its builder has made it ready"
		}
		d.sayf("%s in %s: build %s %s", o.Image, one.Provider, o.Build, what)
	}
	if err != nil && !errors.Is(err, zkmodel.ErrNotFound) {
		return err
	}
	where, err := op.Promote(ctx, o.Image, o.Build, o.Providers)
	if len(tried) > 0 && errors.Is(err, zkmodel.ErrNotFound) {
		return nil // nothing more was to be done
	}
	for _, one := range where {
		what := "may serve again"
		if one.Canary {
			what = "is promoted: it serves all new nodes"
		}
		d.sayf("%s in %s: build %s %s", o.Image, one.Provider, o.Build, what)
	}
	return err
}

// judge carries a judgement out, and tells what serves, and who goes on as before.
func (d *Doer) judge(ctx context.Context, j operate.Judgement) error {
	for _, p := range d.Config.ProvidersOf(j.Image) {
		j.Listed = append(j.Listed, p.Name)
	}
	all, err := d.operator().Judge(ctx, j)
	if errors.Is(err, zkmodel.ErrNotFound) && len(all) == 0 && Near(ctx, d.Store, d.Config, Order{Image: j.Image, Build: j.Build, Providers: j.Providers}) == "" {
		return fmt.Errorf("%w; dib-image-list shows the builds", err)
	}
	if err != nil {
		return err
	}
	pinned := false
	for _, one := range all {
		d.sayf("%s in %s: %s", j.Image, one.Provider, outcome(j, one))
		pinned = pinned || one.Pin != nil
	}
	d.noteDeaf(j, all)
	return d.noteDeafBuilders(ctx, j, pinned)
}

// outcome says what a judgement led to in a provider.
func outcome(j operate.Judgement, one operate.Judged) string {
	said := "is " + strings.ReplaceAll(string(j.Kind), "-", " ")
	if one.Before != nil {
		said = "was " + one.Before.Text() + " already"
	}
	text := "build " + one.Build + " " + said
	if len(one.Uploads) == 0 {
		text += ", and is not sent there"
	}
	switch {
	case one.Serves == nil:
		text += "; no build has served there yet"
	case one.Pin != nil:
		text += "; build " + one.Serves.Build + " serves, pinned until image-rollback --release"
	default:
		text += "; build " + one.Serves.Build + " serves"
	}
	return text
}

// noteDeaf tells of launchers that go on with another build than the one that serves.
func (d *Doer) noteDeaf(j operate.Judgement, all []operate.Judged) {
	for _, one := range all {
		for _, c := range one.Deaf {
			hint := "--delete takes the build out of its reach"
			if j.Delete || one.Pin != nil {
				hint = "it takes the newest build that is ready"
			}
			d.notef("the launcher on %s (pool %s of %s) knows no verdicts and does not heed this: %s", c.Hostname, c.PoolName, one.Provider, hint)
		}
	}
}

// noteDeafBuilders tells of builders that do not keep what is pinned, or send again what
// was deleted.
func (d *Doer) noteDeafBuilders(ctx context.Context, j operate.Judgement, pinned bool) error {
	if !pinned && !j.Delete {
		return nil
	}
	deaf, err := d.operator().DeafBuilders(ctx)
	for _, c := range deaf {
		if pinned {
			d.notef("the builder on %s knows no pins: it deletes the pinned build when two newer uploads are ready", c.Hostname)
		}
		if j.Delete {
			d.notef("the builder on %s knows no verdicts: if it has the files of the build, it may upload it again, until a newer one is ready", c.Hostname)
		}
	}
	return err
}
