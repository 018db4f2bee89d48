package zkmodel_test

import (
	"errors"
	"maps"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// What a search for leaked machines found is there for the next one, whoever makes it; nothing leaves nothing
// behind; what cannot be decoded is none; and without the duty's lock nothing is written.
func TestLeakedMachinesAreRemembered(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	lock := recipe.NewLock(s, zkmodel.ProviderDutyPath("east")+"/locks/duty", "host", recipe.EnsureParents())
	held, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := zkmodel.Findings{"m": time.Unix(1_800_000_000, 0)}
	for _, found := range []zkmodel.Findings{nil, want, want, nil, nil, want} {
		if err := st.SaveLeakedMachines(t.Context(), held, "east", found); err != nil {
			t.Fatal(err)
		}
		got, err := st.LeakedMachines(t.Context(), "east")
		if err != nil || !maps.EqualFunc(got, found, time.Time.Equal) {
			t.Errorf("%v (%v), want %v", got, err, found)
		}
		if _, there, err := s.Exists(t.Context(), zkmodel.LeakedMachinesPath("east")); err != nil || there != (len(found) > 0) {
			t.Errorf("is there: %t (%v)", there, err)
		}
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.SaveLeakedMachines(t.Context(), held, "east", nil); !errors.Is(err, recipe.ErrReleased) {
		t.Errorf("without the lock: %v", err)
	}
	if _, err := s.Set(t.Context(), zkmodel.LeakedMachinesPath("east"), []byte("{"), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if got, err := st.LeakedMachines(t.Context(), "east"); err != nil || len(got) > 0 {
		t.Errorf("%v (%v)", got, err)
	}
}
