package launcher_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// stranger registers the pool of a launcher of another make, which does nothing.
// It is registered until it is told to leave.
func (s *site) stranger(c zkmodel.Component) (leave func()) {
	s.t.Helper()
	c.Kind, c.State, c.Hostname = zkmodel.KindPool, zkmodel.ComponentRunning, "stranger"
	data, err := c.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	r := recipe.NewRegistration(s.client, zkmodel.ComponentsRoot+"/"+zkmodel.KindPool, "stranger", data)
	go func() { defer close(done); _ = r.Run(ctx) }()
	leave = func() { cancel(); <-done }
	s.t.Cleanup(leave)
	zktest.Eventually(s.t, func() bool { return slices.Contains(s.pools(), c.ID) }, "the stranger is there")
	return leave
}

// Two launchers decline, a third that might serve the request leaves without a
// word: the request has failed, and does not wait for ever.
func TestRequestThatEverybodyHasDeclinedFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	leave := s.stranger(zkmodel.Component{
		ID: "stranger-1", ProviderName: "elsewhere", PoolName: "main", Priority: 100,
		SupportedLabels: zkmodel.Strings{"small"},
	})
	quick := func(d *launcher.Deps) { d.Resync = 200 * time.Millisecond }
	one := s.launch(quick)
	s.launch(quick)
	id := s.submit(wish("moon"))
	declines := func() int {
		r, err := s.store.Request(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != zkmodel.RequestRequested {
			t.Fatalf("request is %s while a pool has not declined it", r.State)
		}
		return len(r.DeclinedBy)
	}
	zktest.Eventually(t, func() bool { return declines() == 2 }, "both have declined")
	zktest.Eventually(t, func() bool {
		told := one.Requests()
		return len(told) == 1 && told[0].Reason == "no pool has the label moon"
	}, "why, as it was said")
	leave()
	if out := s.wait(id); out.State != "failed" || out.Reason != "no pool has the label moon" {
		t.Errorf("%+v", out)
	}
}
