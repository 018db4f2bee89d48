package waves

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/source"
	"poolkeeper/zkmodel/wave"
)

// watch makes waves of what has changed at sources, during one session. Of several builders
// one looks, and the others stand in line. Without sources nothing is read.
func (d *Driver) watch(ctx context.Context, s *recipe.Session) error {
	for {
		changed := d.reconfigured()
		cfg := d.Config()
		d.Metrics.SourcesAre(func(name string) bool { return keeps(cfg, name) })
		if len(cfg.Sources) == 0 {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := d.elected(ctx, s); err != nil && ctx.Err() == nil {
			d.Log.Warn("Sources are not looked at; it is tried again", "error", err)
			_ = clock.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// elected looks at sources under the lock, as long as the configuration has the same.
func (d *Driver) elected(ctx context.Context, s *recipe.Session) error {
	held, err := recipe.NewLock(s, source.LockPath, d.Host, recipe.EnsureParents()).Acquire(ctx)
	if err != nil {
		return err
	}
	bound, unbind := held.Bind(ctx)
	release := d.Hold(source.LockPath)
	err = d.sources(bound, held)
	d.Metrics.SourcesLeft()
	release()
	unbind()
	return errors.Join(err, held.Release(ctx))
}

func (d *Driver) sources(ctx context.Context, held *recipe.Held) error {
	list := d.Config().Sources
	looking, end := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer end()
	for i := range list {
		looks.Go(func() { d.lookEvery(looking, held, &list[i]) })
	}
	for {
		changed := d.reconfigured()
		cfg := d.Config()
		if !reflect.DeepEqual(cfg.Sources, list) {
			return nil
		}
		again, err := source.NewStore(held.Session()).Forget(ctx, held, d.Now(), func(name string) bool { return keeps(cfg, name) })
		if err != nil {
			return err
		}
		var forget <-chan time.Time
		if !again.IsZero() {
			forget = clock.After(ctx, max(again.Sub(d.Now()), time.Second))
		}
		select {
		case <-changed:
		case <-forget:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// keeps reports whether a configuration has a source, or may lack it by mistake: what changes
// until that is mended is to be found then.
func keeps(cfg *configs.Config, name string) bool {
	return cfg.FrozenSource(name) != "" || slices.ContainsFunc(cfg.Sources, func(s configs.Source) bool { return s.Name == name })
}

// lookEvery looks at a source, at once and then again and again, until ctx ends.
func (d *Driver) lookEvery(ctx context.Context, held *recipe.Held, src *configs.Source) {
	for ctx.Err() == nil {
		if err := d.look(ctx, held, src); err != nil && ctx.Err() == nil {
			d.Log.Warn("A source cannot be looked at; it is tried again", "source", src.Name, "error", err, "retry", src.Every)
		}
		_ = clock.Sleep(ctx, src.Every) // or ctx has ended, which is looked at
	}
}

// look looks at a source once. The state of the first look is noted alone; of one that is
// another than before a wave is made, and the state noted in the same transaction.
func (d *Driver) look(ctx context.Context, held *recipe.Held, src *configs.Source) error {
	store := source.NewStore(held.Session())
	state, failed := stateOf(ctx, src)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	record, err := store.Record(ctx, src.Name)
	if err != nil {
		return err
	}
	if record.Gone != nil {
		if err := store.Found(ctx, held, record); err != nil {
			return err
		}
		if record, err = store.Record(ctx, src.Name); err != nil {
			return err
		}
	}
	if failed != nil {
		d.Metrics.SourceLooked(src.Name, "failed")
		why := d.Mask(failed.Error())
		if record.Failing == "" {
			d.Log.Warn("The command of a source fails; nothing is made of it until it answers", "source", src.Name, "error", why, "retry", src.Every)
		}
		return store.Fail(ctx, held, record, why)
	}
	if record.Failing != "" {
		if err := store.Fail(ctx, held, record, ""); err != nil {
			return err
		}
		d.Log.Info("A source answers again", "source", src.Name)
		if record, err = store.Record(ctx, src.Name); err != nil {
			return err
		}
	}
	last := record.Wave
	changed, known := record.See(state, d.Mask(string(state)), d.Now())
	switch {
	case !changed:
		d.Metrics.SourceLooked(src.Name, "same")
		return nil
	case !known:
		d.Metrics.SourceLooked(src.Name, "same")
		d.Log.Info("A source was looked at for the first time; what changes from now on makes waves", "source", src.Name, "why", record.Text)
		return store.Save(ctx, held, record)
	}
	d.Metrics.SourceLooked(src.Name, "changed")
	if waits, err := nothingBuilt(ctx, wave.NewStore(held.Session()), last); err != nil || waits {
		return err // the state before stays noted, so that the next look finds this one, or a newer
	}
	return d.follow(ctx, store, held, src, record)
}

// nothingBuilt reports whether a wave, "" for none, goes on and has brought no build yet. A
// source whose output varies makes no more waves than there are builds of them.
func nothingBuilt(ctx context.Context, store *wave.Store, id string) (bool, error) {
	if id == "" {
		return false, nil
	}
	w, err := store.Wave(ctx, id)
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case !w.Active() || w.Status.State == wave.Reporting:
		return false, nil
	}
	for state, n := range w.Status.Counts {
		if state.Over() && n > 0 {
			return false, nil
		}
	}
	rows, _, err := store.Rows(ctx, id, []wave.State{wave.Processing}, w.Jobs)
	return err == nil && !slices.ContainsFunc(rows, func(r wave.Row) bool { return r.Build != "" }), err
}

// follow makes the wave of a state that is new.
func (d *Driver) follow(ctx context.Context, store *source.Store, held *recipe.Held, src *configs.Source, record *source.Record) error {
	if err := d.Mirror.Barrier(ctx); err != nil {
		return err
	}
	defer d.Deciding(ctx)()
	log := d.Log.With("source", src.Name)
	wish := Wish{All: src.All, Match: src.Match, Order: wave.Order(src.Order), Until: wave.Until(src.Until)}
	jobs, err := Jobs(d.Config(), wish, func(image string) int64 { return NewestReady(d.Mirror.Image(image)) })
	if err != nil {
		log.Error("A source has no images; nothing is made of its change", "error", err)
		return store.Save(ctx, held, record)
	}
	w := configured(&src.Wave)
	w.ID, w.By, w.Reason = record.WaveID(), "source "+src.Name, strings.TrimPrefix(src.Reason+": "+record.Text, ": ")
	record.Wave = w.ID
	op, err := record.SaveOp()
	if err != nil {
		return err
	}
	made, err := wave.NewStore(held.Session()).Create(ctx, w, jobs, held.Fence(), op)
	switch {
	case errors.Is(err, wave.ErrTooLarge):
		log.Error("The wave of a source is too large; nothing is made of its change", "images", len(jobs), "error", err)
		record.Wave = ""
		return store.Save(ctx, held, record)
	case err != nil:
		return err
	case !made: // it was made by hand
		return store.Save(ctx, held, record)
	}
	log.Info("A source has changed; a wave is made", "wave", w.ID, "images", len(jobs), "why", w.Reason)
	return nil
}

// mostState is how long a state may be, in bytes.
const mostState = 64 << 10

// stateOf runs the command of a source, in a process group of its own and without the
// daemon's environment, and returns what it prints.
//
// Errors: why it failed. One that prints nothing has failed.
func stateOf(ctx context.Context, src *configs.Source) ([]byte, error) {
	ctx, cancel := clock.WithTimeout(ctx, src.Timeout)
	defer cancel()
	state, said := &head{most: mostState + 1}, &head{most: 1 << 10}
	cmd := exec.CommandContext(ctx, src.Command[0], src.Command[1:]...) //nolint:gosec // the operator's
	cmd.Stdout, cmd.Stderr, cmd.Dir = state, said, "/"
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	ownGroup(cmd)
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cmd.Process != nil { // what it has left in the background would be one more with each look
		_ = killGroup(cmd)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it exited with 0, and what it had left had its output
	}
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s has not ended within %s", src.Command[0], src.Timeout)
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", src.Command[0], err, bytes.TrimSpace(said.Bytes()))
	case state.Len() > mostState:
		return nil, fmt.Errorf("%s prints more than %d bytes", src.Command[0], mostState)
	case len(bytes.TrimSpace(state.Bytes())) == 0:
		return nil, fmt.Errorf("%s prints nothing", src.Command[0])
	}
	return state.Bytes(), nil
}

// head keeps the beginning of what is written.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(p []byte) (int, error) {
	if room := h.most - h.Len(); room > 0 {
		_, _ = h.Buffer.Write(p[:min(room, len(p))]) // never fails
	}
	return len(p), nil
}
