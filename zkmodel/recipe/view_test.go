package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestSubscription(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	tree := follow(t, dial(t, root), "/i", recipe.TreeOptions{})
	images := tree.Subscribe(func(path string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "/i/"), "/")
		if strings.HasPrefix(name, "private") || path == "/i" {
			return ""
		}
		return name
	})
	paths := tree.Subscribe(nil)
	must(t, s.EnsurePath(ctx, "/i/debian/builds/1"))
	must(t, s.EnsurePath(ctx, "/i/private/builds/1"))
	barrier(t, tree)
	<-images.C()
	if keys := images.Take(); !slices.Equal(keys, []string{"debian"}) {
		t.Errorf("keys %v", keys)
	}
	if keys := images.Take(); len(keys) != 0 {
		t.Errorf("keys %v were taken twice", keys)
	}
	if keys := paths.Take(); len(keys) != 7 {
		t.Errorf("paths %v", keys)
	}
	paths.Close()
	_, err := s.Set(ctx, "/i/debian", []byte("x"), 0)
	must(t, err)
	barrier(t, tree)
	if keys := paths.Take(); len(keys) != 0 {
		t.Errorf("keys %v after the end", keys)
	}
	if keys := images.Take(); !slices.Equal(keys, []string{"debian"}) {
		t.Errorf("keys %v", keys)
	}
}

func TestView(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	c := dial(t, root)
	s := session(t, c)
	for _, path := range []string{"/t/b/y", "/t/a", "/t/c", "/t/b/x", "/tt"} {
		must(t, s.EnsurePath(ctx, path))
	}
	_, err := s.Create(ctx, "/t/e", []byte("here"), recipe.Ephemeral)
	must(t, err)
	tree := follow(t, c, "/t", recipe.TreeOptions{})
	barrier(t, tree)
	tree.View(func(v recipe.View) {
		var order []string
		v.Walk("/t", func(path string, _ recipe.Entry) bool {
			order = append(order, path)
			return path != "/t/b/y"
		})
		if got := strings.Join(order, " "); got != "/t /t/a /t/b /t/b/x /t/b/y" {
			t.Errorf("walked %s", got)
		}
		if got := v.Children("/t"); !slices.Equal(got, []string{"a", "b", "c", "e"}) {
			t.Errorf("children %v", got)
		}
		e, ok := v.Get("/t/e")
		if !ok || string(e.Data) != "here" || e.Stat.EphemeralOwner != s.ID() || e.Stat.DataLength != 4 || e.Stat.Ctime.IsZero() {
			t.Errorf("entry %+v, %v", e, ok)
		}
		for _, path := range []string{"/tt", "/t/none", "/", "/t/b/x/deeper", "t"} {
			if _, ok := v.Get(path); ok || v.Children(path) != nil {
				t.Errorf("%s is in the tree", path)
			}
		}
		v.Walk("/t/none", func(path string, _ recipe.Entry) bool {
			t.Errorf("walked to %s", path)
			return true
		})
	})
}

// TestTreeMonotonic writes a counter as fast as it can: a reader never sees it go
// back, and a Barrier after a write always shows that write.
func TestTreeMonotonic(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s := session(t, dial(t, root))
	must(t, s.EnsurePath(ctx, "/n"))
	tree := follow(t, dial(t, root), "/n", recipe.TreeOptions{})
	barrier(t, tree)
	stop, stopped := context.WithCancel(ctx)
	seen := make(chan int, 1)
	go func() {
		last, values := int32(0), 0
		for stop.Err() == nil {
			e, ok := tree.Get("/n")
			if !ok || e.Stat.Version < last {
				t.Errorf("version %d after %d", e.Stat.Version, last)
			}
			if e.Stat.Version > last {
				values++
			}
			last = e.Stat.Version
		}
		seen <- values
	}()
	for i := 1; i <= 300; i++ {
		stat, err := s.Set(ctx, "/n", fmt.Appendf(nil, "%d", i), recipe.AnyVersion)
		must(t, err)
		if i%10 != 0 {
			continue
		}
		must(t, tree.Barrier(ctx))
		if e, _ := tree.Get("/n"); string(e.Data) != fmt.Sprint(i) || e.Stat.Version != stat.Version {
			t.Fatalf("%q of version %d after the barrier behind %d", e.Data, e.Stat.Version, i)
		}
	}
	stopped()
	if values := <-seen; values < 10 {
		t.Errorf("only %d values were seen", values)
	}
}

// TestTreeForbidden follows a tree of which one node may not be read: the others
// are followed all the same, and that one is read when it may be.
func TestTreeForbidden(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), patiently(t)
	s := session(t, dial(t, root)) // first, since the chroot is whose session it made
	owner := session(t, dial(t, root, func(cfg *recipe.Config) {
		cfg.Digest = &recipe.Digest{User: "pool", Password: "secret", Private: true}
	}))
	must(t, s.EnsurePath(ctx, "/t/open"))
	must(t, owner.EnsurePath(ctx, "/t/secret"))
	tree := follow(t, dial(t, root), "/t", recipe.TreeOptions{})
	must(t, tree.Barrier(ctx))
	if e, ok := tree.Get("/t/secret"); !ok || !errors.Is(e.Err, recipe.ErrAuth) {
		t.Fatalf("entry %+v, %v", e, ok)
	}
	must(t, owner.Delete(ctx, "/t/secret", recipe.AnyVersion))
	must(t, s.EnsurePath(ctx, "/t/secret"))
	zktest.Eventually(t, func() bool { return tree.Unread("/t") == nil }, "the node is read")
}
