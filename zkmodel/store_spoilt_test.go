package zkmodel_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// spoiled is a store, and what has a person empty a record in the moment after the store has written it.
func spoiled(t *testing.T) (st *zkmodel.Store, client *recipe.Client, spoil func(path string)) {
	t.Helper()
	root := zktest.Root(t)
	client, s := connectTo(t, root)
	_, person := connectTo(t, root)
	return zkmodel.NewStore(s, nil), client, func(path string) {
		var once atomic.Bool
		client.SetObserver(func(writes bool, _ time.Duration) {
			if !writes || once.Load() {
				return
			}
			_, err := person.Set(context.WithoutCancel(t.Context()), path, nil, recipe.AnyVersion)
			switch {
			case err == nil:
				once.Store(true)
			case !errors.Is(err, recipe.ErrNoNode): // the write was of something else
				t.Errorf("empty %s: %v", path, err)
			}
		})
	}
}

// checkSpoilt expects that a write was refused, and that the record is as the person has left it.
func checkSpoilt(t *testing.T, st *zkmodel.Store, path string, err error) {
	t.Helper()
	if !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("it is written over what a person has left at %s: %v", path, err)
	}
	if data, _, err := st.Session().Get(t.Context(), path); err != nil || len(data) > 0 {
		t.Errorf("%s is %q now, %v", path, data, err)
	}
}

// Mistake: what a person has made of a record in the moment after it was written is taken for what was written.
func TestARecordSpoiltAsSoonAsItIsMade(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]*recipe.Log{"build": nil, "build that is told of": recipe.NewLog(event.Root, "us")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, client, spoil := spoiled(t)
			client.SetLog(log)
			lock, err := st.LockBuilds(t.Context(), "image")
			if err != nil {
				t.Fatal(err)
			}
			b := &zkmodel.Build{Image: "image", Builder: "host"}
			path := zkmodel.BuildPath("image", "0000000001")
			spoil(path)
			if err := st.CreateBuild(t.Context(), lock, b); err != nil || b.Path() != path {
				t.Fatalf("%s: %v", b.Path(), err)
			}
			checkSpoilt(t, st, path, st.SaveBuild(t.Context(), lock, b))
		})
	}
	t.Run("upload", func(t *testing.T) {
		t.Parallel()
		st, _, spoil := spoiled(t)
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "image", Build: newBuild(t, st).ID, Provider: "north"}}
		lock, err := st.LockUploads(t.Context(), u.Image, u.Build, u.Provider)
		if err != nil {
			t.Fatal(err)
		}
		u.ID = "0000000001"
		path := u.Path()
		spoil(path)
		if err := st.CreateUpload(t.Context(), lock, u); err != nil || u.Path() != path {
			t.Fatalf("%s: %v", u.Path(), err)
		}
		checkSpoilt(t, st, path, st.SaveUpload(t.Context(), lock, u))
	})
}

// Mistake: the same of the result of a trial, and of the upload at its end.
func TestATrialSpoiltAsSoonAsItIsWritten(t *testing.T) {
	t.Parallel()
	st, _, spoil := spoiled(t)
	uploads, u := onTrial(t, st, newBuild(t, st), "north")
	lock, err := st.AwaitValidations(t.Context(), "north", "one")
	if err != nil {
		t.Fatal(err)
	}
	v, err := st.Validation(t.Context(), u.UploadKey)
	if err != nil {
		t.Fatal(err)
	}
	result := zkmodel.ValidationResultPath(v.Key())
	spoil(result)
	if err := st.SaveValidationResult(t.Context(), lock, v, &zkmodel.ValidationResult{State: zkmodel.ValidationBooting}); err != nil {
		t.Fatal(err)
	}
	checkSpoilt(t, st, result, st.SaveValidationResult(t.Context(), lock, v, &zkmodel.ValidationResult{State: zkmodel.ValidationPassed}))

	moves(t, u, zkmodel.UploadReady)
	spoil(u.Path())
	if err := st.EndValidation(t.Context(), uploads, u, v, ""); err != nil {
		t.Fatal(err)
	}
	checkSpoilt(t, st, u.Path(), st.SaveUpload(t.Context(), uploads, u))
}
