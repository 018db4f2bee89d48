package launcher_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"poolkeeper/launcher/step"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// crashStory is what happens around a crash.
type crashStory struct {
	config    string
	bootsFail bool
	stuck     bool // see child
	// before runs with one launcher that does not die.
	before func(s *site)
	// act is what makes a launcher come to the step; it must not wait for its end.
	act func(s *site) (requests []string)
	// after runs when the survivors have served the requests.
	after func(s *site, requests []string)
	// first is a step at which a launcher dies before; its successor dies at the step itself.
	first step.Step
	// continues tells that the nodes which are there at the step become the request's.
	continues bool
}

// stories tell how each step is reached.
func stories() map[step.Step]crashStory {
	ask := func(labels ...string) func(*site) []string {
		return func(s *site) []string { return []string{s.submit(zuul.Wish{Labels: labels})} }
	}
	use := func(s *site, requests []string) { s.useAll(requests) }
	launch := crashStory{config: onePool, act: ask("small", "large"), after: use, continues: true}
	single := crashStory{config: onePool, act: ask("small"), after: use}
	end := crashStory{
		config: onePool,
		act: func(s *site) []string {
			ctx := s.t.Context()
			out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
			nodes, err := s.zuul.Accept(ctx, out)
			if err != nil {
				s.t.Fatal(err)
			}
			if err := s.zuul.Return(nodes...); err != nil {
				s.t.Fatal(err)
			}
			return nil
		},
		after: func(s *site, _ []string) { s.emptied("cloud") },
	}
	fails := crashStory{
		config: onePool, bootsFail: true, act: ask("small"),
		after: func(s *site, requests []string) {
			if out := s.wait(requests[0]); out.State != "failed" || out.Reason == "" {
				s.t.Errorf("%+v", out)
			}
			s.emptied("cloud")
		},
	}
	leaveIdle := func(labels ...string) func(*site) {
		return func(s *site) {
			for _, label := range labels {
				out := s.wait(s.submit(zuul.Wish{Labels: []string{label}, Fresh: true}))
				if err := s.zuul.Cancel(out.ID); err != nil {
					s.t.Fatal(err)
				}
			}
			s.settled()
		}
	}
	trial := crashStory{
		config: onePool,
		act:    func(s *site) []string { s.trials = append(s.trials, s.onTrial("debian", "cloud")); return nil },
		after: func(s *site, _ []string) {
			s.ends(s.trials[0], zkmodel.ValidationPassed, "")
			s.emptied("cloud")
		},
	}
	slot := crashStory{config: onePoolOfSlots, before: runJob, act: ask("slot", "slot"), after: jobsRan}
	return map[step.Step]crashStory{
		step.BackingNoted: slot, step.BackingAsked: slot, step.BackingTaken: slot,
		step.BackingGiven: {config: onePoolOfSlots, before: runJob, act: func(s *site) []string {
			_, job := s.given("slot")
			s.back(job)
			return nil
		}, after: jobsRan},
		step.TrialMade: trial, step.TrialBegun: trial, step.TrialCreated: trial, step.TrialNoted: trial,
		step.TrialBooted: trial, step.TrialChecked: trial, step.TrialTold: trial,
		step.Accepted: launch, step.Begun: launch, step.Created: launch,
		step.Noted: launch, step.Booted: launch, step.Ready: launch,
		step.Parted:    {config: onePool, stuck: true, act: ask("small"), after: use, continues: true},
		step.Fulfilled: single,
		step.Failed:    fails, step.Declined: fails,
		step.DeleteLocked: end, step.DeleteMarked: end,
		step.DeleteCloud: end, step.Deleted: end,
		step.Reused:  {config: onePool, before: leaveIdle("small"), act: ask("small"), after: use},
		step.Evicted: {config: onePool, before: leaveIdle("small", "small", "small", "small", "small"), act: ask("large"), after: use},
		step.Resumed: {config: onePool, act: ask("small", "large"), after: use, first: step.Begun, continues: true},
		step.MinReady: {
			config: withStock, act: func(*site) []string { return nil },
			after: func(s *site, _ []string) {
				zktest.Eventually(s.t, func() bool { return len(s.nodesAt("cloud")) == 3 }, "three nodes in stock")
				s.settled()
				if got := len(s.nodesAt("cloud")); got != 3 {
					s.t.Errorf("%d nodes in stock, want 3", got)
				}
			},
		},
	}
}

// useAll takes over the nodes of requests as Zuul does, and gives them back.
func (s *site) useAll(requests []string) {
	s.t.Helper()
	for _, id := range requests {
		s.mustBeServed(id)
		nodes, err := s.zuul.Accept(s.t.Context(), s.wait(id))
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.zuul.Use(nodes...); err != nil {
			s.t.Fatal(err)
		}
		if err := s.zuul.Return(nodes...); err != nil {
			s.t.Fatal(err)
		}
		var ids []string
		for _, n := range nodes {
			ids = append(ids, n.ID)
		}
		ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
		defer cancel()
		if err := s.zuul.WaitGone(ctx, ids...); err != nil {
			s.t.Fatal(err)
		}
	}
}

// A launcher that is killed, at whatever step, leaves nothing that it, started
// again, or the other launchers do not bring to its end: no request unanswered,
// no machine without a record, no record without a reason. What another provider has
// stays as it is.
func TestKilledAtEveryStep(t *testing.T) {
	all := stories()
	for _, at := range step.All() {
		if _, ok := all[at]; !ok {
			t.Errorf("no story comes to step %q", at)
		}
	}
	var figures takeovers
	t.Cleanup(func() { figures.print(t) })
	for _, count := range []int{1, 3} {
		for _, at := range step.All() {
			t.Run(map[int]string{1: "one", 3: "three"}[count]+"/"+string(at), func(t *testing.T) {
				t.Parallel()
				took := all[at].run(t, at, count)
				figures.note(t, at, count, took)
			})
		}
	}
}

// run kills one launcher of count at the step, and tells how long it took until
// another, or its successor, had all in hand that it left.
func (story crashStory) run(t *testing.T, at step.Step, count int) time.Duration {
	t.Helper()
	s, c := newCrashSite(t, beside(story.config))
	s.image()
	resident := s.resident(zkmodel.NodeReady)
	c.BootsFail, c.Stuck = story.bootsFail, story.stuck
	if story.before != nil {
		c.Name = "before"
		first := c.spawn(t)
		story.before(s)
		first.stop()
	}
	spawn := func() {
		for i := range count {
			c.Name = []string{"one", "two", "three"}[i]
			c.spawn(t)
		}
	}
	var requests []string
	if c.At = story.first; c.At != "" {
		c.Name = "first"
		c.spawn(t)
		requests = story.act(s)
		c.died(t)
	}
	c.At = at
	spawn()
	if story.first == "" {
		requests = story.act(s)
	}
	dead, died := c.died(t)
	left := s.launching()
	if story.stuck {
		s.isLeft(left)
		if err := os.WriteFile(c.freed(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if c.At = ""; count == 1 {
		c.Name = "last"
		c.spawn(t)
	}
	took := s.takenOver(dead, died)
	if story.continues {
		s.wait(requests[0])
		if now := s.launching(); !slices.Equal(now, left) {
			t.Errorf("the request has nodes %v, its launcher left %v", now, left)
		}
	}
	story.after(s, requests)
	s.settled()
	if n := s.node(resident.ID); n.Stat.Mzxid != resident.Stat.Mzxid {
		t.Errorf("the idle node of another provider was touched: %+v", n)
	}
	if story.bootsFail {
		return took
	}
	// And the world goes on.
	for _, id := range []string{s.submit(wish("large")), s.submit(wish("tiny"))} {
		if nodes := s.mustBeServed(id); slices.Contains(nodes, "") {
			t.Errorf("nodes %v", nodes)
		}
	}
	return took
}
