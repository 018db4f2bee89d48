package waves

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// work is one wave under its lock.
type work struct {
	*Driver
	*wave.Drive
	store  *wave.Store
	ranks  map[string]int    // jobs by image
	dirty  map[int]bool      // jobs to decide about
	stuck  map[int]bool      // those that wait for more than room, as they were told
	alarms map[int]time.Time // when time changes something about a job
	hold   string            // why none begins, when they were looked at last
	cancel string
	hosts  hosts
	begun  map[int]bool // jobs whose build is under way
	lively time.Time    // when a build of it began or ended last
	behind behind
}

// work drives a wave until it is over.
func (d *Driver) work(ctx context.Context, store *wave.Store, held *recipe.Held, id string) error {
	opened, err := store.Open(ctx, held, id)
	if err != nil {
		return err
	}
	d.Step(Laid)
	w := &work{Driver: d, Drive: opened, store: store, ranks: map[string]int{}, dirty: map[int]bool{}, stuck: map[int]bool{}, begun: map[int]bool{}, alarms: map[int]time.Time{}}
	for rank, job := range w.Jobs {
		w.ranks[job.Image] = rank
	}
	w.lively = w.since()
	images, builders := d.Mirror.SubscribeImages(), d.Mirror.SubscribeComponents()
	defer images.Close()
	defer builders.Close()
	trials := d.Mirror.SubscribeValidations()
	defer trials.Close()
	pauses := d.Mirror.SubscribePauses()
	defer pauses.Close()
	marks := d.tree.Subscribe(nil)
	defer marks.Close()
	resync := clock.NewTicker(ctx, d.Resync)
	defer resync.Stop()
	alarm := clock.NewTimer(ctx, 0)
	defer alarm.Stop()
	w.all()
	for {
		changed := d.reconfigured()
		over, next, err := w.turn(ctx)
		if err != nil || over {
			return err
		}
		alarm.Reset(w.until(next))
		select {
		case <-images.C():
			w.look(images.Take())
		case <-builders.C():
			builders.Take()
			w.all()
		case <-trials.C():
			trials.Take()
			w.uploads()
		case <-pauses.C():
			pauses.Take()
			w.all()
		case <-marks.C():
			marks.Take()
		case <-changed:
			w.all()
		case <-resync.C:
			w.all()
		case <-alarm.C:
			w.ring()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// all has all jobs looked at again.
func (w *work) all() {
	for rank := range w.Jobs {
		w.dirty[rank] = true
	}
	clear(w.stuck)
}

// uploads has the jobs looked at again that wait for uploads.
func (w *work) uploads() {
	for rank := range w.Jobs {
		if p := w.Job(rank); p.State == wave.Processing && p.Build != "" {
			w.dirty[rank] = true
		}
	}
}

// look has the jobs of images looked at again.
func (w *work) look(images []string) {
	for _, image := range images {
		if image == zkmodel.Folder {
			w.all()
			return
		}
		if rank, ok := w.ranks[image]; ok {
			w.dirty[rank] = true
			delete(w.stuck, rank)
		}
	}
}

// until is the time to the next alarm.
func (w *work) until(next time.Time) time.Duration {
	wait, now := w.Resync, w.Now()
	switch {
	case w.hosts.late:
		wait = min(wait, soon)
	case w.behind.why != "":
		wait = min(wait, aboveEvery)
	case !w.hosts.all || len(w.stuck) > 0:
		wait = min(wait, hostsEvery)
	}
	if !next.IsZero() {
		wait = min(wait, next.Sub(now))
	}
	for _, at := range w.alarms {
		wait = min(wait, at.Sub(now))
	}
	if w.Status.Waits && len(w.begun) == 0 {
		wait = min(wait, w.lively.Add(wave.GiveUp).Sub(now))
	}
	return max(wait, time.Millisecond)
}

// ring marks the jobs whose time has come.
func (w *work) ring() {
	now := w.Now()
	for rank, at := range w.alarms {
		if !now.Before(at) {
			delete(w.alarms, rank)
			w.dirty[rank] = true
			delete(w.stuck, rank)
		}
	}
}

// turn takes the wave as far as it goes now. It reports whether it is over, or when time
// alone changes something about it.
func (w *work) turn(ctx context.Context) (over bool, next time.Time, err error) {
	if w.Status.State == wave.Reporting && w.Over() { // what is wanted of it since comes later
		return true, next, w.tell(ctx)
	}
	if err := w.Mirror.Barrier(ctx); err != nil {
		return false, next, err
	}
	if err := w.tree.Barrier(ctx); err != nil {
		return false, next, err
	}
	marks, there := w.tree.Marks(w.Wave.ID)
	if !there {
		return false, next, fmt.Errorf("drive wave %s: %w", w.Wave.ID, zkmodel.ErrNotFound)
	}
	if err := w.retry(ctx, marks); err != nil {
		return false, next, err
	}
	if w.Status.State.Over() {
		return true, next, nil
	}
	w.wish(marks)
	if err := w.survey(ctx); err != nil {
		return false, next, err
	}
	if w.hosts.late {
		return false, next, nil
	}
	next, begun, err := w.goOn(ctx, marks)
	if err != nil || !begun || !w.Over() {
		return false, next, err
	}
	return true, next, w.end(ctx)
}

// goOn begins the wave, and decides about its jobs, by one configuration. It reports whether
// the wave has begun.
func (w *work) goOn(ctx context.Context, marks map[wave.Mark]wave.Word) (next time.Time, begun bool, err error) {
	defer w.Deciding(ctx)()
	next, begun, err = w.begin(ctx)
	if err == nil && begun {
		err = w.lookAbove(ctx)
	}
	if err == nil && begun {
		err = w.decide(ctx, marks)
	}
	return next, begun, err
}

// wish notes what operators want of the wave. Where that has changed, all jobs are
// looked at again.
func (w *work) wish(marks map[wave.Mark]wave.Word) {
	hold, cancel := "", ""
	if word, held := w.tree.AllHeld(); held {
		hold = "all waves are held " + word.String()
	}
	if word, held := marks[wave.MarkHold]; held {
		hold = "the wave is held: " + word.String()
	}
	if word, cancelled := marks[wave.MarkCancel]; cancelled {
		cancel = "cancelled: " + word.String()
	}
	if hold != w.hold || cancel != w.cancel {
		w.hold, w.cancel = hold, cancel
		w.all()
	}
	for mark := range marks {
		if rank, ok := w.ranks[mark.Job()]; ok {
			w.dirty[rank] = true
			delete(w.stuck, rank)
		}
	}
	for rank := range w.Jobs { // one that a mark of its own held, which is gone
		if w.hold == "" && w.Job(rank).State == wave.Held {
			w.dirty[rank] = true
		}
	}
}

// begin begins a wave whose time has come, and reports whether it has begun.
func (w *work) begin(ctx context.Context) (next time.Time, begun bool, err error) {
	if w.Status.State == wave.Processing || w.Status.State == wave.Reporting {
		return next, true, nil
	}
	now := w.Now()
	to, note := wave.Processing, ""
	switch at := w.Wave.At; {
	case w.cancel != "":
	case w.hold != "" && !w.Wave.Follow: // whose request is taken back
		to, note = wave.Held, w.hold
	case at != nil && now.Before(*at):
		to, note, next = wave.Pending, "begins at "+at.UTC().Format(time.RFC3339), *at
	}
	since := w.Wave.Stat.Czxid
	if w.Wave.At != nil && to == wave.Processing {
		if since, err = zkmodel.NewStore(w.store.Session(), w.Now).Ltime(ctx); err != nil {
			return next, false, err
		}
	}
	if to == w.Status.State && note == w.Status.Note {
		return next, false, nil
	}
	var moved error
	err = w.Save(ctx, func(s *wave.Status) {
		if s.State == wave.Held && to != wave.Held {
			moved = wave.Move(s, wave.Pending, now)
		}
		if moved == nil {
			moved = wave.Move(s, to, now)
		}
		s.Note, s.Driver = note, w.Host
		if to == wave.Processing {
			s.Since, s.Began = since, &now
			s.Estimate = w.Estimate(func(image string) *wave.Estimate { return wave.EstimateOf(w.Mirror.Image(image)) }, w.hosts.workers())
		}
	})
	if err == nil {
		err = moved
	}
	if err != nil || to != wave.Processing {
		return next, false, err
	}
	w.Log.Info("A wave begins", "wave", w.Wave.ID, "images", len(w.Jobs), "why", w.Wave.Reason)
	w.Step(Begun)
	return next, true, nil
}

// end notes what the wave has come to, and tells it.
func (w *work) end(ctx context.Context) error {
	if w.Status.State != wave.Reporting {
		if err := w.Settle(ctx, w.cancel != "", w.Now()); err != nil {
			return err
		}
		w.Step(Reported)
	}
	return w.tell(ctx)
}

// tell tells of a wave that is reporting. What is in the way of that is noted: who waits for
// the report sees why there is none.
func (w *work) tell(ctx context.Context) error {
	report, err := w.Finish(ctx, w.Now())
	if err != nil {
		if !conflict(err) && ctx.Err() == nil {
			note := "its report cannot be written: " + err.Error()
			err = errors.Join(err, w.Save(ctx, func(s *wave.Status) { s.Note, s.Driver = note, w.Host }))
		}
		return err
	}
	w.Metrics.WaveEnded(report.State)
	w.Log.Info("A wave is over", "wave", w.Wave.ID, "state", report.State, "images", len(report.Jobs))
	w.Step(Ended)
	return nil
}

// retry puts back the jobs that an operator wants tried again, and takes his marks away
// with the last of them.
func (w *work) retry(ctx context.Context, wanted map[wave.Mark]wave.Word) error {
	var changes []wave.Change
	var marks []recipe.Op
	for mark := range wanted {
		if mark != wave.MarkRetry && mark != wave.MarkRetry.Of(mark.Job()) {
			continue
		}
		marks = append(marks, w.Unmarked(mark))
		for rank, job := range w.Jobs {
			p := w.Job(rank)
			if mark.Job() != "" && mark.Job() != job.Image || p.State != wave.Failed && p.State != wave.Cancelled ||
				slices.ContainsFunc(changes, func(c wave.Change) bool { return c.Rank == rank }) {
				continue
			}
			if err := wave.Move(&p, wave.Pending, w.Now()); err != nil {
				return err
			}
			p.Tries, p.NotBefore, p.Note = 0, nil, ""
			changes = append(changes, wave.Change{Rank: rank, Step: wave.Step{Progress: p}})
			w.dirty[rank] = true
		}
	}
	if len(marks) == 0 {
		return nil
	}
	if w.Status.State.Over() && len(changes) > 0 {
		reopened, err := w.Reopened(ctx)
		if err != nil {
			return err
		}
		marks = append(marks, reopened...)
	}
	var moved error
	err := w.Apply(ctx, changes, func(s *wave.Status) {
		if s.State.Over() && len(changes) > 0 {
			moved = wave.Move(s, wave.Processing, w.Now())
			s.End, s.Ended = "", nil
		}
		s.Forgiven = min(s.Forgiven, s.Counts[wave.Failed])
	}, marks...)
	if err != nil {
		return err
	}
	return moved
}
