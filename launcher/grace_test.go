package launcher_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// foreignPool registers the pool of a launcher of another make, which does nothing.
// It is registered until it is told to leave.
func (s *site) foreignPool(c zkmodel.Component) (leave func()) {
	s.t.Helper()
	c.Kind, c.State, c.Hostname = zkmodel.KindPool, zkmodel.ComponentRunning, "foreign"
	data, err := c.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	r := recipe.NewRegistration(s.client, zkmodel.ComponentsRoot+"/"+zkmodel.KindPool, "foreign", data)
	go func() { defer close(done); _ = r.Run(ctx) }()
	leave = func() { cancel(); <-done }
	s.t.Cleanup(leave)
	zktest.Eventually(s.t, func() bool { return slices.Contains(s.pools(), c.ID) }, "the foreign pool is there")
	return leave
}

// Two launchers decline, a third that might serve the request leaves without a
// word: the request has failed, and does not wait for ever.
func TestRequestThatEverybodyHasDeclinedFails(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	leave := s.foreignPool(zkmodel.Component{
		ID: "foreign-1", ProviderName: "elsewhere", PoolName: "main", Priority: 100,
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

// twoSites are two providers of one label each.
const twoSites = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}, {name: large}]
providers:
  - {name: a, driver: fake, cloud: fake, cloud-images: [{name: image}],
     pools: [{name: main, max-servers: 50, labels: [{name: small, cloud-image: image, min-ram: 1024}]}]}
  - {name: b, driver: fake, cloud: fake, cloud-images: [{name: image}],
     pools: [{name: main, max-servers: 50, labels: [{name: large, cloud-image: image, min-ram: 1024}]}]}
`

// named gives a launcher a host of its own.
func named(host string) func(*launcher.Deps) {
	return func(d *launcher.Deps) { d.Hostname, d.FQDN = host, host+".example.org" }
}

// offersAre waits until so many pools are remembered.
func (s *site) offersAre(count int) {
	s.t.Helper()
	zktest.Eventually(s.t, func() bool {
		names, err := s.store.Session().Children(s.t.Context(), zkmodel.OffersRoot)
		return err == nil && len(names) == count
	}, "%d pools are remembered", count)
}

// A launcher that restarts, orderly or not, fails no request that only it can serve:
// none that waits, and none that comes while it is away, longer than its session. What
// nobody offers fails as fast as ever.
func TestLauncherThatRestartsFailsNoRequest(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*running){
		"stopped": func(r *running) { r.stop() },
		"killed":  func(r *running) { r.client.Close(); r.stop() },
	} {
		t.Run(how, func(t *testing.T) {
			s := newSite(t, twoSites)
			there := s.launchOnly([]string{"a"}, named("nl01"))
			only := s.launchOnly([]string{"b"}, named("nl02"))
			s.offersAre(2)
			booting := s.stall()
			ids := []string{s.submit(wish("large"))} // in its hands
			<-booting
			ids = append(ids, s.submit(wish("large")))
			end(only)
			s.clouds["b"].SetHook(nil)
			for range 5 {
				ids = append(ids, s.submit(wish("large")))
			}
			if out := s.wait(s.submit(wish("unknown"))); out.State != "failed" {
				t.Errorf("%+v", out)
			}
			zktest.Eventually(t, func() bool {
				return slices.ContainsFunc(there.Requests(), func(r *zkmodel.Request) bool {
					return r.ID == ids[5] && strings.Contains(r.Reason, "launcher nl02") && strings.Contains(r.Reason, "until")
				})
			}, "the reason says for whom it waits")
			for _, id := range ids {
				if r, err := s.store.Request(t.Context(), id); err != nil || len(r.DeclinedBy) > 0 || r.State == zkmodel.RequestFailed {
					t.Errorf("%+v (%v), want it undeclined", r, err)
				}
			}
			s.launchOnly([]string{"b"}, named("nl02"))
			for _, id := range ids {
				if out := s.wait(id); out.State != "fulfilled" {
					t.Errorf("%+v", out)
				}
			}
		})
	}
}

// Launchers that are restarted one after the other, again and again, fail nothing.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoSites)
	begin := map[string]func() *running{
		"a": func() *running { return s.launchOnly([]string{"a"}, named("nl01")) },
		"b": func() *running { return s.launchOnly([]string{"b"}, named("nl02")) },
	}
	now := map[string]*running{"a": begin["a"](), "b": begin["b"]()}
	s.offersAre(2)
	var ids []string
	for i := range 4 { // the clouds have room for 20
		for _, name := range []string{"a", "b"} {
			ids = append(ids, s.submit(wish("small")), s.submit(wish("large")))
			if i%2 == 0 {
				now[name].stop()
			} else {
				now[name].client.Close()
				now[name].stop()
			}
			ids = append(ids, s.submit(wish("small")), s.submit(wish("large")))
			now[name] = begin[name]()
		}
	}
	for _, id := range ids {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
}

// Who does not come back is waited for only so long.
func TestGraceEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoSites)
	s.config.LauncherGrace = 3 * time.Second
	s.launchOnly([]string{"a"}, named("nl01"))
	only := s.launchOnly([]string{"b"}, named("nl02"))
	s.offersAre(2)
	only.stop()
	begun := time.Now()
	out := s.wait(s.submit(wish("large")))
	if took := time.Since(begun); out.State != "failed" || took < time.Second {
		t.Errorf("after %s: %+v", took, out)
	}
	begun = time.Now()
	if out := s.wait(s.submit(wish("large"))); out.State != "failed" || time.Since(begun) > 2*time.Second {
		t.Errorf("later, after %s: %+v", time.Since(begun), out)
	}
}

// A request whose launches fail here is not declined while a launcher is away that
// may serve it.
func TestLaunchesThatFailInTheGrace(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(twoSites, "name: large, cloud", "name: small, cloud"))
	s.clouds["a"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op == fake.OpCreate && !c.Done {
			return errors.New("no valid host was found")
		}
		return nil
	})
	there := s.launchOnly([]string{"a"}, named("nl01"))
	other := s.launchOnly([]string{"b"}, named("nl02"))
	s.offersAre(2)
	other.stop()
	id := s.submit(wish("small"))
	zktest.Eventually(t, func() bool {
		return slices.ContainsFunc(there.Requests(), func(r *zkmodel.Request) bool { return strings.Contains(r.Reason, "waits for launcher nl02") })
	}, "it has failed here and waits")
	if r, err := s.store.Request(t.Context(), id); err != nil || r.State != zkmodel.RequestRequested || len(r.DeclinedBy) > 0 || !strings.Contains(r.Reason, "no valid host") {
		t.Errorf("%+v (%v), want it undeclined", r, err)
	}
	s.launchOnly([]string{"b"}, named("nl02"))
	if out := s.wait(id); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
}

// Launchers of the first release, which know no grace, fail nothing either, as ours
// have not declined; and they are waited for like ours.
func TestGraceBesideFirstRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoSites)
	onlyA := strings.Replace(twoSites, twoSites[strings.Index(twoSites, "  - {name: b"):], "", 1)
	end := s.launchRelease(onlyA)
	s.launchOnly([]string{"a"}, named("nl01"))
	only := s.launchOnly([]string{"b"}, named("nl02"))
	s.offersAre(3)
	only.stop()
	ids := []string{s.submit(wish("large")), s.submit(wish("large"))}
	never(t, 2*time.Second, func() bool {
		return slices.ContainsFunc(s.requests(), func(r *zkmodel.Request) bool { return r.State == zkmodel.RequestFailed })
	}, "a request has failed")
	s.launchOnly([]string{"b"}, named("nl02"))
	for _, id := range ids {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
	end(syscall.SIGTERM)
}
