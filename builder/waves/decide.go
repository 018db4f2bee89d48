package waves

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// decide decides about the jobs of which something has changed: first those that are under
// way, so that failures hold the rest, and then those that have not begun.
func (w *work) decide(ctx context.Context, marks map[wave.Mark]wave.Word) error {
	if err := w.pass(ctx, marks, func(s wave.State) bool { return s == wave.Processing }); err != nil {
		return err
	}
	held, err := w.tooManyFailed(ctx)
	if err != nil || held {
		return err // the mark comes back as a change
	}
	err = w.pass(ctx, marks, func(s wave.State) bool { return s == wave.Pending || s == wave.Held })
	if err != nil {
		return err
	}
	return w.note(ctx)
}

// note keeps up to date what keeps the wave from going on.
func (w *work) note(ctx context.Context) error {
	waits, stalled := w.waits(), ""
	if waits && w.stalls() {
		waits, stalled = false, "no build of it has begun or ended for "+wave.GiveUp.String()+": waves of a lower priority do not wait for it"
	}
	note := cmp.Or(w.hold, w.behind.why, stalled)
	if w.Status.Note == note && w.Status.Driver == w.Host && w.Status.Waits == waits {
		return nil
	}
	return w.Save(ctx, func(s *wave.Status) { s.Note, s.Driver, s.Waits = note, w.Host, waits })
}

// pass decides about jobs in some states.
func (w *work) pass(ctx context.Context, marks map[wave.Mark]wave.Word, of func(wave.State) bool) error {
	room := w.room()
	var changes []wave.Change
	space := sync.OnceValue(w.ledger)
	for _, rank := range w.InOrder(marks) {
		p := w.Job(rank)
		if !of(p.State) || !w.dirty[rank] && (room == 0 || w.stuck[rank] || p.State != wave.Pending) {
			continue
		}
		delete(w.dirty, rank)
		step := w.step(ctx, marks, rank, room != 0, space)
		delete(w.alarms, rank)
		if !step.Again.IsZero() {
			w.alarms[rank] = step.Again
		}
		if w.begun[rank] || step.Running || step.State != p.State || step.Build != p.Build {
			w.lively = w.Now()
		}
		if w.begun[rank] = step.Running; !step.Running {
			delete(w.begun, rank)
		}
		if w.stuck[rank] = step.State == wave.Pending && step.Note != ""; !w.stuck[rank] {
			delete(w.stuck, rank)
		}
		if step.State == wave.Processing && p.State != wave.Processing && step.Build == "" {
			room--
		}
		if w.Changes(rank, step) {
			changes = append(changes, wave.Change{Rank: rank, Step: step})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	if err := w.Apply(ctx, changes, nil); err != nil {
		return err
	}
	for _, c := range changes {
		if c.State.Over() {
			w.Metrics.WaveJob(c.State)
		}
		w.Log.Debug("A job of a wave has changed", "wave", w.Wave.ID, "image", w.Jobs[c.Rank].Image, "state", c.State, "reason", c.Reason)
	}
	w.Step(Applied)
	return nil
}

// room is how many more builds may be asked for; negative is no limit.
func (w *work) room() int {
	if w.behind.why != "" {
		return 0
	}
	if w.Wave.MaxParallel == 0 {
		return -1
	}
	asked := 0
	for rank := range w.Jobs {
		if p := w.Job(rank); p.State == wave.Processing && p.Build == "" {
			asked++
		}
	}
	return max(0, w.Wave.MaxParallel-asked)
}

// step decides about one job.
func (w *work) step(ctx context.Context, marks map[wave.Mark]wave.Word, rank int, room bool, space func() *wave.Ledger) wave.Step {
	job, now, cfg := w.Jobs[rank], w.Now(), w.Config()
	sight := wave.Sight{
		Image: w.Mirror.Image(job.Image), Since: w.Status.Since, Now: now, Cancel: w.cancel, Hold: w.hold, Room: room,
		Closed:  w.closed(job),
		Gone:    w.gone,
		Passed:  func(u *zkmodel.Upload) bool { return w.passed(cfg, u) },
		Backoff: func(failures int) time.Duration { return w.Retry.After(failures, w.Wave.ID+job.Image) },
	}
	if word, cancelled := marks[wave.MarkCancel.Of(job.Image)]; cancelled && sight.Cancel == "" {
		sight.Cancel = "cancelled: " + word.String()
	}
	if word, held := marks[wave.MarkHold.Of(job.Image)]; held && sight.Hold == "" {
		sight.Hold = "held: " + word.String()
	}
	image, configured := cfg.DiskImage(job.Image)
	switch {
	case sight.Image.Paused:
		sight.Paused = sight.Image.PauseText()
	case configured && image.Pause:
		sight.Paused = "paused by the configuration"
	}
	if configured {
		sight.Window = image.NextWindow(now)
	}
	sight.Absent, sight.Nobody = w.hosts.absent(job.Image, w.Host, configured && builds(cfg, image, w.Arch))
	sight.Resting = w.hosts.resting(job.Image)
	if flag := sight.Image.BuildRequested; w.Wave.Follow && flag != nil && flag.Czxid > w.Status.Since {
		anothers, err := w.store.Anothers(ctx, w.Wave.ID, job.Image, flag.Czxid)
		sight.Mine = !anothers || err != nil // what cannot be read is not known to be another's
	}
	p := w.Job(rank)
	estimate := wave.EstimateOf(sight.Image)
	if l := space(); l != nil && estimate != nil && room && p.State != wave.Processing {
		sight.Full = l.Full(job.Image, estimate.Bytes)
	}
	step := wave.Decide(&w.Wave, job, p, sight)
	if begun := step.State == wave.Processing && p.State != wave.Processing; begun && step.Build == "" && estimate != nil && space() != nil {
		space().Take(job.Image, estimate.Bytes)
	}
	return step
}

// passed reports whether an upload that is sent and not ready is good by its trial, or has none.
// How trials go is followed as soon as that is asked.
func (w *work) passed(cfg *configs.Config, u *zkmodel.Upload) bool {
	w.Mirror.FollowValidations()
	image := w.Mirror.Image(u.Image)
	settings, _ := cfg.DiskImage(u.Image) // nil where it is not configured
	return plan.Passed(settings, image, u, w.Mirror.TrialsOf(image))
}

// gone reports whether no builder is registered of a host, of which builds have the full
// name, and components the short one.
func (w *work) gone(host string) bool {
	return !slices.ContainsFunc(w.Mirror.Components(zkmodel.KindBuilder), func(c *zkmodel.Component) bool {
		return c.Broken != nil || same(host, c.Hostname)
	})
}

// closed says which providers of a job cannot be used: those that the configuration here
// stops, those that no builder can use which has them, and those that no builder has.
func (w *work) closed(job wave.Job) map[string]string {
	closed, cfg := map[string]string{}, w.Config()
	paused := zkmodel.Paused(w.Mirror.ProviderPauses(), w.Now())
	builders := w.Mirror.Components(zkmodel.KindBuilder)
	for _, name := range job.Providers {
		trouble, usable, had := "", false, false
		for _, b := range builders {
			if b.Broken != nil || b.Providers != nil && !slices.Contains(*b.Providers, name) {
				had = had || b.Broken != nil // it may have it
				continue
			}
			had = true
			trouble = cmp.Or(trouble, b.Troubles[name])
			usable = usable || b.Troubles[name] == ""
		}
		if trouble != "" && !usable {
			closed[name] = trouble
		}
		if _, here := cfg.Provider(name); !here && !had {
			closed[name] = "no builder has this provider"
		}
		if why := ClosedBy(cfg, name, job.Image); why != "" {
			closed[name] = why
		}
		if pause := paused[name]; pause != nil {
			closed[name] = pause.Text()
		}
	}
	return closed
}

// tooManyFailed holds the rest once more jobs have failed than may, and reports whether it
// has done so now. Who releases the wave forgives those.
func (w *work) tooManyFailed(ctx context.Context) (bool, error) {
	limit, err := wave.Limit(w.Wave.MaxFailures, len(w.Jobs))
	if err != nil {
		return false, err
	}
	failed := w.Count(wave.Failed)
	if failed-w.Status.Forgiven <= limit || w.hold != "" || w.cancel != "" || w.Over() {
		return false, nil
	}
	why := fmt.Sprintf("%d of %d jobs have failed, more than %s; wave release goes on", failed, len(w.Jobs), w.Wave.MaxFailures)
	err = w.Hold(ctx, wave.Word{Reason: why}, func(s *wave.Status) { s.Forgiven, s.Note = failed, why })
	if err != nil {
		return false, err
	}
	w.Log.Warn("Too many jobs of a wave have failed; the rest is held until wave release", "wave", w.Wave.ID, "count", failed, "images", len(w.Jobs))
	return true, nil
}
