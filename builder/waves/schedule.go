package waves

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// plan makes waves that are due by the configuration, during one session. Each builder
// looks; the transaction that makes a wave also writes when it was due, so that one of them
// makes it, and only once, over restarts too.
func (d *Driver) plan(ctx context.Context, s *recipe.Session) error {
	store := wave.NewStore(s)
	for {
		changed := d.reconfigured()
		wait, any := d.allDue(ctx, store)
		var alarm <-chan time.Time
		if any {
			alarm = clock.After(ctx, max(wait, time.Millisecond))
		}
		select {
		case <-alarm:
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// allDue makes the waves whose time has come, by one configuration, and says how long it is to
// the next, and whether there are any.
func (d *Driver) allDue(ctx context.Context, store *wave.Store) (wait time.Duration, any bool) {
	defer d.Deciding(ctx)()
	cfg := d.Config()
	wait = d.Resync
	for i := range cfg.Waves {
		next, err := d.due(ctx, store, cfg, &cfg.Waves[i])
		if err != nil && ctx.Err() == nil {
			d.Log.Warn("Cannot begin a wave that may be due; it is tried again", "wave", cfg.Waves[i].Name, "error", err)
			next = d.Now().Add(time.Second)
		}
		if !next.IsZero() {
			wait = min(wait, next.Sub(d.Now()))
		}
	}
	return wait, len(cfg.Waves) > 0
}

// due makes a wave if its time has come, and says when it comes next. However many times
// were missed, one wave catches up with all of them.
func (d *Driver) due(ctx context.Context, store *wave.Store, cfg *configs.Config, w *configs.Wave) (time.Time, error) {
	schedule, err := cron.ParseStandard(w.Schedule)
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // loading has told of it: it is never due
	}
	zone, err := time.LoadLocation(w.Timezone)
	if err != nil {
		zone = time.UTC
	}
	last, err := store.Scheduled(ctx, w.Name, d.Now())
	if err != nil {
		return time.Time{}, err
	}
	now, due := d.Now(), time.Time{}
	next := schedule.Next(last.Time.In(zone))
	for ; !next.IsZero() && !next.After(now); next = schedule.Next(next) {
		due = next
	}
	if due.IsZero() {
		return next, nil
	}
	err = d.make(ctx, store, cfg, w, last, due.UTC())
	if errors.Is(err, recipe.ErrVersion) { // another builder was faster
		err = nil
	}
	return next, err
}

// make makes the wave that was due at a time.
func (d *Driver) make(ctx context.Context, store *wave.Store, cfg *configs.Config, w *configs.Wave, last wave.Last, due time.Time) error {
	if err := d.Mirror.Barrier(ctx); err != nil {
		return err
	}
	wish := Wish{All: w.All, Match: w.Match, Order: wave.Order(w.Order), Until: wave.Until(w.Until)}
	jobs, err := Jobs(cfg, wish, func(image string) int64 { return NewestReady(d.Mirror.Image(image)) })
	if err != nil {
		d.Log.Error("A wave of the configuration has no images; it begins no sooner than its next time", "wave", w.Name, "error", err)
		return store.Skip(ctx, last, due)
	}
	id := w.Name + "-" + due.Format("20060102T1504Z")
	one := configured(w)
	one.ID, one.By, one.Schedule = id, "schedule "+w.Name, w.Name
	made, err := store.CreateScheduled(ctx, one, jobs, last, due)
	switch {
	case errors.Is(err, wave.ErrTooLarge):
		d.Log.Error("A wave of the configuration is too large; it begins no sooner than its next time", "wave", w.Name, "images", len(jobs), "error", err)
		return store.Skip(ctx, last, due)
	case err == nil && made:
		d.Log.Info("A wave is due", "wave", id, "images", len(jobs), "why", w.Reason)
	}
	return err
}
