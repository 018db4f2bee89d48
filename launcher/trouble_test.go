package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// farClouds has a label of its own in each of three providers, and one in two.
const farClouds = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}, {name: on-cloud}, {name: on-far}, {name: on-closed}]
diskimages: [{name: debian, elements: [debian]}]
providers:
  - {name: cloud, driver: fake, cloud: fake, diskimages: [{name: debian}], launch-retries: 2,
     pools: [{name: main, labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: on-cloud, diskimage: debian, min-ram: 1024}]}]}
  - {name: far, driver: fake, cloud: fake, diskimages: [{name: debian}], launch-retries: 2,
     pools: [{name: main, labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: on-far, diskimage: debian, min-ram: 1024}]}]}
  - {name: closed, driver: fake, cloud: fake, diskimages: [{name: debian}],
     pools: [{name: main, labels: [{name: on-closed, diskimage: debian, min-ram: 1024}]}]}
`

// far is a cloud that can be cut off; all its calls fail then, and it tells so.
type far struct {
	keepOpen

	mu    sync.Mutex
	tells []func(error)
	cut   bool
}

func (f *far) Tell(tell func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tells = append(f.tells, tell)
}

var errCut = errors.New("10.0.0.1:5000 does not answer: connection refused")

// call is what each call of the cloud comes to first.
func (f *far) call(_ context.Context, c fake.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.cut || c.Done {
		return nil
	}
	for _, tell := range f.tells {
		tell(errCut)
	}
	return fmt.Errorf("call: %w: %w", providers.ErrTransient, errCut)
}

// set cuts the cloud off, or no more. A cloud that is there again tells so with the
// first call.
func (f *far) set(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = cut
}

// farSite has two launchers, the second of which lacks the providers far and closed.
func farSite(t *testing.T) (s *site, cloud *far, all, some *running) {
	t.Helper()
	s = newSite(t, farClouds)
	s.image()
	cloud = &far{keepOpen: keepOpen{s.clouds["far"]}}
	s.clouds["far"].SetHook(cloud.call)
	all = s.launch(func(d *launcher.Deps) {
		open := d.Open
		d.Open = func(p configs.Provider) (providers.Provider, error) {
			switch p.Name {
			case "far":
				return cloud, nil
			case "closed":
				return nil, errors.New("clouds.yaml has no such cloud")
			}
			return open(p)
		}
	})
	some = s.launchOnly([]string{"cloud"})
	return s, cloud, all, some
}

// waits waits until both launchers say of a request that it waits, and why.
func (s *site) waits(id, why string, launchers ...*running) {
	s.t.Helper()
	for i, l := range launchers {
		last := ""
		defer func() {
			if s.t.Failed() {
				s.t.Logf("launcher %d said %s", i, last)
			}
		}()
		zktest.Eventually(s.t, func() bool {
			for _, r := range l.Requests() {
				if r.ID == id {
					last = string(r.State) + ": " + r.Reason
					return r.State == zkmodel.RequestRequested && len(r.DeclinedBy) == 0 && strings.Contains(r.Reason, why)
				}
			}
			return false
		}, "launcher %d says that request %s waits as %q", i, id, why)
	}
}

// A request that only a cloud could serve which cannot be used waits, whichever
// launcher looks at it; it is served when the cloud is there again.
func TestRequestsWaitForACloudThatWentAway(t *testing.T) {
	t.Parallel()
	s, cloud, all, some := farSite(t)
	for _, label := range []string{"on-cloud", "on-far"} { // both work
		if err := s.zuul.Run(t.Context(), wish(label), nil); err != nil {
			t.Fatal(err)
		}
	}
	cloud.set(true)
	// It is found with a launch, which is given back and not declined.
	id := s.submit(wish("on-far"))
	s.waits(id, "connection refused", all)
	next := s.submit(wish("on-far"))
	s.waits(next, "provider far cannot be used: 10.0.0.1:5000 does not answer", all)
	closed := s.submit(wish("on-closed"))
	s.waits(closed, "provider closed cannot be opened: clouds.yaml has no such cloud", all, some)
	pools, err := s.store.Components(t.Context(), zkmodel.KindPool)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		want := map[string][2]string{
			"cloud":  {"", "small on-cloud"},
			"far":    {"does not answer", "small on-far"},
			"closed": {"no such cloud", ""}, // it never worked
		}[p.ProviderName]
		if !strings.Contains(p.Trouble, want[0]) || want[0] == "" && p.Trouble != "" || strings.Join(p.SupportedLabels, " ") != want[1] {
			t.Errorf("pool of %s: %v %q, want %q", p.ProviderName, p.SupportedLabels, p.Trouble, want)
		}
	}
	for range 5 { // what another cloud can serve goes there
		if err := s.zuul.Run(t.Context(), wish("small"), nil); err != nil {
			t.Error(err)
		}
	}
	if err := s.zuul.Run(t.Context(), zuul.Wish{Labels: []string{"moon"}}, nil); err == nil || !strings.Contains(err.Error(), "no pool has the label moon") {
		t.Errorf("a label that nobody has: %v", err)
	}
	cloud.set(false)
	for _, id := range []string{id, next} {
		if out := s.wait(id); out.State != "fulfilled" || len(out.DeclinedBy) > 0 {
			t.Errorf("%+v", out)
		}
	}
}

// What waits for the labels of a cloud that was never of use does not fail when the
// launcher that has them restarts.
func TestRequestsWaitWhileTheLauncherOfABadCloudRestarts(t *testing.T) {
	t.Parallel()
	s, _, all, some := farSite(t)
	id := s.submit(wish("on-closed"))
	s.waits(id, "cannot be opened", all, some)
	zktest.Eventually(t, func() bool {
		offers, err := s.store.Session().Children(t.Context(), zkmodel.OffersRoot)
		return err == nil && len(offers) >= 3
	}, "what the pools have is remembered")
	all.stop()
	s.waits(id, "has left", some)
}

// Where only a part of a cloud fails it goes on being used, and all tell of it; what is
// launched in vain is put back.
func TestPartOfACloudFails(t *testing.T) {
	t.Parallel()
	s, cloud, _, _ := farSite(t)
	if err := s.zuul.Run(t.Context(), wish("on-far"), nil); err != nil {
		t.Fatal(err)
	}
	tell := func(err error) {
		cloud.mu.Lock()
		defer cloud.mu.Unlock()
		for _, t := range cloud.tells {
			t(err)
		}
	}
	tell(errCut) // its limits can be asked for all the same
	told := func() string {
		pools, err := s.store.Components(t.Context(), zkmodel.KindPool)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pools {
			if p.ProviderName == "far" {
				return fmt.Sprint(*p.Paused, " ", p.Trouble)
			}
		}
		return ""
	}
	zktest.Eventually(t, func() bool { return strings.HasPrefix(told(), "false provider far cannot be used: ") }, "the pool serves, and tells")
	if err := s.zuul.Run(t.Context(), wish("on-far"), nil); err != nil {
		t.Error(err)
	}
	tries := make(chan struct{}, 1000)
	s.clouds["far"].SetHook(func(_ context.Context, c fake.Call) error {
		if c.Op != fake.OpWait || c.Done {
			return nil
		}
		tries <- struct{}{}
		return fmt.Errorf("give it a floating IP: %w", providers.ErrTransient)
	})
	// What another provider has, too, does not come back to this one again and again.
	var both []string
	for range 6 {
		both = append(both, s.submit(wish("small")))
	}
	for _, id := range both {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
	for len(tries) > 0 {
		<-tries
	}
	id := s.submit(wish("on-far"))
	for range 3 { // more than launch-retries
		<-tries
	}
	s.clouds["far"].SetHook(nil)
	if out := s.wait(id); out.State != "fulfilled" || len(out.DeclinedBy) > 0 {
		t.Errorf("%+v", out)
	}
	tell(nil) // not before: the last try may end after that, and would then be the request's fault
	zktest.Eventually(t, func() bool { return told() == "false " }, "nothing is told any more")
}
