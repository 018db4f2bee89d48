package launcher_test

import (
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: a cloud that goes away and comes again, or never opened, without a word; one
// that is told again and again while it is away; a request that fails untold.
func TestLauncherTellsOfClouds(t *testing.T) {
	t.Parallel()
	s, cloud, all, _ := farSite(t)
	log := recipe.NewLog(event.Root, "/poolkeeper/launcher/one")
	all.client.SetLog(log)
	told := func(what string) (n int) {
		reader := log.Read(s.store.Session(), recipe.LogPosition{})
		for {
			entry, ok, err := reader.Poll(t.Context())
			if err != nil || !ok {
				return n
			}
			if e, err := event.Of(entry); err == nil && strings.TrimPrefix(e.Type, "poolkeeper.")+" "+e.Subject == what {
				n++
			}
		}
	}
	if err := s.zuul.Run(t.Context(), wish("on-far"), nil); err != nil {
		t.Fatal(err)
	}
	cloud.set(true)
	id := s.submit(wish("on-far"))
	s.waits(id, "connection refused", all)
	next := s.submit(wish("on-far"))
	s.waits(next, "provider far cannot be used", all)
	for _, name := range []string{"far", "closed"} {
		zktest.Eventually(t, func() bool { return told("provider.down provider/"+name) == 1 }, "%s is down", name)
	}
	cloud.set(false)
	for _, id := range []string{id, next} {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
	zktest.Eventually(t, func() bool { return told("provider.up provider/far") == 1 }, "far is up")
	if n := told("provider.down provider/far"); n != 1 {
		t.Errorf("far is told down %d times", n)
	}
	if n := told("provider.up provider/closed") + told("provider.up provider/cloud") + told("provider.down provider/cloud"); n != 0 {
		t.Errorf("%d events of what did not happen", n)
	}
	if err := s.zuul.Run(t.Context(), zuul.Wish{Labels: []string{"moon"}}, nil); err == nil {
		t.Error("a label that nobody has is served")
	}
}
