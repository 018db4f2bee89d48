package disk

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"poolkeeper/builder/dib"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// absent proves that a build has no record, in a tree without any.
func absent(t *testing.T, n Name) zkmodel.Proof {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{
		Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t), Timeout: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, stop := context.WithCancel(t.Context())
	mirror := zkmodel.NewMirror(client, zkmodel.PartImages, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = mirror.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	session, err := client.Session(ctx)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := mirror.Absent(ctx, session, zkmodel.BuildPath(n.Image, n.ID))
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

// No file goes without a proof, or with that of another build.
func TestNothingGoesWithoutProof(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "img-1.raw")
	d := open(t, dir)
	for _, proof := range []zkmodel.Proof{{}, absent(t, Name{"img", "2"}), absent(t, Name{"imp", "1"})} {
		if err := d.Remove(t.Context(), Name{"img", "1"}, proof); !errors.Is(err, zkmodel.ErrUnproven) {
			t.Errorf("remove: %v", err)
		}
		if err := d.RemoveFormat(Name{"img", "1"}, "raw", proof); !errors.Is(err, zkmodel.ErrUnproven) {
			t.Errorf("remove format: %v", err)
		}
	}
	if left := list(t, dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// lasting is a host on which a build writes until it is reclaimed.
type lasting struct {
	dib.Here
	file string
}

func (h lasting) Reclaim(context.Context, dib.Processes, dib.Scratch) error {
	return os.WriteFile(h.file, []byte("last words"), 0o600)
}

// A build that outlived its builder may still write when its files go. Mistake: what it writes last
// stays, and nothing says any more whose it is.
func TestFilesOfABuildThatStillRuns(t *testing.T) {
	dir, n := t.TempDir(), Name{"img", "1"}
	d, err := OpenOn(lasting{file: dir + "/img-1.raw.sha256"}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Begin(n, ""); err != nil {
		t.Fatal(err)
	}
	if err := d.Remove(t.Context(), n, absent(t, n)); err != nil {
		t.Fatal(err)
	}
	if left := list(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
