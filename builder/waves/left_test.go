package waves_test

import (
	"testing"

	"poolkeeper/zkmodel/wave"
)

// Mistake: what an interrupted removal of the only wave has left, which stays until another
// wave is made.
func TestWhatIsLeftOfTheLastWaveGoes(t *testing.T) {
	t.Parallel()
	s := newSite(t, "a")
	session := s.models.Session()
	s.create("w")
	if err := session.DeleteTree(t.Context(), wave.Root+"/requests/w"); err != nil { // the first step of a removal
		t.Fatal(err)
	}
	left := func() (n int) {
		folders, err := session.Children(t.Context(), wave.Root)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			names, err := session.Children(t.Context(), wave.Root+"/"+folder)
			if err != nil {
				t.Fatal(err)
			}
			n += len(names)
		}
		return n
	}
	if left() == 0 {
		t.Fatal("nothing is left that could go")
	}
	s.driver("one", nil)
	s.driver("two", nil)
	s.eventually("nothing is left", func() bool { return left() == 0 })
}
