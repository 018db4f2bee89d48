package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher"
	"poolkeeper/launcher/canary"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// withCanary is threeImages, where debian has a canary.
func withCanary(settings string) string {
	return strings.Replace(threeImages, "{name: debian, elements: [debian]}", "{name: debian, elements: [debian], canary: "+settings+"}", 1)
}

// canary reads how debian's builds come into service in a provider; nil for not yet.
func (s *site) canary(provider string) *zkmodel.Canary {
	i, err := s.store.WithCanaries(true).Image(context.WithoutCancel(s.t.Context()), "debian")
	if err != nil {
		s.t.Error(err)
		return nil
	}
	return i.Canary(provider)
}

// isCanary waits until a build is the canary of debian in some providers.
func (s *site) isCanary(b *zkmodel.Build, where ...string) {
	s.t.Helper()
	for _, p := range where {
		zktest.Eventually(s.t, func() bool { c := s.canary(p); return c != nil && c.Trial.Is(b) }, "build %s is the canary in %s", b.ID, p)
	}
}

// promoted waits until a build serves in some providers without a limit.
func (s *site) promoted(b *zkmodel.Build, where ...string) {
	s.t.Helper()
	for _, p := range where {
		zktest.Eventually(s.t, func() bool {
			c := s.canary(p)
			return c != nil && c.Trial == nil && c.Promoted == zkmodel.RefOf(b)
		}, "build %s is promoted in %s", b.ID, p)
	}
}

// failing has each machine that boots from a build fail in a cloud.
func (s *site) failing(cloud string, b *zkmodel.Build) { s.booting(cloud, b, nil) }

// booting has each machine that boots from a build fail in a cloud, and all others boot no
// sooner than until is closed, if it is given.
func (s *site) booting(cloud string, b *zkmodel.Build, until <-chan struct{}) {
	s.clouds[cloud].SetHook(s.bootFails(cloud, b, until))
}

func (s *site) bootFails(cloud string, b *zkmodel.Build, until <-chan struct{}) func(context.Context, fake.Call) error {
	c := s.clouds[cloud]
	return func(ctx context.Context, call fake.Call) error {
		if call.Op != fake.OpWait || call.Done {
			return nil
		}
		machines, err := c.ListNodes(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		for _, m := range machines {
			if m.ExternalID != call.ID {
				continue
			}
			n, err := s.store.Node(context.WithoutCancel(ctx), m.Metadata[providers.MetaNode])
			if err == nil && strings.HasPrefix(n.ImageID, b.Path()+"/") {
				return fmt.Errorf("%w: kernel panic", providers.ErrNodeFailed)
			}
		}
		if until != nil {
			select {
			case <-until:
			case <-ctx.Done():
			}
		}
		return nil
	}
}

// told lists the events of canaries, in the order of the log.
func (s *site) told(log *recipe.Log) []string {
	var list []string
	reader := log.Read(s.store.Session(), recipe.LogPosition{})
	for {
		entry, ok, err := reader.Poll(s.t.Context())
		if err != nil || !ok {
			return list
		}
		if e, err := event.Of(entry); err == nil && strings.HasPrefix(e.Type, "poolkeeper.canary.") {
			list = append(list, fmt.Sprint(strings.TrimPrefix(e.Type, "poolkeeper.canary."), " ", e.Data["build"], " in ", e.Data["provider"]))
		}
	}
}

// Of a new build first a share of new nodes boots, and one more, over both launchers and
// under load; what the tree counts is what was launched. A user who gives all back at once
// says nothing against the new build. Then nodes of it serve, and all boot from it.
// Mistakes: a launcher that counts for itself; a count that is lost or doubled when both
// write at once; other images or providers that wait, too; a user's fault that is the build's.
func TestCanaryHasItsShare(t *testing.T) {
	t.Parallel()
	const share, jobs, atOnce = 20, 60, 10
	s := newSite(t, withCanary(fmt.Sprintf("{share: %d%%, for: 8, min-nodes: 2}", share)))
	old := s.image()
	both := []*running{s.launch(named("nl01")), s.launch(named("nl02"))}
	s.promoted(old, "cloud", "other")
	fresh := s.imageOf("debian")
	s.isCanary(fresh, "cloud", "other")

	var from, all atomic.Int32
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for range jobs / atOnce {
				err := s.zuul.Run(t.Context(), wish("cloud-debian"), func(nodes []*zuul.Node) error {
					n, err := s.store.Node(t.Context(), nodes[0].ID)
					if err != nil {
						return err
					}
					all.Add(1)
					if strings.HasPrefix(n.ImageID, fresh.Path()+"/") {
						from.Add(1)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if c := s.canary("cloud"); c != nil && c.Trial != nil {
					one, other := c.Tallies() // the counts are read after the share
					if 100*one.Nodes > share*(one.Nodes+other.Nodes)+100 {
						t.Errorf("%d of %d nodes boot from the canary", one.Nodes, one.Nodes+other.Nodes)
					}
				}
			}
		})
	}
	group.Wait()
	c := s.canary("cloud")
	if c.Trial == nil {
		t.Fatalf("the canary was over under load: %+v", c)
	}
	one, other := c.Tallies()
	if one.Nodes != int(from.Load()) || one.Nodes+other.Nodes != int(all.Load()) || one.Nodes < jobs*share/100/2 {
		t.Errorf("the tree counts %s and %s, launched were %d of %d", one, other, from.Load(), all.Load())
	}
	zktest.Eventually(t, func() bool { one, other = s.canary("cloud").Tallies(); return other.Short+one.Short > jobs/2 },
		"what was given back at once is counted")
	if i := s.debian(); i.Verdicts != nil {
		t.Errorf("a user's fault is said to be the build's: %+v", i.Verdicts)
	}
	s.bootsFrom("other-debian", fresh, both...) // nobody else asked there: it is the one more
	s.bootsFrom("other-debian", old, both...)
	s.bootsFromAny("cloud-fedora")

	// Two nodes of it serve.
	for served := 0; served < 2; {
		out := s.wait(s.submit(wish("other-debian")))
		lock, n, err := s.store.LockNode(t.Context(), out.Nodes[0], "")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(n.ImageID, fresh.Path()+"/") {
			served++
		}
		n.State, n.StateTime = zkmodel.NodeInUse, zkmodel.EpochOf(time.Now().Add(-2*canary.Short))
		if !strings.HasPrefix(n.ImageID, fresh.Path()+"/") {
			n.State = zkmodel.NodeDeleting // it makes room
		}
		if err := s.store.SaveNode(t.Context(), lock, n); err != nil {
			t.Fatal(err)
		}
		if n.State == zkmodel.NodeDeleting {
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.zuul.Cancel(out.ID); err != nil {
			t.Fatal(err)
		}
		if c := s.canary("other"); c.Trial == nil {
			break // the time was over, and one more was served meanwhile
		}
	}
	s.promoted(fresh, "other")
	s.bootsFrom("other-debian", fresh, both...)
	s.bootsFrom("other-debian", fresh, both...)
}

// debian reads that image.
func (s *site) debian() *zkmodel.Image {
	s.t.Helper()
	i, err := s.store.WithCanaries(true).Image(s.t.Context(), "debian")
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

// A canary that does not boot costs no request, and retreats in its provider alone: idle
// nodes of it go, used ones stay, all others boot from the build before. It is not the canary
// again; the next build is, and a person's word promotes it, or rejects it. Mistakes: a
// request that fails for the canary; a provider that retreats for another; two events for
// one thing; a build that waits behind a canary and serves.
func TestCanaryRetreats(t *testing.T) {
	t.Parallel()
	s := newSite(t, withCanary("{share: 60%, for: 1h, max-failures: 3}"))
	for i := range s.config.Providers {
		s.config.Providers[i].LaunchRetries = 1
	}
	old := s.image()
	log := recipe.NewLog(event.Root, "/poolkeeper/launcher/one")
	said := &book{}
	tells := func(d *launcher.Deps) {
		d.Client.SetLog(log)
		d.Logger = hclog.New(&hclog.LoggerOptions{Output: said})
	}
	both := []*running{s.launch(named("nl01"), tells), s.launch(named("nl02"), tells)}
	s.promoted(old, "cloud", "other")
	bad := s.imageOf("debian")
	s.isCanary(bad, "cloud", "other")
	idle := s.idle("cloud-debian")
	busy, _ := s.used("cloud-debian")
	for !strings.HasPrefix(busy.ImageID, bad.Path()+"/") {
		busy, _ = s.used("cloud-debian")
	}
	if !strings.HasPrefix(idle.ImageID, bad.Path()+"/") {
		t.Errorf("the first node boots from %s", idle.ImageID)
	}
	leave := s.foreignPool(zkmodel.Component{ID: "theirs", ProviderName: "cloud", PoolName: "main", Knows: zkmodel.Strings{zkmodel.KnowsCanaries}})
	s.failing("cloud", bad)
	zktest.Eventually(t, func() bool {
		s.bootsFromAny("cloud-debian")
		return s.canary("cloud").Trial == nil
	}, "it retreats")
	zktest.Eventually(t, func() bool {
		return strings.Contains(said.String(), "goes on with the canary: build="+bad.ID+" image=debian provider=cloud name=foreign pool=main")
	}, "the log tells who goes on with it")
	leave()
	v := s.debian().Verdict(bad, "cloud")
	if v == nil || v.Kind != zkmodel.Retreated || v.By != "canary" || !strings.Contains(v.Reason, " did not boot") {
		t.Fatalf("%+v", v)
	}
	s.gone(idle)
	s.untouched(busy)
	for range 4 {
		s.bootsFrom("cloud-debian", old, both...)
	}
	s.isCanary(bad, "other")

	next, after := s.imageOf("debian"), s.imageOf("debian")
	zktest.Eventually(t, func() bool { c := s.canary("cloud"); return c.Trial.Is(next) || c.Trial.Is(after) }, "the next build is the canary")
	op := operate.New(s.store.WithCanaries(true), "ann")
	if where, err := op.Promote(t.Context(), "debian", after.ID, nil); err != nil || len(where) != 2 || !where[0].Canary || !where[1].Canary {
		t.Fatalf("%v %v", where, err)
	}
	s.promoted(after, "cloud", "other")
	s.bootsFrom("cloud-debian", after, both...)
	s.bootsFrom("other-debian", after, both...)
	last := s.imageOf("debian")
	s.isCanary(last, "cloud", "other")
	all, err := op.Judge(t.Context(), operate.Judgement{Image: "debian", Kind: zkmodel.RolledBack}) // the newest in use
	if err != nil || len(all) != 2 || all[0].Build != last.ID || all[0].Serves.Build != after.ID {
		t.Errorf("%+v %v", all, err)
	}
	s.promoted(after, "cloud", "other")
	s.suspectIsDropped()
	list := s.told(log)
	for _, want := range []string{
		"began " + bad.ID + " in cloud", "began " + bad.ID + " in other", "retreated " + bad.ID + " in cloud",
		"began " + last.ID + " in cloud", "began " + last.ID + " in other",
	} {
		if n := len(slices.DeleteFunc(slices.Clone(list), func(one string) bool { return one != want })); n != 1 {
			t.Errorf("%d events tell that the canary %s:\n%s", n, want, strings.Join(list, "\n"))
		}
	}
}

// What boots yet says nothing: a canary of which enough nodes have failed stays while nodes of
// the build before boot, and retreats once these do well. Mistake: a build that retreats in
// a provider where nothing boots, since its nodes were the first to fail.
func TestCanaryIsComparedWithWhatHasBooted(t *testing.T) {
	t.Parallel()
	s := newSite(t, withCanary("{share: 50%, for: 1h, max-failures: 2}"))
	for i := range s.config.Providers {
		s.config.Providers[i].LaunchRetries = 3
	}
	old := s.image()
	both := []*running{s.launch(named("nl01")), s.launch(named("nl02"))}
	s.promoted(old, "cloud", "other")
	bad := s.imageOf("debian")
	s.isCanary(bad, "cloud", "other")
	until := make(chan struct{})
	s.booting("cloud", bad, until)
	var requests []string
	for range 6 {
		requests = append(requests, s.submit(wish("cloud-debian")))
	}
	zktest.Eventually(t, func() bool { one, _ := s.canary("cloud").Tallies(); return one.Failed >= 2 }, "nodes of the canary have failed")
	for _, l := range both {
		if err := l.Tree().Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if c := s.canary("cloud"); c.Trial == nil {
		t.Errorf("it retreats while no other node has booted: %+v", s.debian().Verdicts)
	}
	close(until)
	for _, id := range requests {
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
	zktest.Eventually(t, func() bool { return s.debian().Verdict(bad, "cloud") != nil }, "it retreats")
	s.isCanary(bad, "other")
}

// suspectIsDropped begins a canary of which the upload in one provider becomes suspect: it is
// the canary there no more, whatever nodes of it there were, and the next build is.
func (s *site) suspectIsDropped() {
	s.t.Helper()
	doubted := s.imageOf("debian")
	s.isCanary(doubted, "cloud", "other")
	for _, u := range s.debian().Build(doubted.ID).Uploads {
		if u.Provider != "cloud" {
			continue
		}
		lock, now, err := s.store.LockUpload(s.t.Context(), u.UploadKey)
		if err != nil {
			s.t.Fatal(err)
		}
		now.Suspect = "suspect: the cloud says that it does not have it"
		if err := errors.Join(s.store.SaveUpload(s.t.Context(), lock, now), lock.Release(s.t.Context())); err != nil {
			s.t.Fatal(err)
		}
	}
	zktest.Eventually(s.t, func() bool { return s.canary("cloud").Trial == nil }, "a suspect canary is none")
	s.isCanary(s.imageOf("debian"), "cloud")
	s.isCanary(doubted, "other")
}

// A canary of which nobody wants a node long enough is left to people, once; a build whose
// upload goes is no canary any more. With retreat: delete the bad upload leaves ready. Mistakes:
// a build that serves untried; a question at each look; a canary that is nowhere.
func TestCanaryAsks(t *testing.T) {
	t.Parallel()
	s := newSite(t, withCanary("{share: 100%, for: 1, max-failures: 1, retreat: delete}"))
	old := s.image()
	log := recipe.NewLog(event.Root, "/poolkeeper/launcher/one")
	one := s.launch(func(d *launcher.Deps) { d.Client.SetLog(log) })
	s.promoted(old, "cloud", "other")
	fresh := s.imageOf("debian")
	s.isCanary(fresh, "cloud", "other")
	s.bootsFrom("cloud-debian", fresh)
	zktest.Eventually(t, func() bool { return s.canary("cloud").Trial.Asked != 0 }, "people are asked")
	s.bootsFrom("cloud-debian", fresh, one)
	if c := s.canary("other"); c.Trial.Began != 0 || c.Trial.Asked != 0 {
		t.Errorf("without a node it began: %+v", c.Trial)
	}
	for _, u := range s.debian().Build(fresh.ID).Uploads {
		if u.Provider == "other" {
			if err := s.store.DeleteUpload(t.Context(), u.UploadKey); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.promoted(old, "other")
	s.bootsFrom("other-debian", old, one)
	s.failing("cloud", fresh)
	s.bootsFromAny("cloud-debian")
	s.promoted(old, "cloud")
	if u := s.debian().Build(fresh.ID).Uploads[0]; u.State != zkmodel.UploadDeleting {
		t.Errorf("the bad upload is %s", u.State)
	}
	list := s.told(log)
	if n := strings.Count(strings.Join(list, "\n"), "asks "); n != 1 {
		t.Errorf("people are asked %d times:\n%s", n, strings.Join(list, "\n"))
	}
}

// A Nodepool builder deletes the build that is active beside a canary, as it keeps two builds: the
// canary is decided at once, with the reason, and no event calls it promoted. Mistake: a canary that passes untried.
func TestPreviousBuildIsDeletedByNodepool(t *testing.T) {
	t.Parallel()
	s := newSite(t, withCanary("{share: 100%, for: 3600, max-failures: 5}"))
	old := s.image()
	log, events := &book{}, recipe.NewLog(event.Root, "/poolkeeper/launcher/one")
	s.launch(func(d *launcher.Deps) {
		d.Client.SetLog(events)
		d.Logger = hclog.New(&hclog.LoggerOptions{Output: log})
	})
	s.promoted(old, "cloud", "other")
	fresh := s.imageOf("debian")
	s.isCanary(fresh, "cloud", "other")
	data, stat, err := s.store.Session().Get(t.Context(), old.Path())
	if err == nil { // without any lock, as Nodepool does
		data = []byte(strings.Replace(string(data), `"ready"`, `"deleting"`, 1))
		_, err = s.store.Session().Set(t.Context(), old.Path(), data, stat.Version)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.promoted(fresh, "cloud", "other")
	s.bootsFrom("cloud-debian", fresh)
	want := []string{"began " + fresh.ID, "ended " + fresh.ID}
	for _, p := range []string{"cloud", "other"} {
		var got []string
		for _, told := range s.told(events) {
			if what, ok := strings.CutSuffix(told, " in "+p); ok {
				got = append(got, what)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("events in %s: %v, want %v", p, got, want)
		}
		if why := "build " + old.ID + ", which was active, is not in " + p + " any more"; !strings.Contains(log.String(), why) {
			t.Errorf("the log does not say %q", why)
		}
	}
}

// Beside a launcher that knows no canaries there is none: a build serves as soon as it is
// ready, and the log says why. Mistake: a share that only we keep.
func TestCanaryIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, withCanary("{}"))
	old := s.image()
	log := &book{}
	s.launch(func(d *launcher.Deps) { d.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	s.promoted(old, "cloud", "other")
	s.foreignPool(zkmodel.Component{ID: "theirs", ProviderName: "cloud", PoolName: "main", Knows: zkmodel.Strings{zkmodel.KnowsVerdicts}})
	zktest.Eventually(t, func() bool {
		return strings.Contains(log.String(), "canaries are refused in cloud: the launcher on foreign knows none")
	}, "the log tells why")
	fresh := s.imageOf("debian")
	s.promoted(fresh, "cloud")
	s.isCanary(fresh, "other")
	s.bootsFrom("cloud-debian", fresh)
}

// A launcher that is killed, at whatever step of a node, has counted it or not, never
// twice, and the other goes on. Mistakes: a canary's node that is counted again by who takes
// it over; a share that grows with each death.
func TestCanaryKilledAtEveryStep(t *testing.T) {
	for _, at := range []step.Step{step.Begun, step.Created, step.Booted, step.Failed, step.DeleteMarked} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			const jobs = 4
			s, c := newCrashSite(t, withCanary("{share: 50%, for: 1h, max-failures: 100}"))
			old := s.image()
			c.BootsFail = at == step.Failed
			c.Name = "one"
			c.spawn(t)
			s.promoted(old, "cloud")
			fresh := s.imageOf("debian")
			s.isCanary(fresh, "cloud")
			c.At = at
			c.Name = "two"
			c.spawn(t)
			c.Name = "three"
			c.spawn(t)
			ends := make(chan error, jobs)
			for range jobs {
				go func() { ends <- s.zuul.Run(context.WithoutCancel(t.Context()), wish("cloud-debian"), nil) }()
			}
			for range jobs {
				if err := <-ends; err != nil && at != step.Failed {
					t.Error(err)
				}
			}
			s.settled()
			one, other := s.canary("cloud").Tallies()
			all := one.Nodes + other.Nodes
			if 100*one.Nodes > 50*all+100 || one.Nodes == 0 {
				t.Errorf("%d of %d nodes boot from the canary", one.Nodes, all)
			}
			// Those that died had no more than all jobs in hand, each of which is begun anew.
			if most := 2 * jobs; at != step.Failed && all > most {
				t.Errorf("%d nodes are counted: %s, %s", all, one, other)
			}
			if done := one.Failures() + one.Served; done > one.Nodes {
				t.Errorf("%s", one)
			}
		})
	}
}
