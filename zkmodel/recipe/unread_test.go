package recipe_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// What cannot be read is there: the view shows it, says why, and does not call
// itself whole. Once it can be read, all is as if it always could.
func TestTreeKnowsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	for _, path := range []string{"/t/a", "/t/b/inner", "/t/c"} {
		must(t, s.EnsurePath(ctx, path))
	}
	early := follow(t, dial(t, root), "/t", recipe.TreeOptions{})
	barrier(t, early)
	allow := zktest.Forbid(t, zktest.Shared(t).Addr(), root, "/t/b")

	tree := follow(t, dial(t, root), "/t", recipe.TreeOptions{})
	barrier(t, tree)
	tree.View(func(v recipe.View) {
		if got := v.Children("/t"); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("children %v", got)
		}
		e, ok := v.Get("/t/b")
		if !ok || !errors.Is(e.Err, recipe.ErrAuth) || e.Data != nil {
			t.Errorf("entry %+v, %v", e, ok)
		}
		if _, ok := v.Get("/t/b/inner"); ok {
			t.Error("what is below it is known")
		}
		for path, whole := range map[string]bool{"/t": false, "/t/a": true, "/t/b": false, "/t/b/inner/more": false, "/t/bb": true} {
			err := v.Unread(path)
			if whole != (err == nil) || err != nil && (!errors.Is(err, recipe.ErrUnread) || !strings.Contains(err.Error(), "/t/b (1 in all)")) {
				t.Errorf("%s: %v", path, err)
			}
		}
		v.Each("/t", func(c recipe.Child) {
			if c.Unread() != (c.Name() == "b") || (c.Entry().Err != nil) != c.Unread() {
				t.Errorf("child %s: %+v", c.Name(), c.Entry())
			}
		})
	})
	if err := early.Unread("/t"); err != nil { // it read all before
		t.Error(err)
	}
	changes := tree.Subscribe(nil)
	defer changes.Close()
	allow()
	zktest.Eventually(t, func() bool { return tree.Unread("/t") == nil }, "the tree to be whole")
	barrier(t, tree)
	if _, ok := tree.Get("/t/b/inner"); !ok || !slices.Contains(changes.Take(), "/t/b") {
		t.Error("what can be read now is not shown")
	}
}

// What was read once stands as it was, marked as old, when a new session cannot
// read it any more; when it is gone, it is gone.
func TestTreeKeepsWhatItCouldReadBefore(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	must(t, s.EnsurePath(ctx, "/t"))
	for _, path := range []string{"/t/a", "/t/b"} {
		_, err := s.Create(ctx, path, []byte("old"), recipe.Persistent)
		must(t, err)
	}
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	c := dial(t, root, through(proxy.Addr()), timeout(400e6))
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	barrier(t, tree)
	zktest.Forbid(t, zktest.Shared(t).Addr(), root, "/t/a")
	first := session(t, c)
	proxy.Cut()
	<-first.Context().Done()
	proxy.Heal()
	must(t, tree.Barrier(ctx))
	if e, ok := tree.Get("/t/a"); !ok || string(e.Data) != "old" || !errors.Is(e.Err, recipe.ErrAuth) {
		t.Errorf("entry %+v, %v", e, ok)
	}
	if err := tree.Unread("/t/a"); !errors.Is(err, recipe.ErrUnread) {
		t.Error(err)
	}
	must(t, s.Delete(ctx, "/t/a", recipe.AnyVersion))
	must(t, s.Delete(ctx, "/t/b", recipe.AnyVersion))
	barrier(t, tree)
	if names := tree.Children("/t"); len(names) != 0 || tree.Unread("/t") != nil {
		t.Errorf("left: %v, %v", names, tree.Unread("/t"))
	}
}
