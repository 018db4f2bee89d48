package inflight

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// A key is left alone after a failure, longer each time, and by itself: were the keys
// plain names, a request and a node with one id would share their pauses.
func TestKeysThatFailAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := 0
		j := NewJobs(time.Now, func() { woken++ })
		runs := map[Key]int{}
		run := func(key Key, err error) {
			j.Start(key, func() error { runs[key]++; return err })
			synctest.Wait()
		}
		request, node := Request("7"), Node("7")
		run(request, errors.New("no"))
		run(request, nil)
		run(node, nil)
		if runs[request] != 1 || runs[node] != 1 || woken != 2 {
			t.Errorf("ran %v, woke %d times", runs, woken)
		}
		if j.Left(request).IsZero() || !j.Left(node).IsZero() || !j.Next().Equal(j.Left(request)) {
			t.Errorf("left alone until %s and %s; next is %s", j.Left(request), j.Left(node), j.Next())
		}
		<-after(time.Second)
		run(request, recipe.ErrLocked)
		if runs[request] != 2 || j.Failures(request) != 2 {
			t.Errorf("after the pause: %v, %d failures", runs, j.Failures(request))
		}
		<-after(2 * ShortPause)
		run(request, nil)
		if runs[request] != 3 || j.Failures(request) != 0 {
			t.Errorf("where it is another's for a moment: %v, %d failures", runs, j.Failures(request))
		}
		j.Wait()
	})
}

// One job a key runs at once: two would lock one record side by side and each take the
// other for one of another make.
func TestOneJobAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJobs(time.Now, func() {})
		end := make(chan struct{})
		running := 0
		for range 3 {
			j.Start(Node("7"), func() error { running++; <-end; return nil })
		}
		beside := false
		if !j.Start(Node("8"), func() error { beside = true; return nil }) {
			t.Error("the job of another node is not begun")
		}
		synctest.Wait()
		if running != 1 || !beside {
			t.Errorf("%d jobs of a node run, that of another ran: %v", running, beside)
		}
		close(end)
		j.Wait()
	})
}
