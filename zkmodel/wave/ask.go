package wave

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Ask makes a wave of one image, and its flag in the same transaction: a build that begins
// for the flag completes the job, and nobody sees one without the other. A flag that is
// there is replaced, as by zkmodel.Store.RequestBuild.
//
// Errors: as Create.
func (st *Store) Ask(ctx context.Context, w *Wave, job Job) error {
	path := zkmodel.RequestBuildPath(job.Image)
	for {
		if err := st.session.EnsurePath(ctx, zkmodel.ImagePath(job.Image)); err != nil {
			return fmt.Errorf("ask for %s: %w", job.Image, err)
		}
		stat, there, err := st.session.Exists(ctx, path)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", job.Image, err)
		}
		ops := flagOps(path, w.ID)
		if there {
			ops = append([]recipe.Op{recipe.OpDelete(path, stat.Version)}, ops...)
		}
		made, err := st.Create(ctx, w, []Job{job}, ops...)
		changed := errors.Is(err, recipe.ErrNodeExists) || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrVersion)
		switch {
		case changed && ctx.Err() == nil: // the flag came, or went, or is another's
		case err != nil:
			return err
		case !made:
			return fmt.Errorf("ask for %s: wave %s: %w", job.Image, w.ID, recipe.ErrNodeExists)
		default:
			return nil
		}
	}
}

// flagOps make the flag of a wave.
func flagOps(path, id string) []recipe.Op {
	return []recipe.Op{recipe.OpCreate(path, nil, recipe.Persistent), recipe.OpSet(path, flagOf{Wave: id}.data(), 0)}
}

// Anothers reports whether the flag of an image that was seen, by the transaction that made it, is none of a
// wave's. What is not there any more is not judged: it may have been the wave's own, which a hold has taken back.
func (st *Store) Anothers(ctx context.Context, id, image string, seen int64) (bool, error) {
	data, stat, err := st.session.Get(ctx, zkmodel.RequestBuildPath(image))
	if errors.Is(err, recipe.ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the request to build %s: %w", image, err)
	}
	return stat.Czxid == seen && !isFlagOf(id, data, stat), nil
}

// Running is a build under way that a job of a wave waits for.
type Running struct {
	Image, Build string
	// Asked says that it began for the flag that the wave made: another's, or one that is due by its
	// age, counts for the job, too.
	Asked bool
}

// Running are the builds under way that jobs of a wave wait for; image, if not "", names one job.
func (st *Store) Running(ctx context.Context, models *zkmodel.Store, e *Entry, image string) ([]Running, error) {
	rows, _, err := st.Rows(ctx, e.ID, []State{Processing}, maxJobs)
	if err != nil {
		return nil, err
	}
	var list []Running
	for _, r := range rows {
		if r.Build != "" || image != "" && image != r.Image {
			continue
		}
		i, err := models.Image(ctx, r.Image)
		if isNotFound(err) || err == nil && (!i.BuildsLocked || len(i.Builds) == 0) {
			continue
		}
		if err != nil {
			return nil, err
		}
		b := i.Builds[len(i.Builds)-1]
		if b.Broken != nil || b.State != zkmodel.BuildBuilding || b.Stat.Czxid <= e.Status.Since {
			continue
		}
		data, flag, err := st.session.Get(ctx, zkmodel.RequestBuildPath(r.Image))
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return nil, fmt.Errorf("read the request to build %s: %w", r.Image, err)
		}
		asked := err == nil && isFlagOf(e.ID, data, flag) && flag.Czxid < b.Stat.Czxid
		list = append(list, Running{r.Image, b.ID, asked})
	}
	return list, nil
}

// Unasked are the waves that follow a request for a build of an image (Wave.Follow) which is not
// made, or was taken back, as all waves are held. Of other waves little is read.
func (st *Store) Unasked(ctx context.Context, image string) ([]string, error) {
	ids, err := st.names(ctx, requestsPath)
	if err != nil {
		return nil, fmt.Errorf("list waves: %w", err)
	}
	var unasked []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		is, err := st.unasked(ctx, id, image)
		if err != nil && !isNotFound(err) && !errors.Is(err, zkmodel.ErrUndecodable) {
			return nil, err
		}
		if is {
			unasked = append(unasked, id)
		}
	}
	return unasked, nil
}

func (st *Store) unasked(ctx context.Context, id, image string) (bool, error) {
	data, stat, err := st.session.Get(ctx, st.queue.RequestPath(id))
	if err != nil {
		return false, fmt.Errorf("read wave %s: %w", id, notFound(err))
	}
	if w := decode(id, data, stat, []byte("{}")); w.Broken != nil || !w.Follow {
		return false, w.Broken
	}
	jobs, err := st.Jobs(ctx, id)
	if err != nil || !has(jobs, image) {
		return false, err
	}
	e, err := st.Wave(ctx, id)
	if err != nil {
		return false, err
	}
	p, _, err := st.progress(ctx, id, image)
	_, cancelled := e.Marks[MarkCancel]
	return err == nil && e.Active() && !cancelled && e.unasked(p), err
}

// Withdraw has all Unasked of an image end, so that none of them asks once waves are released;
// they are cancelled by who drives them. It returns their ids.
func (st *Store) Withdraw(ctx context.Context, image string, word Word) ([]string, error) {
	ids, err := st.Unasked(ctx, image)
	for n, id := range ids {
		if err := st.Set(ctx, id, MarkCancel, word); err != nil {
			return ids[:n], err
		}
	}
	return ids, err
}
