package zkmodel_test

import (
	"errors"
	"sync"
	"testing"

	"poolkeeper/zkmodel"
)

func TestSiteIDIsOneForAll(t *testing.T) {
	_, s := connect(t)
	ids := make([]string, 8)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			var err error
			if ids[i], err = zkmodel.NewStore(s, nil).SiteID(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] || len(id) != 32 {
			t.Errorf("ids %q", ids)
		}
	}
}

func TestCancelBuild(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	if _, err := st.CancelBuild(t.Context(), "image"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("no image: %v", err)
	}
	newBuild(t, st)
	if _, err := st.CancelBuild(t.Context(), "image"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("no build under way: %v", err)
	}
	lock, err := st.LockBuilds(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: "image"}
	if err := st.CreateBuild(t.Context(), lock, b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if id, err := st.CancelBuild(t.Context(), "image"); id != b.ID || err != nil {
			t.Errorf("cancelled %q, %v", id, err)
		}
	}
	for range 2 {
		if err := st.ClearCancel(t.Context(), "image"); err != nil {
			t.Error(err)
		}
	}
	if _, ok, err := s.Exists(t.Context(), zkmodel.CancelPath("image")); ok || err != nil {
		t.Errorf("left: %t, %v", ok, err)
	}
}

// Who writes limits and who takes them out need not know of each other.
func TestLimitsBesideForgetting(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				if err := st.SaveLimits(t.Context(), "cloud", []byte(`{"instances":1}`)); err != nil {
					t.Error(err)
					return
				}
			}
		})
		group.Go(func() {
			for range 50 {
				if err := st.ForgetLimits(t.Context(), "cloud"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}

// No change of several writers is lost.
func TestChangeRefusals(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				err := st.ChangeRefusals(t.Context(), "cloud", func(old []byte) ([]byte, zkmodel.Turn, error) { return append(old, '.'), zkmodel.Turn{}, nil })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	data, _, err := s.Get(t.Context(), zkmodel.RefusalsPath("cloud"))
	if err != nil || len(data) != 100 {
		t.Errorf("%d changes are left of 100: %v", len(data), err)
	}
}
