package builder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// copied makes a site's configuration use a copy of images-dir.
func (s *site) copied(name string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, name)
	if err := os.CopyFS(dir, os.DirFS(s.config.ImagesDir)); err != nil {
		s.t.Fatal(err)
	}
	s.config = copyOf(s.config)
	s.config.ImagesDir = dir
	return dir
}

// Of two builders with one builder id, as a copied images-dir has it, the second
// waits for the first's session, says so and ends; it builds and removes nothing.
func TestTwoBuildersWithOneID(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.addImage("other").Formats = []string{"raw"}
	s.addProvider("south", "qcow2", "img") // which waits for each build's file
	s.settings(1).FailEvery = map[string]int{fake.OpUpload: 1}
	s.start(func(d *Deps) { d.Client = s.dialFor(s.root, 2*time.Second) })
	s.ready("img", 1, "north")
	s.ready("other", 1)
	s.copied("copy")

	deps := s.deps()
	deps.Client, deps.Hostname, deps.FQDN = s.dial(s.root), "copy", "copy.example.org"
	second, err := New(copyOf(s.config), deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx) }()
	s.eventually("it says what it waits for", func() bool { return errors.Is(second.Ready(), ErrSameID) })
	if text := second.Ready().Error(); !strings.Contains(text, "host.example.org") {
		t.Errorf("it waits, not ready: %s", text)
	}
	if c := s.record("copy"); c.State != zkmodel.ComponentInitializing || !strings.Contains(c.Reason, "host.example.org") {
		t.Errorf("the tree tells of it: %s, %q", c.State, c.Reason)
	}
	for _, image := range []string{"img", "other"} {
		if err := s.store.RequestBuild(t.Context(), image); err != nil {
			t.Fatal(err)
		}
	}
	s.ready("img", 2, "north")
	s.ready("other", 2)
	if err := <-ended; !errors.Is(err, ErrSameID) || !strings.Contains(err.Error(), "host.example.org") {
		t.Errorf("it ends: %v", err)
	}
	for _, image := range []string{"img", "other"} {
		for _, b := range s.tree(image).Builds {
			if b.Builder != "host.example.org" || b.ID > "0000000002" {
				t.Errorf("build %s of %s", b.Name(), b.Builder)
			}
		}
	}
}

// Who was there before us, and is gone before its session is over, holds us up for no
// longer: a start after kill -9.
func TestBuilderWaitsForWhoWasHereBefore(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if err := os.MkdirAll(s.config.ImagesDir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.config.ImagesDir, "builder_id.txt"), []byte("an/id\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := s.dial(s.root)
	session, err := before.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := recipe.NewLock(session, zkmodel.BuilderIDPath("an/id"), "of another make", recipe.EnsureParents()).Try(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := s.run()
	s.eventually("it waits", func() bool { return errors.Is(b.Ready(), ErrSameID) })
	before.Close()
	s.ready("img", 1, "north")
	if err := b.Ready(); err != nil {
		t.Errorf("at work: %v", err)
	}
	if c := s.record("host"); c.State != zkmodel.ComponentRunning || c.Reason != "" {
		t.Errorf("the tree tells of it: %s, %q", c.State, c.Reason)
	}

	// Removed by hand: it ends its work and takes the id again.
	dir := zkmodel.BuilderIDPath("an/id")
	line, err := recipe.Contenders(t.Context(), s.store.Session(), dir)
	if err != nil || len(line) != 1 {
		t.Fatalf("in line for the builder id: %v, %v", line, err)
	}
	if owner := zkmodel.DecodeBuilderOwner(line[0].Identifier, 0); owner.Host != "host.example.org" || owner.ImagesDir != s.config.ImagesDir || owner.Timeout <= 0 {
		t.Errorf("the owner of the id: %+v", owner)
	}
	if err := s.store.Session().Delete(t.Context(), dir+"/"+line[0].Name, recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	s.eventually("it has the id again", func() bool {
		again, err := recipe.Contenders(t.Context(), s.store.Session(), dir)
		return err == nil && len(again) == 1 && again[0].Name != line[0].Name
	})
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 2, "north")
}
