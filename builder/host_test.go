package builder

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/builder/step"
	"poolkeeper/zkmodel"
)

// brokenLogs is a build-log-dir that cannot be made, by root neither, until the
// file in its way is removed.
func brokenLogs(t *testing.T, parent string) (dir, inTheWay string) {
	t.Helper()
	inTheWay = filepath.Join(parent, "no folder")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(inTheWay, "logs"), inTheWay
}

// record is what the tree tells of the builder of a host.
func (s *site) record(host string) *zkmodel.Component {
	s.t.Helper()
	names, err := s.store.Session().Children(s.t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, host) {
			data, _, err := s.store.Session().Get(s.t.Context(), zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder+"/"+name)
			if err == nil {
				return zkmodel.DecodeComponent(name, data)
			}
		}
	}
	return &zkmodel.Component{}
}

// all counts the builds of some images in a state.
func (s *site) all(state zkmodel.BuildState, images ...string) (n int) {
	s.t.Helper()
	for _, image := range images {
		n += len(s.builds(image, state))
	}
	return n
}

// A host that cannot build takes no request from one that can, and fails none.
func TestHostThatCannotBuildLeavesRequestsToOthers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	images := []string{"img"}
	for i := range 5 {
		name := fmt.Sprintf("more-%d", i)
		s.addImage(name).Formats = []string{"raw"}
		images = append(images, name)
	}
	good := copyOf(s.config)
	s.config = copyOf(good)
	s.config.ImagesDir = filepath.Join(s.dir, "broken images")
	s.config.BuildLogDir, _ = brokenLogs(t, s.dir)
	broken := s.run(func(d *Deps) {
		d.Client, d.Hostname, d.FQDN, d.BuildWorkers = s.dial(s.root), "broken", "broken.example.org", 6
	})
	for _, image := range images {
		if err := s.store.RequestBuild(t.Context(), image); err != nil {
			t.Fatal(err)
		}
	}
	s.eventually("the builder says that it cannot build, or fails", func() bool {
		return errors.Is(broken.Ready(), ErrWithdrawn) || s.all(zkmodel.BuildFailed, images...) > 0
	})
	if n := s.all(zkmodel.BuildFailed, images...); n > 0 {
		t.Errorf("%d of %d requests were failed by a host that cannot build", n, len(images))
	}
	s.config = good
	s.start()
	s.eventually("all requests are served", func() bool { return s.all(zkmodel.BuildReady, images...) == len(images) })
	for _, image := range images {
		for _, b := range s.tree(image).Builds {
			if b.Builder != "host.example.org" || b.State != zkmodel.BuildReady {
				t.Errorf("build %s, %s, by %s: %s", b.Name(), b.State, b.Builder, b.Reason)
			}
		}
	}
	if c := s.record("broken"); c.State != zkmodel.ComponentPaused || !strings.Contains(c.Reason, "build-log-dir") {
		t.Errorf("the broken host tells of itself: %s, %q", c.State, c.Reason)
	}
	if c := s.record("host"); c.State != zkmodel.ComponentRunning || c.Reason != "" {
		t.Errorf("the other host tells of itself: %s, %q", c.State, c.Reason)
	}
}

// Mistake: a build's number that a file or a cloud has, and that the host has not noted: a builder that is killed
// then, and a tree that is restored, would have it come again. Two images.
func TestNumberIsNotedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other").Formats = []string{"raw"}
	file := filepath.Join(s.config.ImagesDir, ".poolkeeper", "numbers.json")
	var mu sync.Mutex
	noted := map[string]int{}
	s.run(func(d *Deps) {
		d.Step = func(at step.Step) {
			if at != step.BuildRecorded {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			text, err := os.ReadFile(file)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			noted[string(text)]++
		}
	})
	s.ready("img", 1, "north")
	s.ready("other", 1)
	mu.Lock()
	defer mu.Unlock()
	if len(noted) != 2 || noted[""] > 0 {
		t.Errorf("as builds had their records, the host had noted %v", noted)
	}
}

// What fails after the record was made and before the command began, because the host
// broke just then, is not the image's failure either.
func TestHostThatBreaksAsABuildBegins(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]func(*site) string{
		"logs":   func(s *site) string { return s.config.BuildLogDir },
		"images": func(s *site) string { return filepath.Join(s.config.ImagesDir, ".poolkeeper") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.addImage("other").Formats = []string{"raw"}
			dir := folder(s)
			var once sync.Once
			b := s.run(func(d *Deps) {
				d.HostEvery = 20 * time.Millisecond
				d.Step = func(at step.Step) {
					if at == step.BuildRecorded {
						once.Do(func() {
							if err := errors.Join(os.Rename(dir, dir+" aside"), os.WriteFile(dir, nil, 0o600)); err != nil {
								t.Error(err)
							}
						})
					}
				}
			})
			s.eventually("it withdraws", func() bool { return errors.Is(b.Ready(), ErrWithdrawn) })
			if name == "logs" { // else what is here cannot be read by who explains, either
				if e := s.explain("img")[0]; !strings.Contains(verdict(e, "build", "host").Detail, "cannot build") {
					t.Errorf("it is explained: %+v", e.Verdicts)
				}
			}
			if err := errors.Join(os.Remove(dir), os.Rename(dir+" aside", dir)); err != nil {
				t.Fatal(err)
			}
			s.ready("img", 1, "north")
			s.ready("other", 1)
			if n := s.all(zkmodel.BuildFailed, "img", "other"); n > 0 {
				t.Errorf("%d builds have failed", n)
			}
		})
	}
}

// A builder that has withdrawn uploads, deletes and cleans, and returns by itself.
func TestWithdrawnBuilderGoesOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	b := s.run(func(d *Deps) { d.HostEvery = 20 * time.Millisecond })
	s.ready("img", 1, "north")

	next := copyOf(s.config)
	var inTheWay string
	next.BuildLogDir, inTheWay = brokenLogs(t, s.dir)
	if err := b.Reload(next); err != nil {
		t.Fatal(err)
	}
	s.eventually("it withdraws", func() bool { return errors.Is(b.Ready(), ErrWithdrawn) })
	s.config = copyOf(next)
	s.addProvider("south", "raw", "img")
	s.config.Providers[1].ImageFormat = "qcow2" // which the build has
	if err := b.Reload(copyOf(s.config)); err != nil {
		t.Fatal(err)
	}
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.eventually("it uploads", func() bool { return len(s.uploads("img", "south", zkmodel.UploadReady)) == 1 })
	if err := s.store.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, s.uploads("img", "south", zkmodel.UploadReady)[0].UploadKey, false); err != nil {
		t.Fatal(err)
	}
	s.eventually("it deletes, and uploads again", func() bool {
		up := s.uploads("img", "south", zkmodel.UploadReady)
		return len(up) == 1 && up[0].ID > "0000000001" && len(s.inCloud("south")) == 1
	})
	if n := len(s.tree("img").Builds); n != 1 {
		t.Errorf("%d builds, want one: a withdrawn builder begins none", n)
	}
	if c := s.record("host"); !strings.Contains(c.Reason, "build-log-dir") {
		t.Errorf("it tells of itself: %s, %q", c.State, c.Reason)
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	s.eventually("it serves the request", func() bool { return s.tree("img").BuildRequested == nil })
	s.ready("img", 2, "north", "south")
	if err := b.Ready(); err != nil {
		t.Errorf("after its return: %v", err)
	}
	s.eventually("it says so", func() bool {
		c := s.record("host")
		return c.State == zkmodel.ComponentRunning && c.Reason == ""
	})
}
