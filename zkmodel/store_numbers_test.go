package zkmodel_test

import (
	"errors"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
)

// Numbers that there were before ZooKeeper went back in time are passed, however many they are; what is
// no number of ZooKeeper's passes none. Mistakes: a number that is given a second time; one that
// nobody has had is passed; a node that stays; one transaction for thousands; millions of nodes
// for a number that was made by hand.
func TestPassNumbers(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	lock, err := st.LockBuilds(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ seen, want string }{
		{"", "0000000001"},
		{"0000000001", "0000000002"},
		{"0000000004", "0000000005"},
		{"0000000002", "0000000006"},
		{"8c5fa96d4e0f4b5c", "0000000007"}, // another make's
		{"0000000358", "0000000359"},
	} {
		if err := st.PassNumbers(t.Context(), lock, "image", test.seen); err != nil {
			t.Fatal(err)
		}
		b := &zkmodel.Build{Image: "image"}
		if err := st.CreateBuild(t.Context(), lock, b); err != nil {
			t.Fatal(err)
		}
		if b.ID != test.want {
			t.Errorf("after %q the next number is %s, want %s", test.seen, b.ID, test.want)
		}
	}
	for _, seen := range []string{"0000100360", "2000000000", "2147483647"} {
		err := st.PassNumbers(t.Context(), lock, "image", seen)
		if !errors.Is(err, zkmodel.ErrFar) || !strings.Contains(err.Error(), "of image:") || !strings.Contains(err.Error(), seen) || !strings.Contains(err.Error(), "0000000360") {
			t.Errorf("%s: %v", seen, err)
		}
	}
	names, err := s.Children(t.Context(), zkmodel.BuildsPath("image"))
	if err != nil || len(names) != 7 { // six builds and the lock
		t.Errorf("there are %v, %v", names, err)
	}
}
