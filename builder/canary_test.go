package builder

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

// inService changes how builds of img come into service in north, as a launcher does.
func (s *site) inService(change func(*zkmodel.Canary) *zkmodel.Canary) {
	s.t.Helper()
	store := s.store.WithCanaries(true)
	i, err := store.Image(s.t.Context(), "img")
	if err != nil {
		s.t.Fatal(err)
	}
	if i.Canary("north") == nil {
		err = store.BeginCanaries(s.t.Context(), zkmodel.NewCanary("north", "img", i.Builds[len(i.Builds)-1].Build))
	} else {
		err = store.ChangeCanary(s.t.Context(), change(i.Canary("north")))
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// begins has the newest ready upload of img in north be the canary there.
func (s *site) begins() {
	s.t.Helper()
	ready := s.uploads("img", "north", zkmodel.UploadReady)
	u := ready[len(ready)-1]
	s.inService(func(c *zkmodel.Canary) *zkmodel.Canary {
		return c.Begin(u, s.tree("img").Build(u.Build).Build, zkmodel.EpochOf(time.Now()))
	})
}

// buildNext asks for another build of an image, and waits until it is in a state in north.
func (s *site) buildNext(image string, state zkmodel.UploadState, there func(*zkmodel.Upload) bool) *zkmodel.Upload {
	s.t.Helper()
	before := s.tree(image).Builds
	last := before[len(before)-1].ID // of which older ones may go meanwhile
	if err := s.store.RequestBuild(s.t.Context(), image); err != nil {
		s.t.Fatal(err)
	}
	var u *zkmodel.Upload
	s.eventually(fmt.Sprintf("another build of %s is %s in north", image, state), func() bool {
		builds := s.tree(image).Builds
		list := s.uploads(image, "north", state)
		if builds[len(builds)-1].ID == last || len(list) == 0 {
			return false
		}
		u = list[len(list)-1]
		return u.Build == builds[len(builds)-1].ID && there(u)
	})
	return u
}

func anyUpload(*zkmodel.Upload) bool { return true }

// While a build is the canary in a provider, newer ones are sent there and wait in
// `uploading`, with their lock held and an heir in line, over the end of their builder and
// beside a Nodepool builder's clean-up; then the newest of them is ready, the others when that
// one is decided, too. Another provider's, and another image's, are ready at once. Mistakes:
// a build that is ready beside a canary; one that launchers are asked to try; one that waits
// for ever; two that are ready at once, so that Nodepool removes what serves; an event or a
// figure of a trial that never was.
func TestBuildsWaitForTheCanary(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("plain")
	s.image().Canary = &configs.Canary{Share: 5, For: time.Hour, MinNodes: 3, MaxFailures: 5}
	s.image().KeepBuilds = 4
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img", "plain")
	s.addProvider("south", "raw", "img", "plain")
	first := s.start(func(d *Deps) { d.UploadWorkers = 1 }) // what waits keeps no worker
	s.ready("img", 1, "north", "south")
	s.ready("plain", 1, "north", "south")
	s.inService(nil)
	second := s.buildNext("img", zkmodel.UploadReady, anyUpload)
	s.begins()
	third := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	s.ready("img", 3, "south")
	s.buildNext("plain", zkmodel.UploadReady, anyUpload)
	v := s.trials("img")["north"]
	if v == nil || !v.Canary || !v.Result.Final() || len(s.trials("img")) != 1 || v.Text() != "it waits until build "+second.Build+", the canary, is decided" {
		t.Fatalf("recorded: %+v", v)
	}
	s.config.ImagesDir = s.dir + "/other"
	s.start(s.other("second"))
	s.eventually("an heir stands in line", func() bool { return s.inLine("img", "north") == 2 })
	before := s.inCloud("north")
	first()
	s.eventually("the heir holds it", func() bool { return s.inLine("img", "north") == 1 })
	fourth := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	if n := s.nodepoolCleans("img"); n != 0 || !subset(before, s.inCloud("north")) {
		t.Errorf("%d records are taken; in north are %v, were %v", n, s.inCloud("north"), before)
	}

	s.inService(func(c *zkmodel.Canary) *zkmodel.Canary {
		return c.Promote(s.tree("img").Build(second.Build).Build, "canary", "")
	})
	s.isReady(fourth, "the newest is ready as the canary is promoted")
	s.begins()
	if u, err := s.store.Upload(t.Context(), third.UploadKey); err != nil || !u.OnTrial() {
		t.Errorf("the older one waits no more: %+v, %v", u, err)
	}
	op := operate.New(s.store.WithCanaries(true), "ann")
	reject := operate.Judgement{Image: "img", Build: fourth.Build, Providers: []string{"north"}, Kind: zkmodel.Rejected}
	if _, err := op.Judge(t.Context(), reject); err != nil {
		t.Fatal(err)
	}
	s.isReady(third, "the older one is ready as the canary is rejected")
	s.begins()
	fifth := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	if where, err := op.PromoteTrials(t.Context(), "img", fifth.Build, nil); err != nil || !slices.Equal(where, []operate.Promoted{{Provider: "north", Canary: true}}) {
		t.Fatalf("%v, %v", where, err)
	}
	s.isReady(fifth, "one that a person promotes is ready")
	s.servesAll(fifth)
	s.buildNext("img", zkmodel.UploadReady, anyUpload) // as nothing is a canary
	s.begins()
	seventh := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	reject.Build = seventh.Build
	if _, err := op.Judge(t.Context(), reject); err != nil {
		t.Fatal(err)
	}
	s.eventually("one that a person rejects goes", func() bool {
		_, err := s.store.Upload(t.Context(), seventh.UploadKey)
		return err != nil && len(s.trials("img")) == 0
	})
}

// No launcher begins a canary, as none of ours runs: of the builds that come one is ready, the others
// wait, so that a Nodepool builder beside us, which keeps the two newest that are ready, keeps what
// serves; where there is no record of canaries, it does not. Once launchers are back, the newest
// that waits is the next. Mistakes: what was promoted last is deleted; builds wait for ever.
func TestBuildsWaitWhereNobodyBeginsACanary(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().Canary = &configs.Canary{Share: 5, For: time.Hour, MinNodes: 3, MaxFailures: 5}
	s.image().KeepBuilds = 6
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img")
	s.addProvider("south", "raw", "img")
	s.start()
	s.ready("img", 1, "north", "south")
	s.inService(nil)
	first := s.uploads("img", "north", zkmodel.UploadReady)[0]
	second := s.buildNext("img", zkmodel.UploadReady, anyUpload)
	s.ready("img", 2, "south")
	s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	s.ready("img", 3, "south")
	if v := s.trials("img")["north"]; v == nil || v.Text() != "it waits until build "+second.Build+", which is ready and the next canary, is decided" {
		t.Errorf("recorded: %+v", v)
	}
	fourth := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	s.ready("img", 4, "south")
	if deleted := s.nodepoolKeeps("img"); !slices.Equal(deleted, []string{"south 1", "south 2"}) {
		t.Errorf("a Nodepool builder deletes %v", deleted)
	}
	s.servesAll(first)
	s.begins()
	s.inService(func(c *zkmodel.Canary) *zkmodel.Canary {
		return c.Promote(s.tree("img").Build(second.Build).Build, "canary", "")
	})
	s.isReady(fourth, "the newest that waits is the next")
	if deleted := s.nodepoolKeeps("img"); !slices.Equal(deleted, []string{"north 1"}) {
		t.Errorf("a Nodepool builder deletes %v", deleted)
	}
	s.servesAll(second)
}

// isReady waits until an upload is ready.
func (s *site) isReady(u *zkmodel.Upload, what string) {
	s.t.Helper()
	s.eventually(what, func() bool {
		now, err := s.store.Upload(s.t.Context(), u.UploadKey)
		return err == nil && now.State == zkmodel.UploadReady && now.ExternalID.Text() == u.ExternalID.Text()
	})
}

// servesAll fails unless an upload serves all new nodes of img in north.
func (s *site) servesAll(u *zkmodel.Upload) {
	s.t.Helper()
	i, err := s.store.WithCanaries(true).Image(s.t.Context(), "img")
	if err != nil {
		s.t.Fatal(err)
	}
	serves, c := i.Serving("north", zkmodel.Suspect), i.Canary("north")
	if serves == nil || serves.Build != u.Build || c.Promoted.Build != u.Build {
		s.t.Errorf("%v serves, not build %s; of canaries is recorded %+v", serves, u.Build, c)
	}
}

// A person promotes a build that waits while the builder that holds it is away: the canary goes
// on at its share, and the first build serves the others, until a builder makes the promoted one
// ready; then that serves all. Mistake: the canary, which nobody has proven, serves all meanwhile.
func TestPromotionOfWhatWaits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.image().Canary = &configs.Canary{Share: 5, For: time.Hour, MinNodes: 3, MaxFailures: 5}
	s.image().KeepBuilds = 4
	s.config.Providers = nil
	s.addProvider("north", "qcow2", "img")
	s.addProvider("south", "raw", "img")
	stop := s.start(func(d *Deps) { d.UploadWorkers = 1 })
	s.ready("img", 1, "north", "south")
	s.inService(nil)
	first := s.uploads("img", "north", zkmodel.UploadReady)[0]
	second := s.buildNext("img", zkmodel.UploadReady, anyUpload)
	s.begins()
	third := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
	s.ready("img", 3, "south")
	stop()
	op := operate.New(s.store.WithCanaries(true), "ann")
	if where, err := op.PromoteTrials(t.Context(), "img", third.Build, nil); err != nil || len(where) != 1 {
		t.Fatalf("%v, %v", where, err)
	}
	if where, err := op.Promote(t.Context(), "img", third.Build, nil); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("promoted before it is ready: %v, %v", where, err)
	}
	s.servesAll(first)
	i, err := s.store.WithCanaries(true).Image(t.Context(), "img")
	if err != nil || i.OnTrial("north") == nil || i.OnTrial("north").Build != second.Build {
		t.Errorf("the canary is none any more: %+v, %v", i, err)
	}
	s.start(s.other("another"))
	s.isReady(third, "a builder makes it ready")
	s.servesAll(third)
}

// subset reports whether all of some are among others.
func subset(some, others []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(others, one) })
}

// A builder that is killed as it sends a build that is to wait, holds it, or ends its waiting,
// with an heir and without: the upload waits as long as there is a canary, is ready then, and
// was sent once. Mistakes: an upload that is ready since its holder died; a folder without a holder.
func TestWaitingUploadsOutliveBuilders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		at   step.Step
		heir bool
	}{{step.TrialBegun, true}, {step.TrialBegun, false}, {step.TrialHeld, false}, {step.TrialEnded, true}, {step.TrialEnded, false}} {
		t.Run(fmt.Sprintf("%s heir %t", c.at, c.heir), func(t *testing.T) {
			t.Parallel()
			s, one := newSiteOf(t)
			one.Canary, one.Keep = true, 3
			two := one
			two.Host, two.Unfit = "two", true
			if c.at != step.TrialHeld {
				one.At = c.at
			}
			first := one.spawn(t)
			s.ready("img", 1, "north")
			s.inService(nil)
			canary := s.buildNext("img", zkmodel.UploadReady, anyUpload)
			s.begins()
			waits := s.buildNext("img", zkmodel.UploadUploading, (*zkmodel.Upload).OnTrial)
			one.At = ""
			switch {
			case c.at == step.TrialHeld:
				two.At = c.at
				dying := two.spawn(t)
				s.eventually("an heir is there", func() bool { return s.inLine("img", "north") == 2 })
				first.stop()
				dying.dies(t)
				one.spawn(t)
			case c.heir:
				two.spawn(t)
			}
			decided := func() {
				s.inService(func(r *zkmodel.Canary) *zkmodel.Canary {
					return r.Promote(s.tree("img").Build(canary.Build).Build, "canary", "")
				})
			}
			if c.at == step.TrialEnded {
				if c.heir {
					s.eventually("an heir is there", func() bool { return s.inLine("img", "north") == 2 })
				}
				decided()
				first.dies(t)
			} else {
				if c.at == step.TrialBegun {
					first.dies(t)
				}
				if c.at == step.TrialBegun && !c.heir {
					one.spawn(t)
				}
				s.eventually("it is held again", func() bool { return s.inLine("img", "north") == 1 })
				if u, err := s.store.Upload(t.Context(), waits.UploadKey); err != nil || !u.OnTrial() {
					t.Errorf("it waits no more: %+v, %v", u, err)
				}
				decided()
			}
			s.isReady(waits, "it is ready")
			s.eventually("nothing else is left", func() bool { return len(s.trials("img")) == 0 && len(s.inCloud("north")) == 3 })
		})
	}
}
