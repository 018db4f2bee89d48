package recipe_test

import (
	"strconv"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// deferredTree is a Tree of /t with the children a and b, a deferred.
func deferredTree(t *testing.T) (*recipe.Tree, *recipe.Session) {
	t.Helper()
	client := dial(t, zktest.Root(t))
	s := session(t, client)
	for _, path := range []string{"/t", "/t/a", "/t/b"} {
		if _, err := s.Create(t.Context(), path, []byte("0"), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	tree := follow(t, client, "/t", recipe.TreeOptions{})
	if err := tree.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree.Defer("a")
	return tree, s
}

// write writes the same into /t/a and /t/b.
func write(t *testing.T, s *recipe.Session, text string) {
	t.Helper()
	for _, path := range []string{"/t/a", "/t/b"} {
		if _, err := s.Set(t.Context(), path, []byte(text), recipe.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
}

func text(tree *recipe.Tree, path string) string {
	e, _ := tree.Get(path)
	return string(e.Data)
}

func TestDeferredChangesWait(t *testing.T) {
	tree, s := deferredTree(t)
	begin := time.Now()
	for i := range 20 {
		write(t, s, strconv.Itoa(i))
	}
	if err := recipe.Settled(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if got := text(tree, "/t/b"); got != "19" {
		t.Errorf("b, which is not deferred, is %s", got)
	}
	if got := text(tree, "/t/a"); got != "0" && time.Since(begin) < 400*time.Millisecond {
		t.Errorf("a is %s, want it to wait", got)
	}
	zktest.Eventually(t, func() bool { return text(tree, "/t/a") == "19" }, "a to be read after all")

	write(t, s, "again") // and a second time
	zktest.Eventually(t, func() bool { return text(tree, "/t/a") == "again" }, "a to be read once more")
}

func TestResumeShowsWhatWaited(t *testing.T) {
	tree, s := deferredTree(t)
	for i := range 50 {
		write(t, s, strconv.Itoa(i))
		tree.Resume("a")
		if err := recipe.Settled(t.Context(), tree); err != nil {
			t.Fatal(err)
		}
		if got := text(tree, "/t/a"); got != strconv.Itoa(i) {
			t.Fatalf("a is %s after it was resumed, want %d", got, i)
		}
		tree.Defer("a")
	}
}

// Who asks for all that was committed gets it, deferred or not.
func TestBarrierDoesNotDefer(t *testing.T) {
	tree, s := deferredTree(t)
	for i := range 50 {
		write(t, s, strconv.Itoa(i))
		if err := tree.Barrier(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := text(tree, "/t/a"); got != strconv.Itoa(i) {
			t.Fatalf("a is %s after a barrier, want %d", got, i)
		}
	}
}

func TestDeferredNodesComeAndVanish(t *testing.T) {
	tree, s := deferredTree(t)
	if err := s.Delete(t.Context(), "/t/a", recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := recipe.Settled(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if _, ok := tree.Get("/t/a"); ok {
		t.Error("a is gone, and still shown")
	}
	for _, path := range []string{"/t/a", "/t/a/lock", "/t/a/lock/x"} {
		if _, err := s.Create(t.Context(), path, []byte("new"), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	tree.Resume("a")
	if err := recipe.Settled(t.Context(), tree); err != nil {
		t.Fatal(err)
	}
	if got := text(tree, "/t/a/lock/x"); got != "new" {
		t.Errorf("below a that came back: %q", got)
	}
}
