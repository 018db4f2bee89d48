package builder

import (
	"errors"
	"slices"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Builds and uploads whose records cannot be decoded stay, with all that belongs to
// them, until an operator wants them to go; empty ones that a late lock has left go.
func TestBrokenRecordsStay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stop := s.start()
	s.ready("img", 1, "north")
	stop()
	session, ctx := s.store.Session(), t.Context()
	build, upload := s.builds("img", zkmodel.BuildReady)[0], s.uploads("img", "north", zkmodel.UploadReady)[0]
	for _, path := range []string{build.Path(), upload.Path()} {
		if _, err := session.Set(ctx, path, []byte(`{"state": "ready`), recipe.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	left := zkmodel.UploadPath("img", "0000000099", "north", "0000000001")
	if err := session.EnsurePath(ctx, left+"/lock"); err != nil { // as kazoo's lock does
		t.Fatal(err)
	}
	cloud, files := s.inCloud("north"), s.files()
	s.start(func(d *Deps) { d.Resync = 50 * time.Millisecond })
	s.eventually("what a late lock has left to go", func() bool {
		_, there, err := session.Exists(ctx, zkmodel.BuildPath("img", "0000000099"))
		return err == nil && !there
	})
	s.ready("img", 1, "north") // another one, as nobody knows of the first
	for _, id := range cloud {
		if !slices.Contains(s.inCloud("north"), id) {
			t.Errorf("image %s is gone", id)
		}
	}
	for _, file := range files {
		if !slices.Contains(s.files(), file) {
			t.Errorf("file %s is gone", file)
		}
	}
	if err := s.store.MarkUploadDeleting(ctx, zkmodel.ByOperator, upload.UploadKey, false); !errors.Is(err, zkmodel.ErrUndecodable) {
		t.Errorf("delete the upload: %v", err)
	}
	if err := s.store.MarkBuildDeleting(ctx, zkmodel.ByOperator, "img", build.ID, false); !errors.Is(err, zkmodel.ErrUndecodable) {
		t.Errorf("delete the build: %v", err)
	}
	if err := errors.Join(s.store.MarkUploadDeleting(ctx, zkmodel.ByOperator, upload.UploadKey, true), s.store.MarkBuildDeleting(ctx, zkmodel.ByOperator, "img", build.ID, true)); err != nil {
		t.Fatal(err)
	}
	s.eventually("what an operator deleted to go", func() bool {
		return len(s.tree("img").Builds) == 1 && !slices.Contains(s.inCloud("north"), cloud[0]) && !slices.Contains(s.files(), files[0])
	})
}
