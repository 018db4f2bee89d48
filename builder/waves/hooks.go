package waves

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// forgetEvery is how often deliveries are forgotten that are known for long enough.
const forgetEvery = time.Hour

// leaveBe is how long a delivery may stand in the queue before who has no hooks asks whether
// anybody takes it: most are gone by then.
const leaveBe = time.Second

// listen makes waves of what hooks are told, during one session. Of several builders one
// does, and the others stand in line. Without hooks a builder sees whether anything is left.
func (d *Driver) listen(ctx context.Context, s *recipe.Session) error {
	for {
		changed := d.reconfigured()
		work, failed := d.answer, "Nothing is made of what hooks are told; it is tried again"
		if len(d.Config().Hooks) == 0 {
			work, failed = func(ctx context.Context, s *recipe.Session) error { return d.leftovers(ctx, s, changed) },
				"What hooks were told, and no builder waits for, is not seen; it is tried again"
		}
		if err := work(ctx, s); err != nil && ctx.Err() == nil {
			d.Log.Warn(failed, "error", err)
			_ = clock.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// leftovers tidies what hooks were told of which no builder makes waves any more, until the
// configuration changes. At rest it waits by watches alone, and writes nothing.
func (d *Driver) leftovers(ctx context.Context, s *recipe.Session, changed <-chan struct{}) error {
	bound, end := context.WithCancel(ctx)
	queue, ended := d.followQueue(bound)
	defer ended()
	defer end()
	changes := queue.Subscribe(nil)
	defer changes.Close()
	if err := queue.Barrier(ctx); err != nil {
		return err
	}
	look, waits := clock.NewTimer(ctx, 0), true
	defer look.Stop()
	for {
		select {
		case <-look.C:
			again := time.Duration(0)
			if _, there := queue.Get(hook.QueuePath); there { // else no hook was ever told anything
				again = d.lookForLeftovers(ctx, s, len(queue.Children(hook.QueuePath)) > 0)
			}
			if waits = again == forgetEvery; again > 0 {
				look.Reset(again)
			}
		case <-changes.C():
			changes.Take()
			if !waits && len(queue.Children(hook.QueuePath)) > 0 {
				waits = true
				look.Reset(leaveBe)
			}
		case <-changed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// lookForLeftovers tidies if that is to be done and nobody else's, and says when to look again:
// 0 is when something is told.
func (d *Driver) lookForLeftovers(ctx context.Context, s *recipe.Session, waits bool) (again time.Duration) {
	others, err := s.Children(ctx, hook.LockPath)
	if len(others) > 0 {
		return forgetEvery // a builder has hooks
	}
	if errors.Is(err, recipe.ErrNoNode) {
		err = nil
	}
	if err == nil && !waits {
		var fades time.Time
		fades, err = hook.NewStore(s).Fades(ctx)
		switch now := d.Now(); {
		case err == nil && fades.IsZero():
			return 0
		case err == nil && fades.After(now):
			return fades.Sub(now)
		}
	}
	if err == nil {
		err = d.tidy(ctx, s)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, recipe.ErrLocked) { // else a builder has hooks
		d.Log.Warn("What hooks were told, and no builder waits for, cannot be tidied; it is tried again", "error", err, "retry", forgetEvery)
	}
	return forgetEvery
}

// followQueue follows the queue until ctx ends; ended waits for that.
func (d *Driver) followQueue(ctx context.Context) (queue *recipe.Tree, ended func()) {
	queue = recipe.NewTree(d.Client, hook.QueuePath, recipe.TreeOptions{
		Filter: func(string) recipe.Interest { return recipe.None }, Logger: d.Log,
	})
	var work sync.WaitGroup
	work.Go(func() { _ = queue.Run(ctx) }) // until ctx ends
	return queue, work.Wait
}

// tidy drops what hooks were told too long ago, if no builder makes waves of it.
func (d *Driver) tidy(ctx context.Context, s *recipe.Session) error {
	held, err := recipe.NewLock(s, hook.LockPath, d.Host, recipe.EnsureParents()).Try(ctx)
	if err != nil {
		return err
	}
	store := hook.NewStore(s)
	list, err := store.Waiting(ctx)
	errs, waiting := []error{err}, 0
	for _, one := range list {
		if d.Now().Sub(one.Received) <= hook.Memory {
			waiting++
			continue
		}
		errs = append(errs, store.Drop(ctx, held, one, "no builder has hooks"))
	}
	if waiting > 0 {
		d.Log.Warn("Hooks were told what no builder makes waves of: none has hooks in its configuration; it goes after a week", "count", waiting)
	}
	return errors.Join(append(errs, store.Forget(ctx, held, d.Now()), held.Release(ctx))...)
}

// answer makes waves under the lock, while there are hooks.
func (d *Driver) answer(ctx context.Context, s *recipe.Session) error {
	held, err := recipe.NewLock(s, hook.LockPath, d.Host, recipe.EnsureParents()).Acquire(ctx)
	if err != nil {
		return err
	}
	defer d.Hold(hook.LockPath)()
	bound, unbind := held.Bind(ctx)
	queue, ended := d.followQueue(bound)
	err = d.hooks(bound, hook.NewStore(s), held, queue)
	unbind()
	ended()
	return errors.Join(err, held.Release(ctx))
}

// hooks makes waves of deliveries as they come.
func (d *Driver) hooks(ctx context.Context, store *hook.Store, held *recipe.Held, queue *recipe.Tree) error {
	changes := queue.Subscribe(nil)
	defer changes.Close()
	var forgotten time.Time
	for {
		changed := d.reconfigured()
		if len(d.Config().Hooks) == 0 {
			return nil
		}
		if clock.Since(ctx, forgotten) >= forgetEvery {
			forgotten = clock.Now(ctx)
			if err := store.Forget(ctx, held, d.Now()); err != nil {
				return err
			}
		}
		if err := queue.Barrier(ctx); err != nil {
			return err
		}
		if len(queue.Children(hook.QueuePath)) > 0 {
			if err := d.drain(ctx, store, held); err != nil {
				return err
			}
		}
		select {
		case <-changes.C():
			changes.Take()
		case <-changed:
		case <-clock.After(ctx, forgetEvery):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drain makes a wave of each delivery that waits.
func (d *Driver) drain(ctx context.Context, store *hook.Store, held *recipe.Held) error {
	list, err := store.Waiting(ctx)
	if err != nil && !recipe.Unreadable(err) {
		return err
	}
	errs := []error{err} // each of one delivery, which keeps no other waiting
	if err := d.Mirror.Barrier(ctx); err != nil {
		return err
	}
	defer d.Deciding(ctx)()
	for _, one := range list {
		if err := d.deliver(ctx, store, held, one); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.Hook, err))
		}
	}
	return errors.Join(errs...)
}

// deliver makes a wave of a delivery. The transaction that makes it takes the delivery out
// of the queue, so that there is one, also where the builder dies meanwhile.
func (d *Driver) deliver(ctx context.Context, store *hook.Store, held *recipe.Held, one *hook.Delivery) error {
	cfg := d.Config()
	at := slices.IndexFunc(cfg.Hooks, func(h configs.Hook) bool { return h.Name == one.Hook })
	log := d.Log.With("hook", one.Hook, "delivery", one.ID)
	switch {
	case one.Received.IsZero():
		log.Error("What a hook was told cannot be decoded; nothing is made of it")
		return store.Drop(ctx, held, one, "it cannot be decoded")
	case at < 0 && d.Now().Sub(one.Received) > hook.Memory:
		log.Error("What a hook was told has waited too long for its hook to be configured; nothing is made of it")
		return store.Drop(ctx, held, one, "the hook is not configured")
	case at < 0:
		d.waits.Warn(log, "What a hook was told waits until the hook is configured again")
		return nil
	}
	h := &cfg.Hooks[at]
	wish := Wish{All: h.All, Match: h.Match, Order: wave.Order(h.Order), Until: wave.Until(h.Until)}
	jobs, err := Jobs(cfg, wish, func(image string) int64 { return NewestReady(d.Mirror.Image(image)) })
	if err != nil {
		log.Error("A hook has no images; nothing is made of what it was told", "error", err)
		return store.Drop(ctx, held, one, err.Error())
	}
	w := configured(&h.Wave)
	w.ID, w.By, w.Reason = deliveryWave(one), "hook "+h.Name, one.String()
	if h.Reason != "" {
		w.Reason = h.Reason + ": " + w.Reason
	}
	done, err := store.Done(ctx, held.Fence(), one, hook.Outcome{Wave: w.ID})
	if err != nil {
		return err
	}
	made, err := wave.NewStore(held.Session()).Create(ctx, w, jobs, done...)
	switch {
	case errors.Is(err, wave.ErrTooLarge):
		log.Error("The wave of a hook is too large; nothing is made of what it was told", "images", len(jobs), "error", err)
		return store.Drop(ctx, held, one, err.Error())
	case err != nil:
		return err
	case !made:
		return store.Drop(ctx, held, one, "there is a wave "+w.ID+" already")
	}
	log.Info("A wave is made of what a hook was told", "wave", w.ID, "images", len(jobs), "why", w.Reason)
	return nil
}

// deliveryWave is the id of the wave of a delivery: each has its own.
func deliveryWave(one *hook.Delivery) string {
	sum := sha256.Sum256([]byte(one.Hook + "," + one.ID))
	return one.Hook + "-" + one.Received.UTC().Format("20060102T1504Z") + "-" + hex.EncodeToString(sum[:4])
}

// configured is a wave as the configuration wants it.
func configured(w *configs.Wave) *wave.Wave {
	return &wave.Wave{
		Reason: w.Reason, Order: wave.Order(w.Order), Priority: wave.Priority(w.Priority), MaxParallel: w.MaxParallel, Until: wave.Until(w.Until), MaxFailures: w.MaxFailures,
	}
}
