package zkmodel_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) {
	zktest.Parallel("16") // they wait for locks of the killed
	m.Run()
}

// onTrial makes an upload of a build to a provider that is tried before it serves.
func onTrial(t *testing.T, st *zkmodel.Store, b *zkmodel.Build, provider string) (*recipe.Held, *zkmodel.Upload) {
	t.Helper()
	lock, err := st.LockUploads(t.Context(), b.Image, b.ID, provider)
	if err != nil {
		t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: provider}, Builder: "host"}
	if err := st.CreateUpload(t.Context(), lock, u); err != nil {
		t.Fatal(err)
	}
	u.ExternalID = zkmodel.TextValue("cloud-" + provider)
	v := &zkmodel.Validation{
		BuildCzxid: b.Stat.Czxid, ExternalID: "cloud-" + provider, Timeout: 60,
		Checks: []zkmodel.Check{{Kind: zkmodel.CheckSSH}, {Kind: zkmodel.CheckScript, Name: "smoke", Text: "#!/bin/sh\ntrue\n"}},
	}
	if err := st.BeginValidation(t.Context(), lock, u, v); err != nil {
		t.Fatal(err)
	}
	return lock, u
}

func moves(t *testing.T, u *zkmodel.Upload, state zkmodel.UploadState) {
	t.Helper()
	if err := zkmodel.Move(u, state, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		t.Fatal(err)
	}
}

// Two images of three are tried in two providers: one is validated, one rejected, one
// goes on. Mistakes: a result that is written without the lock of who tries, or over a
// final one; an end that leaves a lock, a result or a folder; a verdict without its upload.
func TestUploadsAreTried(t *testing.T) {
	t.Parallel()
	client, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	m := follow(t, client)
	if list, err := m.Validations(""); len(list) > 0 || err != nil || m.FollowsValidations() {
		t.Fatalf("what nobody follows: %v, %v", list, err)
	}
	m.FollowValidations()
	goodLock, good := onTrial(t, st, newBuildOf(t, st, "image"), "north")
	badLock, bad := onTrial(t, st, newBuildOf(t, st, "other"), "south")
	_, slow := onTrial(t, st, newBuildOf(t, st, "third"), "south")

	for _, key := range []zkmodel.UploadKey{good.UploadKey, bad.UploadKey} {
		lock, err := st.AwaitValidations(t.Context(), key.Provider, "one")
		if err != nil {
			t.Fatal(err)
		}
		v, err := st.Validation(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := st.AwaitValidations(short, key.Provider, "two"); !errors.Is(err, recipe.ErrLocked) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second one tries it: %v", err)
		}
		cancel()
		save := func(state zkmodel.ValidationState, why string) error {
			return st.SaveValidationResult(t.Context(), lock, v, &zkmodel.ValidationResult{State: state, Why: why})
		}
		end := map[zkmodel.UploadKey]zkmodel.ValidationState{good.UploadKey: zkmodel.ValidationPassed, bad.UploadKey: zkmodel.ValidationFailed}[key]
		if err := errors.Join(save(zkmodel.ValidationBooting, ""), save(end, "as it is")); err != nil {
			t.Fatal(err)
		}
		if err := save(zkmodel.ValidationWaiting, ""); err == nil {
			t.Error("a final result is written over")
		}
	}
	if err := m.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks := func(want string) {
		t.Helper()
		got := ""
		list, err := m.Validations("")
		for _, v := range list {
			got += fmt.Sprintf("%s %s: %s\n", v.Provider, v.Image, v.Text())
		}
		if got != want || err != nil {
			t.Errorf("under trial: %v\n%swant\n%s", err, got, want)
		}
	}
	looks("north image: validated: as it is\nsouth other: failed: as it is\nsouth third: not tried yet\n")

	v, err := st.Validation(t.Context(), good.UploadKey)
	if err != nil || !v.Of(good) || !good.OnTrial() {
		t.Fatalf("%+v, %v", v, err)
	}
	moves(t, good, zkmodel.UploadReady)
	if err := st.EndValidation(t.Context(), goodLock, good, v, "as it is"); err != nil {
		t.Fatal(err)
	}
	if v, err = st.Validation(t.Context(), bad.UploadKey); err != nil {
		t.Fatal(err)
	}
	moves(t, bad, zkmodel.UploadDeleting)
	if err := st.RejectValidation(t.Context(), badLock, bad, v, v.Text()); err != nil {
		t.Fatal(err)
	}
	if err := st.PromoteValidation(t.Context(), slow.UploadKey, "me", "in haste"); err != nil {
		t.Fatal(err)
	}
	if err := st.PromoteValidation(t.Context(), good.UploadKey, "me", ""); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("what is not under trial is promoted: %v", err)
	}
	if err := m.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	looks("south third: promoted by me\n")
	image, err := st.Image(t.Context(), "other")
	if err != nil || len(image.Verdicts.List) != 1 || image.Verdicts.List[0].Text() != "rejected by validation: failed: as it is" {
		t.Errorf("said of the bad one: %+v, %v", image.Verdicts, err)
	}
	if all, err := st.Validations(t.Context()); err != nil || len(all) != 1 || all[0].Promoted == nil {
		t.Errorf("listed: %v, %v", all, err)
	}
	if err := errors.Join(st.ForgetValidation(t.Context(), slow.UploadKey), st.DeleteUpload(t.Context(), bad.UploadKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Validation(t.Context(), slow.UploadKey); err != nil {
		t.Errorf("a trial goes that goes on: %v", err)
	}
	if err := errors.Join(st.DeleteUpload(t.Context(), slow.UploadKey), st.ForgetValidation(t.Context(), slow.UploadKey)); err != nil {
		t.Fatal(err)
	}
	if all, err := st.Validations(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// An operator promotes an upload in the moment in which its failure is written: it is decided
// anew, and nothing is rejected. Mistake: "serves without more ado", and then it is deleted.
func TestPromotionAtTheEndOfATrial(t *testing.T) {
	t.Parallel()
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	lock, u := onTrial(t, st, newBuildOf(t, st, "image"), "north")
	v, err := st.Validation(t.Context(), u.UploadKey)
	if err == nil {
		err = st.PromoteValidation(t.Context(), u.UploadKey, "ann", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	moves(t, u, zkmodel.UploadDeleting)
	if err := st.RejectValidation(t.Context(), lock, u, v, "it is bad"); !errors.Is(err, zkmodel.ErrConflict) {
		t.Errorf("the end of what was promoted: %v", err)
	}
	image, err := st.Image(t.Context(), "image")
	if err != nil || image.Verdicts != nil || !image.Builds[0].Uploads[0].OnTrial() {
		t.Fatalf("%+v, %v", image, err)
	}
	u = image.Builds[0].Uploads[0]
	if v, err = st.Validation(t.Context(), u.UploadKey); err != nil || v.Promoted == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	moves(t, u, zkmodel.UploadReady)
	if err := st.EndValidation(t.Context(), lock, u, v, v.Text()); err != nil {
		t.Error(err)
	}
}

// A build becomes the canary in the moment in which another one's waiting or trial ends: that one
// waits on. Once a person promotes it, it is ready and serves without a limit, in one transaction
// with its event. Mistakes: two unproven builds that are ready, so that a Nodepool builder removes
// what serves; a build promoted before it is ready, so that the canary serves all.
func TestReadyBesideACanary(t *testing.T) {
	t.Parallel()
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	var builds []*zkmodel.Build
	for range 3 {
		builds = append(builds, newBuildOf(t, st, "image"))
	}
	_, canary := onTrial(t, st, builds[1], "north")
	lock, u := onTrial(t, st, builds[2], "north")
	c := zkmodel.NewCanary("north", "image", builds[0])
	err := st.BeginCanaries(t.Context(), c)
	if err == nil {
		c, err = st.Canary(t.Context(), "north", "image")
	}
	if err == nil {
		err = st.ChangeCanary(t.Context(), c.Begin(canary, builds[1], 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	serve := func() error {
		var err error
		if u, err = st.Upload(t.Context(), u.UploadKey); err != nil {
			t.Fatal(err)
		}
		v, err := st.Validation(t.Context(), u.UploadKey)
		if err != nil {
			t.Fatal(err)
		}
		moves(t, u, zkmodel.UploadReady)
		return st.ServeValidation(t.Context(), lock, u, v, false, v.Text())
	}
	if err := serve(); !errors.Is(err, zkmodel.ErrConflict) {
		t.Errorf("it is ready beside the canary: %v", err)
	}
	if err := st.PromoteValidation(t.Context(), u.UploadKey, "ann", "in haste"); err != nil {
		t.Fatal(err)
	}
	if err := serve(); err != nil {
		t.Fatal(err)
	}
	now, err := st.Upload(t.Context(), u.UploadKey)
	if err != nil || now.State != zkmodel.UploadReady {
		t.Errorf("%+v, %v", now, err)
	}
	if c, err = st.Canary(t.Context(), "north", "image"); err != nil || c.Promoted != zkmodel.RefOf(builds[2]) || c.Trial != nil {
		t.Errorf("%+v, %v", c, err)
	}
}

// No canary has begun: of three new builds that were decided about by one record, one becomes
// ready, and another only where no build is going to be a canary. Mistake: builds of which each
// builder has seen no other that is ready are all ready at once.
func TestReadyBesideTheNextCanary(t *testing.T) {
	t.Parallel()
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	serving := newBuildOf(t, st, "image")
	if err := st.BeginCanaries(t.Context(), zkmodel.NewCanary("north", "image", serving)); err != nil {
		t.Fatal(err)
	}
	c, err := st.Canary(t.Context(), "north", "image")
	if err != nil {
		t.Fatal(err)
	}
	var locks []*recipe.Held
	var uploads []*zkmodel.Upload
	for range 3 {
		lock, u := onTrial(t, st, newBuildOf(t, st, "image"), "north")
		moves(t, u, zkmodel.UploadReady)
		locks, uploads = append(locks, lock), append(uploads, u)
	}
	if err := st.SaveReady(t.Context(), locks[0], uploads[0], c); err != nil {
		t.Fatal(err)
	}
	if err := st.SaveReady(t.Context(), locks[1], uploads[1], c); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("two are ready by one record: %v", err)
	}
	for _, refused := range []bool{false, true} {
		v, err := st.Validation(t.Context(), uploads[2].UploadKey)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.ServeValidation(t.Context(), locks[2], uploads[2], v, refused, ""); refused != (err == nil) || err != nil && !errors.Is(err, zkmodel.ErrConflict) {
			t.Errorf("refused %t: %v", refused, err)
		}
	}
	if now, err := st.Canary(t.Context(), "north", "image"); err != nil || now.Promoted != c.Promoted || now.Trial != nil {
		t.Errorf("%+v, %v", now, err)
	}
}

// A builder that is killed at whatever request of the end of a trial has moved the upload
// and ended the trial, or neither: the result is there for who comes next. Mistakes: a
// result that goes before its upload has moved; a verdict of an upload that goes on.
func TestTheEndOfATrialKilledAtEveryRequest(t *testing.T) {
	const atOnce = 16
	var whole atomic.Bool
	for first := 1; !whole.Load() && !t.Failed(); first += atOnce {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			for requests := first; requests < first+atOnce; requests++ {
				t.Run(strconv.Itoa(requests), func(t *testing.T) {
					t.Parallel()
					if trialKilledAfter(t, requests) {
						whole.Store(true)
					}
				})
			}
		})
	}
}

func trialKilledAfter(t *testing.T, requests int) bool {
	t.Helper()
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	_, s := connectTo(t, root)
	st := zkmodel.NewStore(s, nil)
	b := newBuildOf(t, st, "image")
	first, u := onTrial(t, st, b, "north")
	lock, err := st.AwaitValidations(t.Context(), u.Provider, "")
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.Validation(t.Context(), u.UploadKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.SaveValidationResult(t.Context(), lock, v, &zkmodel.ValidationResult{State: zkmodel.ValidationFailed, Why: "it is bad"}); err != nil {
		t.Fatal(err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}

	tap := zktest.StartTap(t, addr, requests)
	client, err := recipe.Dial(recipe.Config{Servers: []string{tap.Addr()}, Chroot: root, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- rejectsAs(ctx, client, u.UploadKey) }()
	ended := false
	zktest.Eventually(t, func() bool {
		select {
		case err = <-done:
			ended = true
		default:
		}
		return ended || tap.Ended()
	}, "the end is written, or the builder killed")
	cancel()
	client.Close()
	zktest.Eventually(t, func() bool {
		locked, err := recipe.Locked(t.Context(), s, zkmodel.UploadsLockPath("image", b.ID, "north"))
		return err == nil && !locked
	}, "the lock of the killed one is free")

	now, err := st.Upload(t.Context(), u.UploadKey)
	if err != nil {
		t.Fatal(err)
	}
	image, err := st.Image(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	left, err := st.Validation(t.Context(), u.UploadKey)
	switch {
	case now.State == zkmodel.UploadUploading && (err != nil || left.State() != zkmodel.ValidationFailed || image.Verdicts != nil):
		t.Fatalf("killed after %d requests: the upload is uploading; the trial %+v, %v; said %+v", requests, left, err, image.Verdicts)
	case now.State == zkmodel.UploadDeleting && (!errors.Is(err, zkmodel.ErrNotFound) || image.Verdicts == nil):
		t.Fatalf("killed after %d requests: the upload is deleting; the trial %+v, %v; said %+v", requests, left, err, image.Verdicts)
	}
	if now.State == zkmodel.UploadUploading {
		again, _ := connectTo(t, root)
		if err := rejectsAs(t.Context(), again, u.UploadKey); err != nil {
			t.Fatal(err)
		}
	}
	return ended && !tap.Ended()
}

// rejectsAs ends a trial as a builder does that has failed.
func rejectsAs(ctx context.Context, client *recipe.Client, key zkmodel.UploadKey) error {
	session, err := client.Session(ctx)
	if err != nil {
		return err
	}
	st := zkmodel.NewStore(session, nil)
	lock, err := st.LockUploads(ctx, key.Image, key.Build, key.Provider)
	if err != nil {
		return err
	}
	u, err := st.Upload(ctx, key)
	if err != nil {
		return err
	}
	v, err := st.Validation(ctx, key)
	if err != nil {
		return err
	}
	if err := zkmodel.Move(u, zkmodel.UploadDeleting, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		return err
	}
	return st.RejectValidation(ctx, lock, u, v, v.Result.Why)
}
