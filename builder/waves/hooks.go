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
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// forgetEvery is how often deliveries are forgotten that are known for long enough.
const forgetEvery = time.Hour

// listen makes waves of what hooks are told, during one session. Of several builders one
// does, and the others stand in line. Without hooks nothing is read.
func (d *Driver) listen(ctx context.Context, s *recipe.Session) error {
	for {
		changed := d.reconfigured()
		if len(d.Config().Hooks) == 0 {
			select {
			case <-changed:
			case <-d.leftovers(ctx, s):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			continue
		}
		if err := d.answer(ctx, s); err != nil && ctx.Err() == nil {
			d.Log.Warn("Nothing is made of what hooks are told; it is tried again", "error", err)
			_ = kit.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// leftovers tidies what hooks were told of which no builder makes waves any more, and says
// when to look again: never, where no hook was ever told anything.
func (d *Driver) leftovers(ctx context.Context, s *recipe.Session) <-chan time.Time {
	_, there, err := s.Exists(ctx, hook.QueuePath)
	if err == nil && !there {
		return nil
	}
	if err == nil {
		err = d.tidy(ctx, s)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, recipe.ErrLocked) { // else a builder has hooks
		d.Log.Warn("What hooks were told, and no builder waits for, cannot be tidied; it is tried again", "error", err, "retry", forgetEvery)
	}
	return time.After(forgetEvery)
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
	queue := recipe.NewTree(d.Client, hook.QueuePath, recipe.TreeOptions{
		Filter: func(string) recipe.Interest { return recipe.None }, Logger: d.Log,
	})
	var follow sync.WaitGroup
	follow.Go(func() { _ = queue.Run(bound) }) // until bound ends
	err = d.hooks(bound, hook.NewStore(s), held, queue)
	unbind()
	follow.Wait()
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
		if time.Since(forgotten) >= forgetEvery {
			forgotten = time.Now()
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
		case <-time.After(forgetEvery):
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
	case errors.Is(err, recipe.ErrTooLarge):
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
