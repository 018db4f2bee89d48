package trial

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// blind is a view that shows no trials: part of it cannot be read.
type blind struct{}

func (blind) Barrier(context.Context) error         { return nil }
func (blind) WaitValidations(context.Context) error { return nil }
func (blind) FollowValidations()                    {}

// A trial that the view does not show, and that is there, goes on. Mistake: it is begun anew,
// and what it has come to, or an operator's word, is lost.
func TestTrialThatTheViewDoesNotShow(t *testing.T) {
	t.Parallel()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	key := zkmodel.UploadKey{Image: "img", Provider: "north"}
	b := &zkmodel.Build{Image: key.Image}
	builds, err := store.LockBuilds(t.Context(), key.Image)
	if err == nil {
		err = store.CreateBuild(t.Context(), builds, b)
	}
	if err != nil {
		t.Fatal(err)
	}
	key.Build = b.ID
	lock, err := store.LockUploads(t.Context(), key.Image, key.Build, key.Provider)
	if err != nil {
		t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: key}
	err = store.CreateUpload(t.Context(), lock, u)
	u.ExternalID = zkmodel.TextValue("id")
	wanted := func() *zkmodel.Validation { return &zkmodel.Validation{BuildCzxid: b.Stat.Czxid, ExternalID: "id"} }
	if err := errors.Join(err, store.BeginValidation(t.Context(), lock, u, wanted()), store.PromoteValidation(t.Context(), u.UploadKey, "ann", "")); err != nil {
		t.Fatal(err)
	}
	cfg := &configs.Config{
		DiskImages: []configs.DiskImage{{Name: "img", Validate: &configs.Validate{}}},
		Providers:  []configs.Provider{{Name: "north", DiskImages: []configs.ProviderImage{{Name: "img"}}}},
	}
	k := New(t.Context(), Deps{
		Store: store, Mirror: blind{}, Config: func() *configs.Config { return cfg }, Log: hclog.NewNullLogger(), Now: time.Now,
		Snapshot: func(string) plan.Input {
			image, err := store.Image(t.Context(), "img")
			if err != nil {
				t.Error(err)
			}
			return plan.Input{Config: cfg, Image: image, Now: time.Now(), Policy: plan.DefaultPolicy()}
		},
		Record:   func(*zkmodel.Upload) (*zkmodel.Validation, error) { return wanted(), nil },
		Deciding: func(context.Context) func() { return func() {} },
	})
	again, err := (&holder{Keeper: k, key: u.UploadKey}).act(t.Context(), lock, hclog.NewNullLogger())
	if err != nil || again == 0 {
		t.Errorf("looks again in %s, %v", again, err)
	}
	v, err := store.Validation(t.Context(), u.UploadKey)
	if err != nil || v.Promoted == nil {
		t.Errorf("the trial is begun anew: %+v, %v", v, err)
	}
}
