package zkmodel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Ruling is a change of what is said of an image's builds. It becomes true with the
// records of uploads that it is about, or not at all.
type Ruling struct {
	Verdicts *Verdicts // all of them, as they are to be
	Changed  []*Upload // as they are to be
	Relied   []*Upload // that must be as they were read
	Canaries []*Canary // as they are to be
	Reason   string    // of the event; "" for none
}

// rulings is how often a ruling is tried again after something has changed meanwhile.
const rulings = 20

// Rule changes what is said of an image's builds, in one transaction, under the locks of
// the uploads that the ruling changes or relies on. rule makes it of the image as it is;
// it is asked again when something has changed meanwhile, also when nobody can tell
// whether the first ruling is there, and returns nil when there is nothing to do.
//
// Errors: ErrNotFound for an image that is not there; ErrBusy when a lock is not free
// before ctx ends; those of rule.
func (st *Store) Rule(ctx context.Context, image string, rule func(*Image) (*Ruling, error)) error {
	for range rulings {
		i, err := st.Image(ctx, image)
		if err != nil {
			return err
		}
		if errors.Is(i.Unread, errVerdicts) {
			return fmt.Errorf("image %s: %w", image, i.Unread)
		}
		r, err := rule(i)
		if err != nil || r == nil {
			return err
		}
		err = st.carryOut(ctx, i, r)
		again := errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrNodeExists) ||
			errors.Is(err, recipe.ErrFenceLost) || errors.Is(err, recipe.ErrConnectionLost) || errors.Is(err, ErrNotFound)
		if !again || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("image %s: its builds and uploads change too often: nothing is changed; try again", image)
}

// carryOut writes a ruling.
func (st *Store) carryOut(ctx context.Context, i *Image, r *Ruling) (err error) {
	ops, err := st.verdictOps(ctx, i, r.Verdicts)
	if err != nil {
		return err
	}
	for _, u := range r.Changed {
		op, err := SaveOp(u)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	for _, u := range r.Relied {
		ops = append(ops, recipe.OpCheck(u.Path(), u.Stat.Version))
	}
	for _, c := range r.Canaries {
		op, err := c.SetOp()
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	locks, err := st.lockAll(ctx, slices.Concat(r.Changed, r.Relied))
	defer func() {
		for _, lock := range locks {
			err = errors.Join(err, lock.Release(ctx))
		}
	}()
	if err != nil || len(ops) == 0 {
		return err
	}
	for _, lock := range locks {
		ops = append(ops, lock.Fence())
	}
	changed := []teller{judged(i, r)}
	for _, u := range r.Changed {
		changed = append(changed, u)
	}
	for _, c := range r.Canaries {
		changed = append(changed, c)
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		_, err := st.session.Multi(ctx, slices.Concat(ops, also)...)
		return err
	}, changed...)
	if err != nil {
		return fmt.Errorf("write verdicts of image %s: %w", i.Name, err)
	}
	return nil
}

// verdictOps are the writes that bring the record of an image's verdicts to a state.
func (st *Store) verdictOps(ctx context.Context, i *Image, v *Verdicts) ([]recipe.Op, error) {
	path := VerdictsPath(i.Name)
	if v.Empty() {
		if i.Verdicts == nil {
			return nil, nil
		}
		return []recipe.Op{recipe.OpDelete(path, i.Verdicts.Stat.Version)}, nil
	}
	data, err := v.Encode()
	if err != nil {
		return nil, fmt.Errorf("write verdicts of image %s: %w", i.Name, err)
	}
	if i.Verdicts != nil {
		return []recipe.Op{recipe.OpSet(path, data, i.Verdicts.Stat.Version)}, nil
	}
	if err := st.session.EnsurePath(ctx, VerdictsRoot); err != nil {
		return nil, fmt.Errorf("write verdicts of image %s: %w", i.Name, err)
	}
	return []recipe.Op{recipe.OpCreate(path, data, recipe.Persistent)}, nil
}

// lockAll takes the locks of uploads, always in the same order. Those that it has got are
// returned with an error, too.
func (st *Store) lockAll(ctx context.Context, uploads []*Upload) ([]*recipe.Held, error) {
	slices.SortFunc(uploads, func(a, b *Upload) int { return cmp.Compare(a.Path(), b.Path()) })
	var held []*recipe.Held
	for _, u := range uploads {
		lock, err := recipe.NewLock(st.session, LockPath(u.Path()), "").Acquire(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return held, fmt.Errorf("lock upload %s: %w; nothing is changed", u.Path(), ErrBusy)
		case err != nil:
			return held, fmt.Errorf("lock upload %s: %w", u.Path(), notFound(err))
		}
		held = append(held, lock)
	}
	return held, nil
}

// ForgetVerdicts removes verdicts and pins of deleted builds of an image; see Image.Settled.
func (st *Store) ForgetVerdicts(ctx context.Context, image string) error {
	return st.Rule(ctx, image, func(i *Image) (*Ruling, error) {
		rest, gone := i.Settled()
		if len(gone) == 0 {
			return nil, nil
		}
		return &Ruling{Verdicts: rest, Reason: "build " + strings.Join(gone, ", ") + " is deleted"}, nil
	})
}

// readVerdicts reads what was said of the builds of images.
func (st *Store) readVerdicts(ctx context.Context, images ...*Image) error {
	var names []string
	var unread error
	if len(images) > 1 {
		names, unread = st.children(ctx, VerdictsRoot)
	}
	for _, image := range images {
		if len(images) > 1 && unread == nil && !slices.Contains(names, image.Name) {
			continue
		}
		data, stat, err := st.session.Get(ctx, VerdictsPath(image.Name))
		var v *Verdicts
		switch {
		case errors.Is(err, recipe.ErrNoNode):
			continue
		case err == nil:
			v, err = DecodeVerdicts(image.Name, data, stat)
		case !recipe.Unreadable(err):
			return err
		}
		image.judge(v, err)
	}
	return nil
}

// judged tells what is said of an image's builds now, and what is not any more.
func judged(i *Image, r *Ruling) gone {
	before, after := i.Verdicts.texts(), r.Verdicts.texts()
	in := func(other []string) func(string) bool {
		return func(text string) bool { return slices.Contains(other, text) }
	}
	said := slices.DeleteFunc(slices.Clone(after), in(before))
	back := slices.DeleteFunc(slices.Clone(before), in(after))
	if len(said)+len(back) == 0 {
		return gone{}
	}
	data := event.Data{"image": i.Name, "said": said, "taken_back": back}
	if r.Reason != "" {
		data["reason"] = r.Reason
	}
	return gone{event.ImageJudged, "image/" + i.Name, data}
}

// texts are the verdicts and pins in words.
func (v *Verdicts) texts() []string {
	if v == nil {
		return nil
	}
	var list []string
	for n := range v.List {
		list = append(list, fmt.Sprintf("build %s in %s: %s", v.List[n].Build, v.List[n].Provider, v.List[n].Text()))
	}
	for n := range v.Pins {
		list = append(list, fmt.Sprintf("build %s in %s: %s", v.Pins[n].Build, v.Pins[n].Provider, v.Pins[n].Text()))
	}
	return list
}
