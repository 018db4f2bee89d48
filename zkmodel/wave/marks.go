package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Set makes a mark of a wave, or of one of its jobs. One that is there stays as it is.
//
// Errors: zkmodel.ErrNotFound when there is no such wave.
func (st *Store) Set(ctx context.Context, id string, mark Mark, word Word) error {
	text, err := json.Marshal(word)
	if err != nil {
		return fmt.Errorf("mark wave %s: %w", id, err)
	}
	err = st.write(ctx, mark.kind(), id, mark.Job(), word, recipe.OpCreate(st.markPath(id, mark), text, recipe.Persistent))
	if err != nil && !errors.Is(err, recipe.ErrNodeExists) {
		return fmt.Errorf("mark wave %s: %w", id, notFound(err))
	}
	return nil
}

// Prioritize gives a wave that is under way another priority among waves, or one of its jobs among
// the jobs of the wave: word.Priority. That holds until it is given another, or the wave goes.
//
// Errors: zkmodel.ErrNotFound when there is no such wave.
func (st *Store) Prioritize(ctx context.Context, id, image string, word Word) error {
	text, err := json.Marshal(word)
	if err != nil {
		return fmt.Errorf("prioritize wave %s: %w", id, err)
	}
	mark := MarkPriority
	if image != "" {
		mark = mark.Of(image)
	}
	path := st.markPath(id, mark)
	write := func(op recipe.Op) error { return st.write(ctx, event.WavePrioritized, id, image, word, op) }
	err = write(recipe.OpCreate(path, text, recipe.Persistent))
	if errors.Is(err, recipe.ErrNodeExists) {
		err = write(recipe.OpSet(path, text, recipe.AnyVersion))
	}
	if err != nil {
		return fmt.Errorf("prioritize wave %s: %w", id, notFound(err))
	}
	return nil
}

// unmark is Clear of what another mark tells of.
func (st *Store) unmark(ctx context.Context, id string, mark Mark) error {
	err := st.session.Delete(ctx, st.markPath(id, mark), recipe.AnyVersion)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("unmark wave %s: %w", id, err)
	}
	return nil
}

// AllHeld says why all waves are held, and whether they are.
func (st *Store) AllHeld(ctx context.Context) (word Word, held bool, err error) {
	text, _, err := st.session.Get(ctx, HoldPath)
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return word, false, nil
	case err != nil:
		return word, false, fmt.Errorf("read %s: %w", HoldPath, err)
	}
	_ = json.Unmarshal(text, &word) // what cannot be decoded holds, too
	return word, true, nil
}

// ErrNotOver says that a wave is not over, and so is not deleted.
var ErrNotOver = errors.New("the wave is not over; wave cancel ends it")

// ErrFollows says that a wave is one that image-build has made: it can be cancelled only.
var ErrFollows = errors.New("it follows a request of image-build: image-build asks anew, image-build-cancel withdraws it")

// busy reports whether a wave must not be removed: it is not over. One that was cancelled
// before it began may go, as perhaps no builder is there that would end it.
func (e *Entry) busy() bool {
	_, cancelled := e.Marks[MarkCancel]
	begun := e.Status.State != Pending && e.Status.State != Held
	return e.Active() && (begun || !cancelled)
}

// Delete removes a wave that is over, or that was cancelled before it began, and tells who does.
//
// Errors: zkmodel.ErrNotFound, ErrNotOver, recipe.ErrWaited, recipe.ErrLocked.
func (st *Store) Delete(ctx context.Context, id string, word Word) error {
	return st.delete(ctx, id, func(held *recipe.Held) error {
		return st.telling(ctx, event.WaveDeleted, id, "", word, func(also []recipe.Op) error {
			return st.queue.Remove(ctx, held, id, also...)
		})
	})
}

// Expire is Delete of a wave that has been over for long, which nobody is told of.
func (st *Store) Expire(ctx context.Context, id string) error {
	return st.delete(ctx, id, func(held *recipe.Held) error { return st.queue.Remove(ctx, held, id) })
}

func (st *Store) delete(ctx context.Context, id string, remove func(*recipe.Held) error) error {
	e, err := st.Wave(ctx, id)
	if err != nil {
		return err
	}
	if e.busy() {
		return fmt.Errorf("delete wave %s: %w", id, ErrNotOver)
	}
	held, err := st.queue.TryTake(ctx, id, "delete")
	if err != nil {
		return fmt.Errorf("delete wave %s: %w", id, notFound(err))
	}
	if e, err = st.Wave(ctx, id); err == nil && e.busy() { // retried since
		err = ErrNotOver
	}
	if err == nil {
		err = remove(held)
	}
	if err != nil {
		return fmt.Errorf("delete wave %s: %w", id, errors.Join(err, held.Release(ctx)))
	}
	if err := held.Release(ctx); err != nil {
		return fmt.Errorf("delete wave %s: %w", id, err)
	}
	return st.queue.Sweep(ctx) // its lock, which was held until now
}

func (st *Store) markPath(id string, mark Mark) string {
	return st.queue.RequestPath(id) + "/" + string(mark)
}

// Retry has the failed and cancelled jobs of a wave tried again, or that of one image.
//
// Errors: zkmodel.ErrNotFound.
func (st *Store) Retry(ctx context.Context, id, image string, word Word) error {
	cancel, retry := MarkCancel, MarkRetry
	if image != "" {
		cancel, retry = cancel.Of(image), retry.Of(image)
	}
	e, err := st.Wave(ctx, id)
	if err != nil {
		return err
	}
	if e.Follow {
		return fmt.Errorf("retry wave %s: %w", id, ErrFollows)
	}
	if _, cancelled := e.Marks[MarkCancel]; cancelled && image != "" {
		return fmt.Errorf("retry %s of wave %s: the wave is cancelled: wave retry %s takes that back", image, id, id)
	}
	if image != "" {
		jobs, err := st.Jobs(ctx, id)
		if err != nil {
			return err
		}
		if !has(jobs, image) {
			return fmt.Errorf("retry %s of wave %s: %w", image, id, zkmodel.ErrNotFound)
		}
	} else {
		for mark := range e.Marks {
			if mark.Job() != "" && mark == MarkCancel.Of(mark.Job()) {
				if err := st.unmark(ctx, id, mark); err != nil {
					return err
				}
			}
		}
	}
	if err := st.unmark(ctx, id, cancel); err != nil {
		return err
	}
	return st.Set(ctx, id, retry, word)
}
