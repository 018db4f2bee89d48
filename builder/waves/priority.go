package waves

import (
	"context"
	"time"

	"poolkeeper/zkmodel/wave"
)

const (
	// aboveEvery is how often waves of a higher priority are looked at that are waited for.
	aboveEvery = time.Second
	// overEvery is the same of those that are over: wave retry begins them again.
	overEvery = 10 * time.Second
)

// behind says why a wave waits for another, and when that was looked at.
type behind struct {
	why  string
	read time.Time
	over map[string]time.Time // waves that were over, and when that was seen
}

// lookAbove sees whether images of a wave of a higher priority wait for a builder. Until
// they do not, no build is asked for.
func (w *work) lookAbove(ctx context.Context) error {
	above, b, now := w.tree.Above(w.Wave.ID), &w.behind, w.Now()
	if age := now.Sub(b.read); b.why != "" && age >= 0 && age < aboveEvery {
		return nil
	}
	b.why, b.read = "", now
	for _, id := range above {
		if seen, over := b.over[id]; over && now.Sub(seen) < overEvery {
			continue
		}
		waits, over, err := w.store.Waits(ctx, id, now)
		if err != nil {
			return err
		}
		if over {
			if b.over == nil {
				b.over = map[string]time.Time{}
			}
			b.over[id] = now
		}
		if waits {
			b.why = "waits for wave " + id + ", which has a higher priority"
			return nil
		}
	}
	return nil
}

// waits reports whether images of the wave wait for a builder, or for room: not those that
// wait for something else.
func (w *work) waits() bool {
	if w.Wave.Follow {
		return false // its request is one of many
	}
	for rank := range w.Jobs {
		switch p := w.Job(rank); {
		case p.State == wave.Pending && !w.stuck[rank]:
			return true
		case p.State == wave.Processing && p.Build == "" && p.Note == "" && !w.begun[rank]:
			return true
		}
	}
	return false
}

// stalls reports whether no build of the wave is under way, and none has begun or ended for
// so long that waves of a lower priority wait for it no more: its builders may have other
// work, or be stuck.
func (w *work) stalls() bool {
	return len(w.begun) == 0 && !w.Now().Before(w.lively.Add(wave.GiveUp))
}

// since is when something last happened to the jobs of a wave, by its records.
func (w *work) since() time.Time {
	last := w.Status.StateTime
	for rank := range w.Jobs {
		if at := w.Job(rank).StateTime; at.After(last) {
			last = at
		}
	}
	return last
}
