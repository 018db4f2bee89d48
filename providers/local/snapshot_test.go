package local

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// snapshotSection is a section whose guests are resumed, where their image allows it.
func snapshotSection(dir string) configs.Provider {
	cfg := section(dir)
	cfg.BootTimeout = time.Second
	settingsOf(&cfg).Snapshots = true
	return cfg
}

// An image whose guests never ask for an identity costs the first launch the wait for it, and
// no other; its guests are booted.
func TestGuestOfAnUnawareImageIsBooted(t *testing.T) {
	dir := t.TempDir()
	p := open(t, snapshotSection(dir), Options{})
	image := upload(t, p)
	g := boot(t, p, spec(p, 1, image))
	if !strings.Contains(g.SnapshotWhy, errNotReady.Error()) || g.Snapshot != "" || g.Phase != started {
		t.Errorf("guest: %+v", g)
	}
	if !strings.Contains(g.runs(), "booted, since there is no snapshot") {
		t.Error(g.runs())
	}
	p.readyTime = time.Hour // another try would take the test's time
	if other := boot(t, p, spec(p, 2, image)); other.SnapshotWhy != g.SnapshotWhy || other.Number == g.Number {
		t.Errorf("guests: %+v, %+v", g, other)
	}
	left, err := p.snapshots(image).ids()
	if err != nil || len(left) > 0 || len(below(t, p.images.path(image))) > 0 {
		t.Errorf("snapshots %v, %v", left, err)
	}
	counted := map[string]uint64{}
	for _, c := range p.Calls() {
		counted[c.Operation] = c.Count
	}
	if want := map[string]uint64{didNotSave: 1, didBoot: 2}; !maps.Equal(counted, want) {
		t.Errorf("counted is %v, want %v", counted, want)
	}
	if all, err := ExplainSnapshots(snapshotSection(dir)); err != nil || len(all) != 1 || all[0].State != "refused" || !strings.Contains(all[0].Detail, errNotReady.Error()) {
		t.Errorf("explained is %v, %v", all, err)
	}
	if err := p.DeleteImage(t.Context(), image); err != nil {
		t.Error(err)
	}
}

// What is known of snapshots is told of each image, and nothing where they are not wanted, or nothing was uploaded.
func TestSnapshotsAreExplained(t *testing.T) {
	dir := t.TempDir()
	cfg := snapshotSection(dir)
	if all, err := ExplainSnapshots(cfg); err != nil || len(all) > 0 {
		t.Errorf("an empty folder has %v, %v", all, err)
	}
	p := open(t, cfg, Options{})
	image := upload(t, p)
	explained := func(want string) {
		t.Helper()
		all, err := ExplainSnapshots(cfg)
		if err != nil || len(all) != 1 || all[0].Image == "" || all[0].State != want {
			t.Errorf("explained is %v, %v, want %s", all, err, want)
		}
	}
	explained("none")
	s := p.snapshots(image)
	if err := os.MkdirAll(s.path("512m-1c-1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := writeRecord(s.path("512m-1c-1", recordName), snapshotRecord{Created: time.Now(), Took: time.Minute}); err != nil {
		t.Fatal(err)
	}
	explained("there")
	(&source{shelf: s, name: "512m-2c-2"}).refuse(errUnaware)
	if all, err := ExplainSnapshots(cfg); err != nil || len(all) != 2 {
		t.Errorf("explained is %v, %v", all, err)
	}
	settingsOf(&cfg).Snapshots = false
	if all, err := ExplainSnapshots(cfg); err != nil || len(all) > 0 {
		t.Errorf("where none are wanted: %v, %v", all, err)
	}
}

// below are the processes that work below a folder.
func below(t *testing.T, dir string) (found []int) {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if where, err := p.Cwd(); err == nil && strings.HasPrefix(where, dir) {
			found = append(found, p.PID)
		}
	}
	return found
}

// Without the key nothing is different.
func TestNoSnapshotUnlessWanted(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	image := upload(t, p)
	g := boot(t, p, spec(p, 1, image))
	if g.Number != 0 || g.SnapshotWhy != "" {
		t.Errorf("guest: %+v", g)
	}
	if _, err := os.Stat(p.snapshots(image).dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("snapshots: %v", err)
	}
	if line := strings.Join(arguments(g), " "); strings.Contains(line, "net=") || strings.Contains(line, "mac=") {
		t.Error(line)
	}
}

// A failure that may have been the host's is believed for a while, one of the image for ever.
func TestRefusalsEnd(t *testing.T) {
	p := open(t, snapshotSection(t.TempDir()), Options{})
	g := guest{Phase: planned, Cores: 1, RAM: 16}
	s, err := p.place(t.Context(), g, upload(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.settled(); done {
		t.Fatalf("nothing is known yet: %v", err)
	}
	if r := s.refuse(providers.ErrQuota); time.Until(r.Until) > refusalTime || time.Until(r.Until) < refusalTime/2 {
		t.Errorf("believed until %s", r.Until)
	}
	if done, err := s.settled(); !done || err == nil {
		t.Errorf("after a refusal: %t, %v", done, err)
	}
	past := refusal{"long ago", time.Now().Add(-time.Minute)}
	if err := writeRecord(s.shelf.path(refusedPrefix+s.name), past); err != nil {
		t.Fatal(err)
	}
	if done, err := s.settled(); done {
		t.Errorf("after its end: %v", err)
	}
	if r := s.refuse(fmt.Errorf("of the image: %w", errUnaware)); !r.Until.IsZero() {
		t.Errorf("believed until %s", r.Until)
	}
	if done, err := s.settled(); !done || err == nil {
		t.Errorf("for ever: %t, %v", done, err)
	}
}

// What is half-made goes at the next start, and what another QEMU has left when its like is made.
func TestOldSnapshotsGo(t *testing.T) {
	dir := t.TempDir()
	p := open(t, snapshotSection(dir), Options{})
	s, err := p.place(t.Context(), guest{Cores: 1, RAM: 16}, upload(t, p))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{stagePrefix + "1", gonePrefix + "2", s.key.kind() + "old", s.name, "512m-2c-other"} {
		write(t, filepath.Join(s.shelf.dir, name, "file"), "", 0o600)
	}
	p.outdate(s)
	open(t, snapshotSection(dir), Options{})
	left, err := filepath.Glob(filepath.Join(s.shelf.dir, "*", "file"))
	if err != nil || len(left) != 2 || slices.ContainsFunc(left, func(path string) bool { return strings.Contains(path, "old") }) {
		t.Errorf("left: %v, %v", left, err)
	}
}

// Guests differ in what they are given, and each line is of its own words.
func TestIdentityIsTheGuestsOwn(t *testing.T) {
	p := open(t, snapshotSection(t.TempDir()), Options{})
	seen := map[string]bool{}
	for number := 1; number <= 2; number++ {
		line, err := p.identity(guest{UUID: newUUID(), Number: number, Hostname: fmt.Sprintf("np%d", number)})
		words := strings.Fields(string(line))
		if err != nil || len(words) != 15 || words[14] != "end" || strings.Count(string(line), "\n") != 1 {
			t.Fatalf("%q, %v", line, err)
		}
		for i := 1; i < len(words); i += 2 {
			if seen[words[i]] {
				t.Errorf("%s is not its own", words[i-1])
			}
			seen[words[i]] = true
		}
	}
}
