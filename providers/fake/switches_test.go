package fake_test

import (
	"errors"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

// What is set for a cloud in a shared folder counts in every process, from the next call on,
// and not for those who look on. Mistakes: only who set it sees it; a refused creation is
// made, one whose answer is lost is not; faults stay after their end.
func TestFaultsOfASharedCloud(t *testing.T) {
	const name = "fake-provider-1"
	dir := t.TempDir()
	settings := &configs.FakeDriver{Dir: dir, MaxInstances: 10}
	cloud, onlooker := closing(t, open(t, settings)), closing(t, open(t, settings))
	onlooker.PassOverFaults()
	for i, tc := range []struct {
		faults fake.Faults
		want   error
		made   int // machines in all, afterwards
	}{
		{fake.Faults{}, nil, 1},
		{fake.Faults{Refuse: []string{fake.OpCreate, fake.OpList}}, providers.ErrTransient, 1},
		{fake.Faults{Lose: []string{fake.OpCreate}}, providers.ErrTransient, 2},
		{fake.Faults{Room: 2}, providers.ErrQuota, 2},
		{fake.Faults{}, nil, 3},
	} {
		if err := fake.SetFaults(dir, name, tc.faults); err != nil {
			t.Fatal(err)
		}
		if _, err := cloud.CreateNode(t.Context(), spec(i)); !errors.Is(err, tc.want) {
			t.Errorf("%+v: creation: %v, want %v", tc.faults, err, tc.want)
		}
		if _, err := cloud.ListNodes(t.Context()); (err != nil) != (len(tc.faults.Refuse) > 0) {
			t.Errorf("%+v: list: %v", tc.faults, err)
		}
		if n := count(t, onlooker); n != tc.made {
			t.Errorf("%+v: %d machines, want %d", tc.faults, n, tc.made)
		}
	}
}
