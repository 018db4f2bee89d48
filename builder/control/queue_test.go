package control

import (
	"fmt"
	"testing"
	"time"

	"poolkeeper/builder/plan"
)

// The bound of the whole builder holds, a provider alone may use it whole, and
// one of several gets half of it.
func TestLanesOfUploads(t *testing.T) {
	for _, test := range []struct {
		workers, receivers int
		waiting            []string // providers, in order
		want               map[string]int
	}{
		{4, 1, []string{"a", "a", "a", "a", "a"}, map[string]int{"a": 4}},
		{4, 3, []string{"a", "a", "a", "a", "a"}, map[string]int{"a": 2}},
		{4, 3, []string{"a", "a", "a", "b", "b", "b", "c"}, map[string]int{"a": 2, "b": 1, "c": 1}},
		{4, 3, []string{"a", "a", "a", "b", "b", "b"}, map[string]int{"a": 2, "b": 1}},
		{2, 2, []string{"a", "a", "b", "b"}, map[string]int{"a": 1, "b": 1}},
		{1, 2, []string{"a", "b"}, map[string]int{"a": 1}},
		{12, 15, []string{"a", "a", "a", "a", "a", "a", "a", "a", "b"}, map[string]int{"a": 6, "b": 1}},
	} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			q := newQueue(1, test.workers)
			q.receivers = test.receivers
			for n, provider := range test.waiting {
				image := fmt.Sprintf("image-%d", n)
				q.set(image, []plan.Action{{Kind: plan.Upload, Image: image, Build: "0000000001", Provider: provider}})
			}
			got := map[string]int{}
			for task := q.next(); task != nil; task = q.next() {
				got[task.Provider]++
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("under way: %v, want %v", got, test.want)
			}
		})
	}
}

// Mistakes: an image whose build is due, and that is never built where another is asked for
// again and again; one that is due before one that is asked for, at once.
func TestADueBuildWaitsForOneTurn(t *testing.T) {
	q, now := newQueue(1, 1), time.Unix(0, 0)
	q.now = func() time.Time { return now }
	build := func(image string, requested bool) {
		q.set(image, []plan.Action{{Kind: plan.Build, Image: image, Requested: requested}})
	}
	build("due", false)
	for began := 0; ; began++ {
		build("due", false) // is decided again, as something has changed
		build("asked", true)
		task := q.next()
		if task.Image == "due" {
			if began < 3 || now.Sub(time.Unix(0, 0)) > turn+20*time.Minute {
				t.Errorf("it begins after %d others, and %s", began, now.Sub(time.Unix(0, 0)))
			}
			return
		}
		if began > 10 {
			t.Fatal("it never begins")
		}
		now = now.Add(20 * time.Minute)
		q.done(task)
	}
}

// Mistake: a provider that waits until all that came before it is sent to others, where they
// are more than there are workers.
func TestProvidersTakeTurns(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		q := newQueue(1, workers)
		q.receivers = 6
		for n := range 50 {
			var all []plan.Action
			for _, provider := range []string{"a", "b", "c", "d", "e"} {
				all = append(all, plan.Action{Kind: plan.Upload, Image: fmt.Sprint(n), Build: "0000000001", Provider: provider})
			}
			q.set(fmt.Sprint(n), all)
		}
		var running []*task
		fill := func() (late bool) {
			for task := q.next(); task != nil; task = q.next() {
				running = append(running, task)
				late = late || task.Provider == "late"
			}
			return late
		}
		finish := func() {
			q.done(running[0])
			running = running[1:]
		}
		for range 20 {
			fill()
			finish()
		}
		q.set("late", []plan.Action{{Kind: plan.Upload, Image: "late", Build: "0000000001", Provider: "late"}})
		for ended := 0; !fill(); ended++ {
			if ended > 5 {
				t.Errorf("%d workers: it waits for more than an upload to each other provider", workers)
				break
			}
			finish()
		}
	}
}
