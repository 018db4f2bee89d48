package inflight

import (
	"errors"
	"sync"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/recipe"
)

// How long a key that failed is left alone.
const (
	FirstPause = 100 * time.Millisecond // at first
	LongPause  = 5 * time.Minute        // at most
	ShortPause = 2 * time.Second        // at most, where a person waits for it
)

// ErrOutdated says that a job found nothing to do, though by what the launcher sees there is: that is behind,
// or wrong. The key is left alone for a moment, or each look would start the job anew.
var ErrOutdated = errors.New("nothing to do by a second look")

// Jobs runs what takes time: at most one job for a key at once, and after a
// failure not again before a while has passed.
type Jobs struct {
	now    func() time.Time
	notify func()
	group  sync.WaitGroup

	mu      sync.Mutex
	running map[Key]bool
	trouble map[Key]trouble
}

// trouble is a key that failed.
type trouble struct {
	failures int
	until    time.Time
}

// NewJobs makes one in which nothing runs. notify wakes the goroutine that looks at failures.
func NewJobs(now func() time.Time, notify func()) *Jobs {
	return &Jobs{
		now: now, notify: notify,
		running: map[Key]bool{}, trouble: map[Key]trouble{},
	}
}

// Spawn runs work in a goroutine that Wait waits for.
func (j *Jobs) Spawn(work func()) { j.group.Go(work) }

// Start runs work in a goroutine unless a job with this key runs already or is
// to be left alone, and reports whether it does. The end of work wakes the launcher.
func (j *Jobs) Start(key Key, work func() error) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[key] || j.trouble[key].until.After(j.now()) {
		return false
	}
	j.running[key] = true
	j.group.Go(func() {
		err := work()
		j.mu.Lock()
		delete(j.running, key)
		if err == nil {
			delete(j.trouble, key)
		}
		j.mu.Unlock()
		switch {
		case errors.Is(err, recipe.ErrAuth), errors.Is(err, recipe.ErrLocked), errors.Is(err, ErrOutdated): // until it is otherwise, which may be soon
			j.Failed(key, ShortPause)
		case err != nil:
			j.Failed(key, LongPause)
		}
		j.notify()
	})
	return true
}

// Failed notes a failure of key and tells how long it is left alone, at most
// about longest.
func (j *Jobs) Failed(key Key, longest time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.trouble[key]
	t.failures++
	wait := kit.Backoff{First: FirstPause, Longest: longest}.After(t.failures)
	t.until = j.now().Add(wait)
	j.trouble[key] = t
	return wait
}

// Left tells until when a key is left alone; zero when it is not.
func (j *Jobs) Left(key Key) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.trouble[key].until; t.After(j.now()) {
		return t
	}
	return time.Time{}
}

// Failures is how often a key has failed since it was last left in peace for long.
func (j *Jobs) Failures(key Key) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trouble[key].failures
}

// Next is when the first key that is left alone may be tried again, and forgets
// those that nobody has asked for since long.
func (j *Jobs) Next() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	var first time.Time
	for key, t := range j.trouble {
		switch {
		case t.until.After(now):
			if first.IsZero() || t.until.Before(first) {
				first = t.until
			}
		case now.Sub(t.until) > LongPause && !j.running[key]:
			delete(j.trouble, key)
		}
	}
	return first
}

// Wait returns when no job runs any more.
func (j *Jobs) Wait() { j.group.Wait() }
