package chaos

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zuul"
)

const (
	// flowStep is the time by which fulfilled requests are counted.
	flowStep = 10 * time.Second
	// stillTime is how long none may be fulfilled while one waits that could be.
	stillTime = time.Minute
)

// flow is how many requests are fulfilled, and for how long none was although one could be.
type flow struct {
	mu      sync.Mutex
	begun   time.Time // zero while nobody asks
	steps   []int
	waiting map[string]wish // by id: those that nothing of their own keeps from being served
	checked time.Time       // when check looked last
	able    bool            // one of them could have been served then
	still   time.Duration   // for how long none was since, in times in which one could be
	longest time.Duration
}

// begin is when requestors begin, end when they do not ask any more.
func (f *flow) begin(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun, f.checked, f.waiting = now, now, map[string]wish{}
}

func (f *flow) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Time{}
}

// waits notes a request that was made. One that has to fail is none.
func (f *flow) waits(id string, w wish) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.fails == "" {
		f.waiting[id] = w
	}
}

// over notes that a request has ended, however.
func (f *flow) over(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.waiting, id)
}

// fulfilled counts one.
func (f *flow) fulfilled(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun.IsZero() {
		return
	}
	f.still, f.checked = 0, now
	at := int(now.Sub(f.begun) / flowStep)
	for len(f.steps) <= at {
		f.steps = append(f.steps, 0)
	}
	f.steps[at]++
}

// check complains where none was for too long. Time counts only between two checks of which both
// find a request that can be served: one that waits for one cloud alone cannot while that is not
// honest, and none can while the servers have no leader: how soon they have one again, on a busy machine, is not
// what is tested.
func (f *flow) check(now time.Time, unled bool, honest func(provider string) bool, wrong report) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun.IsZero() {
		return
	}
	able := false
	for _, w := range f.waiting {
		only := w.only()
		able = able || !unled && (only == "" || honest(only))
	}
	if able && f.able {
		f.still += now.Sub(f.checked)
	}
	f.able, f.checked = able, now
	f.longest = max(f.longest, f.still)
	if f.still > stillTime {
		f.still = 0
		wrong("no request was fulfilled for %s in which one waited that could be: %d wait", stillTime, len(f.waiting))
	}
}

// What counts is time in which a request waits that could be served, and no other.
func TestFlow(t *testing.T) {
	t.Parallel()
	small, west := wish{plain: true}, wish{Wish: zuul.Wish{Provider: "west"}, plain: true}
	for _, tc := range []struct {
		name  string
		wrong int
		act   func(f *flow, second int) // before each of 130 looks, one a second
		unled func(second int) bool
		lies  string // the cloud that is not honest
	}{
		{name: "nobody asks", act: func(*flow, int) {}},
		{name: "one waits all the time", wrong: 2, act: from(small)},
		{name: "one that has to fail waits", act: from(wish{fails: "no pool has the label unicorn"})},
		{name: "one waits for a cloud that lies", act: from(west), lies: "west"},
		{name: "one waits for a cloud beside one that lies", wrong: 2, act: from(west), lies: "east"},
		{name: "one waits for any cloud while one lies", wrong: 2, act: from(small), lies: "west"},
		{name: "there is no leader", act: from(small), unled: func(int) bool { return true }},
		{name: "there is no leader for a minute", wrong: 1, act: from(small), unled: func(second int) bool { return second < 60 }},
		{name: "one waits in two parts", wrong: 1, act: func(f *flow, second int) {
			switch second {
			case 0, 80:
				f.waits("1", small)
			case 40:
				f.over("1")
			}
		}},
		{name: "another is fulfilled meanwhile", act: func(f *flow, second int) {
			from(small)(f, second)
			if second%50 == 49 {
				f.fulfilled(f.begun.Add(time.Duration(second) * time.Second))
			}
		}},
		{name: "each waits for a short time", act: func(f *flow, second int) {
			if id := fmt.Sprint(second / 10); second%10 < 4 {
				f.waits(id, small)
			} else {
				f.over(id)
			}
		}},
		{name: "nobody asks any more", act: func(f *flow, second int) {
			from(small)(f, second)
			if second == 50 {
				f.end()
			}
		}},
	} {
		begun, wrong := time.Unix(1000, 0), 0
		var f flow
		f.begin(begun)
		for second := range 130 {
			tc.act(&f, second)
			f.check(begun.Add(time.Duration(second)*time.Second), tc.unled != nil && tc.unled(second), func(cloud string) bool { return cloud != tc.lies },
				func(string, ...any) { wrong++ })
		}
		if wrong != tc.wrong {
			t.Errorf("%s: %d complaints, want %d", tc.name, wrong, tc.wrong)
		}
	}
}

// from is one that waits from the first second on.
func from(w wish) func(*flow, int) {
	return func(f *flow, second int) {
		if second == 0 {
			f.waits("1", w)
		}
	}
}
