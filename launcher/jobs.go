package launcher

import (
	"sync"
	"time"
)

// How long a key that failed is left alone: at first, at most, and at most where
// a person waits for it.
const (
	firstPause = 100 * time.Millisecond
	longPause  = 5 * time.Minute
	shortPause = 2 * time.Second
)

// jobs runs what takes time: at most one job for a key at once, and after a
// failure not again before a while has passed.
type jobs struct {
	now    func() time.Time
	notify func()
	group  sync.WaitGroup

	mu      sync.Mutex
	running map[string]bool
	trouble map[string]trouble
}

// trouble is a key that failed.
type trouble struct {
	failures int
	until    time.Time
}

func newJobs(now func() time.Time, notify func()) *jobs {
	return &jobs{
		now: now, notify: notify,
		running: map[string]bool{}, trouble: map[string]trouble{},
	}
}

// spawn runs work in a goroutine that wait waits for.
func (j *jobs) spawn(work func()) { j.group.Go(work) }

// start runs work in a goroutine unless a job with this key runs already or is
// to be left alone. The end of work wakes the launcher.
func (j *jobs) start(key string, work func() error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[key] || j.trouble[key].until.After(j.now()) {
		return
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
		if err != nil {
			j.failed(key, longPause)
		}
		j.notify()
	})
}

// failed notes a failure of key and tells how long it is left alone, at most
// about longest.
func (j *jobs) failed(key string, longest time.Duration) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	t := j.trouble[key]
	t.failures++
	wait := backoff{first: firstPause, longest: longest}.after(t.failures)
	t.until = j.now().Add(wait)
	j.trouble[key] = t
	return wait
}

// left tells until when a key is left alone; zero when it is not.
func (j *jobs) left(key string) time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t := j.trouble[key].until; t.After(j.now()) {
		return t
	}
	return time.Time{}
}

// failures is how often a key has failed since it was last left in peace for long.
func (j *jobs) failures(key string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.trouble[key].failures
}

// next is when the first key that is left alone may be tried again, and forgets
// those that nobody has asked for since long.
func (j *jobs) next() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now()
	var first time.Time
	for key, t := range j.trouble {
		switch {
		case t.until.After(now):
			first = earlier(first, t.until)
		case now.Sub(t.until) > longPause && !j.running[key]:
			delete(j.trouble, key)
		}
	}
	return first
}

// wait returns when no job runs any more.
func (j *jobs) wait() { j.group.Wait() }
