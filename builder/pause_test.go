package builder

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"poolkeeper/builder/step"
	"poolkeeper/zkmodel"
)

// A builder that is paused begins no build, and says so; the other one does, and what is
// being built goes on, is uploaded and is in hand until then. Catches: a drain that ends in
// the middle of a build, or waits for ever as the next one has begun.
func TestPausedBuilderBuildsNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img", "more", "third")
	flag := filepath.Join(s.dir, "go")
	for _, name := range []string{"more", "third"} {
		s.addImage(name)
	}
	for i := range s.config.DiskImages {
		s.config.DiskImages[i].EnvVars["FAKE_WAIT"] = flag
	}
	one := s.pausable("one")
	s.eventually("one image is being built", func() bool {
		what, known := one.InHand()
		return known && what == "builds: 1, uploads: 0"
	})
	var building string
	s.eventually("the record of its build is there", func() bool {
		for _, image := range []string{"img", "more", "third"} {
			if len(s.builds(image, zkmodel.BuildBuilding)) > 0 {
				building = image
			}
		}
		return building != ""
	})
	one.Pause("paused by anna")
	if err := os.WriteFile(flag, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.eventually("it ends what it has", func() bool {
		what, _ := one.InHand()
		return what == "" && len(s.uploads(building, "south", zkmodel.UploadReady)) == 1
	})
	s.eventually("its record says why it is paused", func() bool {
		list, err := s.store.Daemons(t.Context())
		return err == nil && len(list) == 1 && list[0].State == zkmodel.ComponentPaused && list[0].Reason == "paused by anna"
	})
	s.config.ImagesDir += "2"
	s.pausable("two")
	for _, image := range []string{"img", "more", "third"} {
		s.ready(image, 1, "south")
		if got, paused := s.builds(image, zkmodel.BuildReady)[0].Builder, image == building; (got == "one") != paused {
			t.Errorf("%s was built by %s", image, got)
		}
	}
	one.Pause("")
	s.eventually("it builds again", func() bool { return one.Ready() == nil })
}

// A build that has passed the look at the pause, and has no record yet, is in hand of the
// builder that is paused meanwhile. Catches: a drain that finds nothing in hand twice, and
// ends the daemon in the middle of the build that then begins.
func TestPauseCountsTheBuildThatBegins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("more")
	var begins atomic.Bool
	gate := make(chan struct{})
	one := s.pausable("one", func(d *Deps) {
		d.Step = func(at step.Step) { begins.Store(begins.Load() || at == step.BuildLocked) }
		d.Deciding = func(context.Context) func() {
			if begins.Load() {
				<-gate
			}
			return func() {}
		}
	})
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	inHand := func() string {
		what, known := one.InHand()
		if !known {
			t.Error("what is in hand is not known")
		}
		return what
	}
	s.eventually("a build begins, and waits at the gate", func() bool { return strings.HasPrefix(inHand(), "builds: ") })
	one.Pause("paused by anna")
	if what := inHand(); what == "" || len(s.builds("img", zkmodel.BuildBuilding))+len(s.builds("more", zkmodel.BuildBuilding)) > 0 {
		t.Errorf("in hand: %q, or a build has begun", what)
	}
	open()
	s.eventually("it begins, or has seen the pause, and ends", func() bool { return inHand() == "" })
}

// An upload that begins while a drain looks is either in hand of it, or does not begin.
// Catches: a drain that finds nothing in hand, and ends the daemon in the middle of the
// upload that then begins.
func TestFinishCutsOffNoUpload(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addProvider("south", "qcow2", "img")
	var recorded, first atomic.Int32
	at, decides := make(chan struct{}), make(chan struct{})
	var begins, looks atomic.Bool
	one := s.pausable("one", func(d *Deps) {
		d.UploadWorkers = 1
		d.Step = func(is step.Step) {
			switch {
			case is == step.UploadRecorded:
				recorded.Add(1)
			case is == step.UploadLocked && first.Add(1) == 1:
				begins.Store(true)
				<-at
				looks.Store(true)
			}
		}
		d.Deciding = func(context.Context) func() {
			if looks.Load() {
				<-decides
			}
			return func() {}
		}
	})
	pass, decide := sync.OnceFunc(func() { close(at) }), sync.OnceFunc(func() { close(decides) })
	defer decide()
	defer pass()
	s.eventually("an upload is about to begin", func() bool { what, _ := one.InHand(); return begins.Load() && what == "" })
	one.Pause("paused by anna")
	if !one.Finish() {
		t.Fatal("something is in hand that has not begun")
	}
	pass()
	s.eventually("it looks whether it may", func() bool { what, _ := one.InHand(); return what == "builds: 0, uploads: 1" })
	if one.Finish() {
		t.Error("nothing is in hand while an upload may begin")
	}
	decide()
	one.Pause("paused by bert") // the drain is called off
	for _, provider := range []string{"north", "south"} {
		s.ready("img", 1, provider)
	}
	s.eventually("nothing is in hand", func() bool { what, _ := one.InHand(); return what == "" })
	began := recorded.Load()
	if !one.Finish() {
		t.Fatal("something is in hand")
	}
	gone := s.uploads("img", "south", zkmodel.UploadReady)[0]
	if err := s.store.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, gone.UploadKey, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("what is to go goes", func() bool {
		return !slices.ContainsFunc(s.builds("img", zkmodel.BuildReady)[0].Uploads, func(u *zkmodel.Upload) bool { return u.ID == gone.ID && u.Provider == "south" })
	})
	if got := recorded.Load(); got != began {
		t.Errorf("%d uploads have begun after the end", got-began)
	}
	one.Pause("")
	s.ready("img", 1, "south")
}

// pausable starts a builder on a host of its own. It is stopped with the test.
func (s *site) pausable(host string, change ...func(*Deps)) *Builder {
	s.t.Helper()
	deps := s.deps()
	for _, c := range change {
		c(&deps)
	}
	deps.Client, deps.Hostname, deps.FQDN = s.dial(s.root), host, host
	config := *s.config
	b, err := New(&config, deps)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	var done sync.WaitGroup
	done.Go(func() {
		if err := b.Run(ctx); err != nil {
			s.t.Errorf("builder ended with %v", err)
		}
	})
	s.t.Cleanup(func() { cancel(); done.Wait() })
	return b
}
