package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Hosts whose clocks are wrong serve like others: what they compare with the
// tree's times is the tree's time.
func TestClocksThatAreWrong(t *testing.T) {
	t.Parallel()
	for name, off := range map[string]time.Duration{"late": -10 * time.Minute, "early": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, onePool)
			s.image()
			s.launch(func(d *launcher.Deps) { d.Now = func() time.Time { return time.Now().Add(off) } })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 3 { // the last ones in the room of the first
				err := s.zuul.Run(ctx, wish("small", "small", "large"), nil)
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := s.zuul.WaitGone(ctx, s.orphan(zkmodel.NodeInUse, nil)); err != nil {
				t.Error(err)
			}
			s.eventuallyEmpty()
			s.rejectsOnce()
		})
	}
}

// rejectsOnce has an upload tried whose nodes fail, and those of what serves do not. Mistake:
// the failure counts as too long ago for a control, again and again.
func (s *site) rejectsOnce() {
	s.t.Helper()
	serves := s.mustImage("debian").Serving("cloud", zkmodel.Suspect)
	lock, serves, err := s.store.LockUpload(s.t.Context(), serves.UploadKey)
	if err == nil {
		serves.Username = "former"
		err = errors.Join(s.store.SaveUpload(s.t.Context(), lock, serves), lock.Release(s.t.Context()))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.whenAsked("cloud", func(_ context.Context, n *zkmodel.Node) error {
		if n.Validates != "" && n.ImageID == n.Validates {
			return fmt.Errorf("%w: kernel panic", providers.ErrNodeFailed)
		}
		if n.Validates != "" && n.Username != "former" {
			s.t.Errorf("the control's account is %s, not that of its build", n.Username)
		}
		return nil
	})
	r := s.ends(s.onTrial("debian", "cloud"), zkmodel.ValidationFailed, "does well")
	if age := time.Since(r.Failed.Time()); r.Tries != 1 || age < -time.Minute || age > 5*time.Minute {
		s.t.Errorf("failed %s ago: %+v", age, r)
	}
	s.eventuallyEmpty()
}

// A provider that is about to be taken out of the configuration has no pools any
// more; what is left of its nodes is deleted all the same.
func TestProviderWithoutPools(t *testing.T) {
	t.Parallel()
	s := newSite(t, beside(onePool))
	s.image()
	undisturbed := s.neighbours()
	s.config.Providers[0].Pools = nil
	id := s.orphan(zkmodel.NodeUsed, nil)
	s.machine(id)
	s.launchTwo()
	s.emptied("cloud")
	undisturbed()
}

// Nodes of a provider that is not in the configuration are nobody's to touch:
// their machines cannot be reached.
func TestNodesOfUnknownProviders(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	foreign := s.orphan(zkmodel.NodeUsed, func(n *zkmodel.Node) { n.Provider = "elsewhere" })
	ours := s.orphan(zkmodel.NodeUsed, nil)
	s.launch()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.zuul.WaitGone(ctx, ours); err != nil {
		t.Fatal(err)
	}
	if n := s.node(foreign); n.State != zkmodel.NodeUsed || strings.Contains(n.Reason, "used") {
		t.Errorf("the foreign node is %s (%s)", n.State, n.Reason)
	}
}

// Mistake: a launcher that was stopped for some minutes in the middle of a look (SIGSTOP, a host that swaps), or whose
// clock was put right there, rests for as long again before it answers a request.
func TestStoppedInTheMiddleOfALook(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	var questions, ahead atomic.Int64
	s.launch(func(d *launcher.Deps) {
		d.Deciding = func(context.Context) func() {
			questions.Store(2) // the first is when the look began
			return func() {}
		}
		d.Now = func() time.Time {
			if questions.Add(-1) == 0 {
				ahead.Add(int64(10 * time.Minute))
			}
			return time.Now().Add(time.Duration(ahead.Load()))
		}
	})
	for range 3 {
		if out := s.wait(s.submit(wish("moon"))); out.State != "failed" {
			t.Errorf("the request has %s", out.State)
		}
	}
}
