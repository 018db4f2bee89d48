package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// applyJobs is how many jobs change in one transaction.
const applyJobs = 50

// Change is a step of one job.
type Change struct {
	Rank int
	Step
}

// Changes reports whether a step changes anything of a job.
func (d *Drive) Changes(rank int, s Step) bool {
	return s.Flag != FlagStays || !reflect.DeepEqual(d.rows[rank].Progress, s.Progress)
}

// Apply writes steps of jobs, flags of images and the counts, some jobs in a transaction:
// of each transaction all or nothing is done. then is done with the last of them.
func (d *Drive) Apply(ctx context.Context, changes []Change, then func(*Status), marks ...recipe.Op) error {
	for len(changes) > 0 || then != nil {
		n := min(len(changes), applyJobs)
		last := n == len(changes)
		if !last {
			err := d.apply(ctx, changes[:n], func(*Status) {}, nil)
			if err != nil {
				return err
			}
			changes = changes[n:]
			continue
		}
		if then == nil {
			then = func(*Status) {}
		}
		return d.apply(ctx, changes, then, marks)
	}
	return nil
}

func (d *Drive) apply(ctx context.Context, changes []Change, then func(*Status), marks []recipe.Op) error {
	ops := slices.Clone(marks)
	before := make([]row, len(changes))
	for i, c := range changes {
		before[i] = d.rows[c.Rank]
		more, err := d.steps(ctx, c)
		if err != nil {
			return err
		}
		ops = append(ops, more...)
		d.rows[c.Rank].Progress = c.Progress
	}
	next := d.Status
	next.Counts = d.counts()
	then(&next)
	err := d.write(ctx, next, ops)
	if errors.Is(err, recipe.ErrNoNode) && d.ensureImages(ctx, changes) { // some were never built
		err = d.write(ctx, next, ops)
	}
	if err != nil {
		for i, c := range changes {
			d.rows[c.Rank] = before[i]
		}
		return err
	}
	for _, c := range changes {
		d.rows[c.Rank].version++
	}
	return nil
}

// ensureImages makes the znodes of images that are asked for, and reports whether there are any.
func (d *Drive) ensureImages(ctx context.Context, changes []Change) bool {
	asked := false
	for _, c := range changes {
		if c.Flag == FlagMade {
			asked = true
			if d.store.session.EnsurePath(ctx, zkmodel.ImagePath(d.Jobs[c.Rank].Image)) != nil {
				return false
			}
		}
	}
	return asked
}

// steps are what one job's change comes to.
func (d *Drive) steps(ctx context.Context, c Change) ([]recipe.Op, error) {
	image, was := d.Jobs[c.Rank].Image, d.rows[c.Rank]
	data, err := json.Marshal(c.Progress)
	if err != nil {
		return nil, fmt.Errorf("save job %s of wave %s: %w", image, d.Wave.ID, err)
	}
	ops := []recipe.Op{recipe.OpSet(jobPath(d.Wave.ID, image), data, was.version)}
	if was.version < 0 {
		ops = []recipe.Op{recipe.OpCreate(jobPath(d.Wave.ID, image), data, recipe.Persistent)}
	}
	if name := indexName(c.Rank, image); was.State != c.State && d.Wave.indexed() {
		ops = append(ops,
			recipe.OpDelete(statePath(d.Wave.ID, was.State)+"/"+name, recipe.AnyVersion),
			recipe.OpCreate(statePath(d.Wave.ID, c.State)+"/"+name, nil, recipe.Persistent))
	}
	flag, err := d.flag(ctx, image, c.Flag)
	return append(ops, flag...), err
}

// flag are the steps that change an image's request-build flag. That of a wave has two
// marks: its data names the wave, and it was set after it was created, so that its version
// tells it from a plain one, which a deletion of ours can never hit.
func (d *Drive) flag(ctx context.Context, image string, what Flag) ([]recipe.Op, error) {
	if what == FlagStays {
		return nil, nil
	}
	path := zkmodel.RequestBuildPath(image)
	make := flagOps(path, d.Wave.ID)
	if what == FlagMade {
		return make, nil
	}
	data, stat, err := d.store.session.Get(ctx, path)
	there := err == nil
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	switch {
	case what == FlagReplaced && there:
		return append([]recipe.Op{recipe.OpDelete(path, stat.Version)}, make...), nil
	case what == FlagReplaced:
		return make, nil
	case there && isFlagOf(d.Wave.ID, data, stat):
		return d.take(ctx, path, stat)
	}
	return nil, nil
}

// take is the step that removes this wave's own flag, and no other that replaces it meanwhile.
// Nothing checks a creation in a transaction, and a flag that replaces ours may have its
// version. So ours is set once more before, behind the fence, to name its own creation: it has
// a version then that only flags have which are about to be removed. If another was hit,
// the creation that it names is not its own: it is nobody's any more, and stays.
func (d *Drive) take(ctx context.Context, path string, seen recipe.Stat) ([]recipe.Op, error) {
	results, err := d.held.Multi(ctx, recipe.OpSet(path, flagOf{d.Wave.ID, seen.Czxid}.data(), seen.Version))
	if err != nil {
		return nil, fmt.Errorf("withdraw %s: %w", path, err)
	}
	if now := results[0].Stat; now.Czxid == seen.Czxid {
		return []recipe.Op{recipe.OpDelete(path, now.Version)}, nil
	}
	return nil, nil
}

// flagOf is what the flag of a wave holds. Nodepool passes over it.
type flagOf struct {
	Wave  string `json:"wave"`
	Czxid int64  `json:"czxid,omitempty"` // the flag's own creation, once it is about to be removed
}

func (f flagOf) data() []byte {
	data, _ := json.Marshal(f) // strings and numbers always encode
	return data
}

// isFlagOf reports whether a flag is a wave's.
func isFlagOf(id string, data []byte, stat recipe.Stat) bool {
	var f flagOf
	if stat.Version == 0 || json.Unmarshal(data, &f) != nil || f.Wave != id {
		return false
	}
	return stat.Version == 1 && f.Czxid == 0 || f.Czxid == stat.Czxid
}

func isNotFound(err error) bool { return errors.Is(err, zkmodel.ErrNotFound) }
