package launcher_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// without has launchers that start from now on have no canary of some images.
func (s *site) without(images ...string) {
	cfg := *s.config
	cfg.DiskImages = slices.Clone(cfg.DiskImages)
	for i := range cfg.DiskImages {
		if slices.Contains(images, cfg.DiskImages[i].Name) {
			cfg.DiskImages[i].Canary = nil
		}
	}
	s.config = &cfg
}

// The key is taken out of the configuration, by launchers that are restarted one by one, or all:
// what was known of canaries stays while a launcher has the key, and goes with the last;
// then the newest build serves. Mistakes: a running canary that is promoted, since the first
// launcher without the key removes its record; a record that stays for ever, and rules again
// when the key comes back.
func TestCanaryKeyIsTakenOut(t *testing.T) {
	t.Parallel()
	text := strings.Replace(withCanary("{share: 5%, for: 1h}"), "{name: fedora, elements: [fedora]}", "{name: fedora, elements: [fedora], canary: {}}", 1)
	s := newSite(t, text)
	old := s.image()
	often := func(d *launcher.Deps) { d.Resync = 100 * time.Millisecond }
	one, two := s.launch(named("nl01"), often), s.launch(named("nl02"), often)
	s.promoted(old, "cloud", "other")
	fresh := s.imageOf("debian")
	s.isCanary(fresh, "cloud", "other")
	zktest.Eventually(t, func() bool {
		c, err := s.store.Canary(t.Context(), "cloud", "fedora")
		return err == nil && c != nil
	}, "fedora has a record, too")
	s.without("debian")
	one.stop()
	one = s.launch(named("nl01"), often)
	s.isRegistered(one)
	s.isCanary(fresh, "cloud", "other")
	two.stop()
	two = s.launch(named("nl02"), often)
	zktest.Eventually(t, func() bool { return s.canary("cloud") == nil && s.canary("other") == nil }, "debian has no canary any more")
	s.bootsFrom("cloud-debian", fresh, one, two)
	if c, err := s.store.Canary(t.Context(), "cloud", "fedora"); err != nil || c == nil {
		t.Errorf("fedora: %+v, %v", c, err)
	}

	s.without("fedora")
	one.stop()
	two.stop()
	s.launch(named("nl01"), often)
	s.launch(named("nl02"), often)
	zktest.Eventually(t, func() bool {
		_, there, err := s.store.Session().Exists(t.Context(), zkmodel.CanariesRoot)
		return err == nil && !there
	}, "nothing of canaries is left")
}

// isRegistered waits until the pools of a launcher are seen by it.
func (s *site) isRegistered(l *running) {
	s.t.Helper()
	zktest.Eventually(s.t, func() bool { return l.Ready() == nil }, "the launcher serves")
	if err := l.Tree().Barrier(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

// Where no image has a canary, nothing of it stands in the tree, and nobody asks for it.
func TestNoCanaryCostsNothing(t *testing.T) {
	t.Parallel()
	s, tap := listenedTo(t)
	fresh := s.imageOf("debian")
	s.bootsFrom("cloud-debian", fresh)
	if got := tap.Naming(zkmodel.CanariesRoot); got > 1 { // as it is elected to tidy up
		t.Errorf("%d requests name %s", got, zkmodel.CanariesRoot)
	}
	pools, err := s.store.Components(t.Context(), zkmodel.KindPool)
	if err != nil || len(pools) == 0 {
		t.Fatalf("%d pools: %v", len(pools), err)
	}
	for _, p := range pools {
		if !slices.Equal(p.Knows, zkmodel.Strings{zkmodel.KnowsVerdicts, zkmodel.KnowsValidation}) {
			t.Errorf("it knows %v", p.Knows)
		}
	}
}
