package actions

import (
	"errors"
	"os"
	"strings"
	"testing"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// about is what a plan says about a build.
func about(kind plan.Kind, b *zkmodel.Build) plan.Action {
	return plan.Action{Kind: kind, Image: b.Image, Build: b.ID, Why: "the test says so"}
}

// superseded makes two builds of which the first is to go.
func (r *room) superseded() *zkmodel.Build {
	r.t.Helper()
	old := r.build()
	r.build()
	return old
}

// Mistake: a build that stays is marked, or its record goes while it has uploads, or without being marked, so that a builder takes it up meanwhile.
func TestBuildIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	old, newest := r.build(), r.build()
	if err := r.Do(t.Context(), about(plan.MarkBuild, newest)); !errors.Is(err, ErrStale) {
		t.Errorf("the newest: %v", err)
	}
	u := r.upload(old, zkmodel.UploadReady, known)
	r.upload(newest, zkmodel.UploadReady, known)
	if err := r.Do(t.Context(), about(plan.MarkBuild, old)); err != nil {
		t.Error(err)
	}
	r.is(old.Path(), true, step.BuildMarked)
	if now, err := r.Store.Build(t.Context(), "img", old.ID); err != nil || now.State != zkmodel.BuildDeleting {
		t.Errorf("marked: %s, %v", now.State, err)
	}
	if err := r.Do(t.Context(), about(plan.DeleteBuild, old)); !errors.Is(err, ErrStale) {
		t.Errorf("it has an upload: %v", err)
	}
	r.is(old.Path(), true)
	r.must(r.Store.Session().DeleteTree(t.Context(), u.Path()))
	r.at[step.BuildMarked] = func() { r.must(r.mirror.Barrier(t.Context())) }
	if err := r.Do(t.Context(), about(plan.DeleteBuild, old)); err != nil {
		t.Error(err)
	}
	r.is(old.Path(), false, step.BuildMarked, step.BuildDeleted)
	if !r.said.has("Build deleted") || !r.said.has("left=1") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
	if err := r.Do(t.Context(), about(plan.DeleteBuild, old)); err != nil {
		t.Errorf("again: %v", err)
	}
	r.is(old.Path(), false)
}

// Mistake: what another builder has done meanwhile is an error, or is told as our own; or what fails is told as done.
func TestAnotherBuilderIsQuicker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind plan.Kind
		at   int // how many decisions before
		want []step.Step
	}{
		"to mark":          {plan.MarkBuild, 1, nil},
		"to mark, at last": {plan.DeleteBuild, 1, nil},
		"to delete":        {plan.DeleteBuild, 2, []step.Step{step.BuildMarked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoom(t)
			old := r.superseded()
			decisions := 0
			r.decided = func() {
				if decisions++; decisions == c.at {
					in := r.mirror.Image("img") // as we see it
					r.must(r.Store.Session().DeleteTree(t.Context(), old.Path()))
					r.frozen = in
				}
			}
			if err := r.Do(t.Context(), about(c.kind, old)); err != nil && !errors.Is(err, ErrStale) {
				t.Error(err)
			}
			r.is(old.Path(), false, c.want...)
			if r.said.has("Build deleted") {
				t.Error("it is told as ours")
			}
		})
	}
}

// Mistake: a build whose lock is held, or of which an upload came, is said to be deleted.
func TestBuildThatCannotBeDeleted(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	old := r.superseded()
	decisions := 0
	r.decided = func() {
		if decisions++; decisions == 2 { // an upload that we do not see yet
			r.frozen = r.mirror.Image("img")
			r.upload(old, zkmodel.UploadUploading)
		}
	}
	if err := r.Do(t.Context(), about(plan.DeleteBuild, old)); !errors.Is(err, zkmodel.ErrInProgress) || !Held(err) {
		t.Errorf("it has an upload: %v", err)
	}
	r.is(old.Path(), true, step.BuildMarked)
	if r.said.has("Build deleted") {
		t.Error("it is told")
	}
	decisions, r.frozen = 0, nil
	r.decided = func() {
		if decisions++; decisions == 2 { // it is not to go any more
			r.frozen = &zkmodel.Image{Name: "img"}
		}
	}
	marked := r.superseded()
	if err := r.Do(t.Context(), about(plan.DeleteBuild, marked)); !errors.Is(err, ErrStale) {
		t.Errorf("the plan has changed: %v", err)
	}
	r.is(marked.Path(), true, step.BuildMarked)
	for kind, uploads := range map[plan.Kind]int{plan.MarkBuild: 1, plan.DeleteBuild: 0} {
		r.decided, r.frozen = nil, nil
		garbled := r.superseded()
		for range uploads {
			r.upload(garbled, zkmodel.UploadDeleting)
		}
		r.decided = func() { // which we do not see yet
			if r.frozen == nil {
				r.frozen = r.mirror.Image("img")
				_, err := r.Store.Session().Set(t.Context(), garbled.Path(), []byte("{"), recipe.AnyVersion)
				r.must(err)
			}
		}
		if err := r.Do(t.Context(), about(kind, garbled)); !errors.Is(err, zkmodel.ErrUndecodable) {
			t.Errorf("%s: it is garbled: %v", kind, err)
		}
		r.is(garbled.Path(), true)
	}
	r.decided, r.frozen = nil, nil
	r.empty(zkmodel.BuildPath("img", "0000000077"))
	r.north.lists = errors.New("the cloud is down")
	if err := r.Do(t.Context(), about(plan.DeleteBuild, &zkmodel.Build{Image: "img", ID: "0000000077"})); !errors.Is(err, r.north.lists) {
		t.Errorf("a cloud cannot be asked: %v", err)
	}
	r.is(zkmodel.BuildPath("img", "0000000077"), true)
	r.client.Close()
	for _, kind := range []plan.Kind{plan.DeleteBuild, plan.MarkBuild, plan.RemoveFiles, plan.RemoveFormat} {
		if err := r.Do(t.Context(), about(kind, old)); err == nil {
			t.Errorf("%s without a session is done", kind)
		}
	}
}

// file makes an image file of a build of ours.
func (r *room) file(b *zkmodel.Build) string {
	r.t.Helper()
	n := disk.Name{Image: b.Image, ID: b.ID}
	path := r.Images.File(n, "raw")
	r.must(os.WriteFile(path, []byte("an image"), 0o600))
	_, err := r.Images.Begin(n, "")
	r.must(err)
	r.must(r.Images.Scan())
	return path
}

// left tells whether a file is there.
func left(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Mistake: files go whose record wants them, or that another is about to read under its lock; or those of a build without a record stay.
func TestFilesAreRemoved(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	b, gone := r.build(), &zkmodel.Build{Image: "img", ID: "0000000088"}
	kept, orphan := r.file(b), r.file(gone)
	if err := r.Do(t.Context(), about(plan.RemoveFiles, b)); !errors.Is(err, ErrStale) || !left(kept) {
		t.Errorf("wanted: %v, left %t", err, left(kept))
	}
	r.is(b.Path(), true)
	if err := r.Do(t.Context(), about(plan.RemoveFiles, gone)); err != nil || left(orphan) {
		t.Errorf("without a record: %v, left %t", err, left(orphan))
	}
	r.is(gone.Path(), false, step.FilesRemoved)

	r.must(r.Store.MarkBuildDeleting(t.Context(), zkmodel.ByUs, "img", b.ID, false))
	if err := r.Do(t.Context(), about(plan.RemoveFiles, b)); err != nil || left(kept) {
		t.Errorf("marked: %v, left %t", err, left(kept))
	}
	r.is(b.Path(), true, step.FilesRemoved)
	if !r.said.has("Files removed") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
}

// Mistake: an image file that a provider waits for goes.
func TestFormatIsRemoved(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	r.config.DiskImages[0].DeleteAfterUpload = true
	r.config.Providers = r.config.Providers[:1]
	b := r.build()
	file := r.file(b)
	a := about(plan.RemoveFormat, b)
	a.Format = "raw"
	if err := r.Do(t.Context(), a); !errors.Is(err, ErrStale) || !left(file) {
		t.Errorf("not sent yet: %v, left %t", err, left(file))
	}
	r.is(b.Path(), true)
	r.upload(b, zkmodel.UploadReady, known)
	if err := r.Do(t.Context(), a); err != nil || left(file) {
		t.Errorf("sent: %v, left %t", err, left(file))
	}
	r.is(b.Path(), true, step.FormatRemoved)
	if !r.said.has("File removed") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
}

// Mistake: files that cannot be removed are said to be, or a lock is kept by that.
func TestFilesThatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	gone := &zkmodel.Build{Image: "img", ID: "0000000088"}
	file := r.file(gone)
	r.Tree = seen{Tree: r.Tree, absent: zkmodel.ErrRecorded}
	if err := r.Do(t.Context(), about(plan.RemoveFiles, gone)); !errors.Is(err, zkmodel.ErrRecorded) || !left(file) {
		t.Errorf("its absence is unproven: %v, left %t", err, left(file))
	}
	r.Tree = r.mirror

	b := r.build()
	r.config.DiskImages[0].DeleteAfterUpload = true
	r.config.Providers = r.config.Providers[:1]
	r.upload(b, zkmodel.UploadReady, known)
	path := r.file(b)
	r.must(os.Remove(path))
	r.must(os.MkdirAll(path+"/deep", 0o755)) // of the name of a file that we know
	a := about(plan.RemoveFormat, b)
	a.Format = "raw"
	if err := r.Do(t.Context(), a); err == nil || !strings.Contains(err.Error(), "remove raw of") {
		t.Errorf("a folder: %v", err)
	}
	r.is(b.Path(), true)

	_, err := r.Store.Session().Set(t.Context(), b.Path(), []byte("{"), recipe.AnyVersion)
	r.must(err)
	proof, _, err := r.aboutFiles(t.Context(), a)
	if err == nil || proof != (zkmodel.Proof{}) {
		t.Errorf("a record that cannot be read proves something: %v", err)
	}
	r.is(b.Path(), true)
	if r.said.has("removed") {
		t.Errorf("logged:\n%s", r.said.text.String())
	}
	if err := r.removeProven(t.Context(), about(plan.RemoveFiles, b), zkmodel.Proof{}); !errors.Is(err, zkmodel.ErrUnproven) || len(r.steps) > 0 {
		t.Errorf("without a proof: steps %q, %v", r.steps, err)
	}
}
