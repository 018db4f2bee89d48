package backup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Brought is how a tree compares with a Whole.
type Brought struct {
	Images *Look
	// Missing are records of ours that the tree has not, and Same how many it has.
	Missing []Record
	Same    int
	// Differs are paths that both have, otherwise; More those that only the tree has.
	Differs, More []string
}

// CompareWhole looks at a tree.
//
// Errors: recipe.ErrUnread where part of the tree cannot be read.
func CompareWhole(ctx context.Context, store *zkmodel.Store, w *Whole) (*Brought, error) {
	s := store.Session()
	look, err := Compare(ctx, store, w.Images())
	if err != nil {
		return nil, err
	}
	there, _, err := readOwn(ctx, s)
	if err != nil {
		return nil, err
	}
	b, known, made := &Brought{Images: look}, map[string]Record{}, w.made()
	for _, r := range there {
		known[r.Path] = r
	}
	for _, r := range w.Records {
		n, ours := rank(r.Path)
		if !ours {
			continue
		}
		now, has := known[r.Path]
		delete(known, r.Path)
		if has && r.Path == zkmodel.PausesPath {
			b.comparePauses(r, now)
			continue
		}
		if root := slices.Concat(plain(), fitted())[n]; root == zkmodel.VerdictsRoot || root == zkmodel.CanariesRoot {
			if r, err = fit(ctx, s, r, made); err != nil {
				return nil, err
			}
		}
		switch {
		case !has:
			b.Missing = append(b.Missing, r)
		case !now.equal(r.data()):
			b.Differs = append(b.Differs, r.Path)
		default:
			b.Same++
		}
	}
	for at := range known {
		b.More = append(b.More, at)
	}
	slices.Sort(b.More)
	slices.SortStableFunc(b.Missing, func(x, y Record) int {
		first, _ := rank(x.Path)
		second, _ := rank(y.Path)
		return cmp.Compare(first, second)
	})
	return b, nil
}

// comparePauses compares the one record to which a Restore that was cut off has brought some
// of what it tells of.
func (b *Brought) comparePauses(want, now Record) {
	wanted, there := zkmodel.DecodePauses(want.data(), recipe.Stat{}, true), zkmodel.DecodePauses(now.data(), recipe.Stat{}, true)
	differs, missing := there.Broken != nil && !now.equal(want.data()), false
	for subject, one := range there.All {
		same := wanted.All[subject]
		differs = differs || same == nil || same.Pause != one.Pause
	}
	for subject := range wanted.All {
		missing = missing || there.All[subject] == nil
	}
	switch {
	case differs:
		b.Differs = append(b.Differs, want.Path)
	case missing:
		b.Missing = append(b.Missing, want)
	default:
		b.Same++
	}
}

// InTheWay says what keeps a backup from being brought back; nil where nothing does.
func (b *Brought) InTheWay() error {
	why := []error{b.Images.InTheWay()}
	if n := len(b.More); n > 0 {
		why = append(why, fmt.Errorf("%w: it has %d records below %s that the file does not have, as %s", ErrInTheWay, n, zkmodel.OwnRoot, b.More[0]))
	}
	if n := len(b.Differs); n > 0 {
		why = append(why, fmt.Errorf("%w: it has %d records otherwise than the file, as %s", ErrInTheWay, n, b.Differs[0]))
	}
	return errors.Join(why...)
}

// RestoreWhole brings back what a tree does not have; what it has stays as it is. First comes
// what is ours and stands for itself, then images (Restore), then what says something of these.
// What is there after an error is part of it: RestoreWhole again brings the rest.
//
// Errors, unless anyway: ErrInTheWay, with nothing written where InTheWay of the result tells of it; else it came
// meanwhile, and some is written. Those of Restore.
func RestoreWhole(ctx context.Context, store *zkmodel.Store, w *Whole, anyway bool) (*Brought, error) {
	before, err := CompareWhole(ctx, store, w)
	if err != nil {
		return nil, err
	}
	if err := before.InTheWay(); err != nil && !anyway {
		return before, err
	}
	s := store.Session()
	if err := create(ctx, s, before.Missing, func(n int) bool { return n < len(plain()) }); err != nil {
		return before, err
	}
	images, err := Restore(ctx, store, w.Images(), anyway)
	if err != nil {
		return before, err
	}
	before.Images = images
	if err := w.count(ctx, store); err != nil {
		return before, err
	}
	again, err := CompareWhole(ctx, store, w) // the builds are there that verdicts are about
	if err != nil {
		return before, err
	}
	if err := create(ctx, s, again.Missing, func(n int) bool { return n >= len(plain()) }); err != nil {
		return before, err
	}
	return before, w.pause(ctx, store)
}

// create makes the records whose rank is wanted, but for that of pauses.
func create(ctx context.Context, s *recipe.Session, list []Record, wanted func(rank int) bool) error {
	for _, r := range list {
		if n, _ := rank(r.Path); !wanted(n) || r.Path == zkmodel.PausesPath {
			continue
		}
		if err := s.EnsurePath(ctx, path.Dir(r.Path)); err != nil {
			return err
		}
		if _, err := s.Create(ctx, r.Path, r.data(), recipe.Persistent); err != nil {
			if err = fill(ctx, s, r, err); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill gives a record its data that could not be created: a folder was made for what is in it,
// or the last request of a restore that was cut off came late.
func fill(ctx context.Context, s *recipe.Session, r Record, why error) error {
	data, _, err := s.Get(ctx, r.Path)
	switch {
	case err != nil || len(data) > 0 && !r.equal(data):
		return why
	case len(data) == 0 && len(r.data()) > 0:
		_, err = s.Set(ctx, r.Path, r.data(), 0)
	}
	return err
}

// count has folders go on behind the numbers that they had given: a number comes no second time,
// also where what had the highest was deleted before the backup.
func (w *Whole) count(ctx context.Context, store *zkmodel.Store) error {
	folders := map[string][]Record{}
	for _, r := range w.Records {
		if image, is := folderOf(r.Path); is && r.Next > 0 {
			folders[image] = append(folders[image], r)
		}
	}
	for image, list := range folders {
		if err := countImage(ctx, store, image, list); err != nil {
			return fmt.Errorf("count the builds of image %s: %w", image, err)
		}
	}
	return nil
}

func countImage(ctx context.Context, store *zkmodel.Store, image string, list []Record) (err error) {
	s, behind := store.Session(), []Record{}
	for _, r := range list {
		stat, there, err := s.Exists(ctx, r.Path)
		if err != nil {
			return err
		}
		next, _ := number(recipe.SequentialName(stat))
		if there && next < r.Next || !there && r.Path == zkmodel.BuildsPath(image) {
			behind = append(behind, r)
		}
	}
	if len(behind) == 0 {
		return nil
	}
	lock, err := store.LockBuilds(ctx, image)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release(context.WithoutCancel(ctx))) }()
	w := &writer{s: s, lock: lock}
	for _, r := range behind {
		if err := w.numbers(ctx, r.Path, true, []string{fmt.Sprintf("%0*d", digits, r.Next-1)}); err != nil {
			return err
		}
	}
	return w.flush(ctx)
}

// flagOf is the flag that a pause tells of; false where that is of a single wave.
func flagOf(subject string) (at string, ok bool) {
	if image, is := zkmodel.ParseImageSubject(subject); is {
		return zkmodel.PausePath(image), true
	}
	target, is := wave.ParseTarget(subject)
	return wave.HoldPath, is && target.ID == ""
}

// dropPauses takes out of the record of pauses what is not of a flag that the backup has: of
// waves, and of flags that others have made since.
func (w *Whole) dropPauses() error {
	n := slices.IndexFunc(w.Records, func(r Record) bool { return r.Path == zkmodel.PausesPath })
	if n < 0 {
		return nil
	}
	noted := zkmodel.DecodePauses(w.Records[n].data(), recipe.Stat{}, true)
	for subject, one := range noted.All {
		at, is := flagOf(subject)
		if !is || !slices.ContainsFunc(w.Records, func(r Record) bool { return r.Path == at && r.Version == one.Flag }) {
			delete(noted.All, subject)
		}
	}
	switch {
	case noted.Broken != nil:
		return noted.Broken
	case len(noted.All) == 0:
		w.Records = slices.Delete(w.Records, n, n+1)
		return nil
	}
	text, err := json.Marshal(noted.All)
	w.Records[n] = recordOf(zkmodel.PausesPath, text)
	return err
}

// pause notes who has paused what, of flags that were theirs, unless that is noted.
func (w *Whole) pause(ctx context.Context, store *zkmodel.Store) error {
	s, flags := store.Session(), map[string]Record{}
	var noted *zkmodel.Pauses
	for _, r := range w.Records {
		if r.Path == zkmodel.PausesPath {
			noted = zkmodel.DecodePauses(r.data(), recipe.Stat{}, true)
		}
		flags[r.Path] = r
	}
	if noted == nil {
		return nil
	}
	there, err := zkmodel.ReadPauses(ctx, s)
	if err != nil {
		return err
	}
	for subject, one := range noted.All {
		at, _ := flagOf(subject)
		flag, kept := flags[at]
		if !kept || there.All[subject] != nil {
			continue
		}
		write := func(ops ...recipe.Op) error {
			_, err := s.Multi(ctx, ops...)
			return err
		}
		if err := zkmodel.PauseFlag(ctx, s, subject, at, flag.data(), one.Pause, write); err != nil {
			return fmt.Errorf("note who has paused %s: %w", subject, err)
		}
	}
	return nil
}
