package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// follow runs a Tree until the test ends.
func follow(t *testing.T, c *recipe.Client, root string, opts recipe.TreeOptions) *recipe.Tree {
	t.Helper()
	tree := recipe.NewTree(c, root, opts)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tree.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run tree: %v", err)
		}
	})
	return tree
}

// content returns what tree has, path by path.
func content(tree *recipe.Tree, root string) map[string]string {
	all := map[string]string{}
	tree.View(func(v recipe.View) {
		v.Walk(root, func(path string, e recipe.Entry) bool {
			all[path] = string(e.Data)
			return true
		})
	})
	return all
}

// barrier makes tree show all that was written.
func barrier(t *testing.T, tree *recipe.Tree) {
	t.Helper()
	if err := tree.Barrier(patiently(t)); err != nil {
		t.Fatalf("barrier: %v", err)
	}
}

func TestTreeFollows(t *testing.T) {
	root := zktest.Root(t)
	s, ctx := session(t, dial(t, root)), t.Context()
	tree := follow(t, dial(t, root), "/a", recipe.TreeOptions{})
	sub := tree.Subscribe(nil)
	defer sub.Close()

	expect := func(step string, want map[string]string) {
		t.Helper()
		barrier(t, tree)
		if got := content(tree, "/a"); !maps.Equal(got, want) {
			t.Fatalf("%s: tree has %v, want %v", step, got, want)
		}
	}
	changed := func(step string, want ...string) {
		t.Helper()
		if got := sub.Take(); !slices.Equal(got, want) {
			t.Errorf("%s: changed %v, want %v", step, got, want)
		}
	}
	expect("no root", map[string]string{})
	must(t, s.EnsurePath(ctx, "/a/b/c"))
	expect("root appears", map[string]string{"/a": "", "/a/b": "", "/a/b/c": ""})
	changed("root appears", "/a", "/a/b", "/a/b/c")
	_, err := s.Set(ctx, "/a/b", []byte("1"), 0)
	must(t, err)
	expect("set", map[string]string{"/a": "", "/a/b": "1", "/a/b/c": ""})
	changed("set", "/a/b")
	must(t, s.DeleteTree(ctx, "/a/b"))
	expect("delete", map[string]string{"/a": ""})
	changed("delete", "/a/b", "/a/b/c")
	must(t, s.EnsurePath(ctx, "/a/b"))
	must(t, s.DeleteTree(ctx, "/a"))
	expect("root vanishes", map[string]string{})
	must(t, s.EnsurePath(ctx, "/a/d"))
	expect("root returns", map[string]string{"/a": "", "/a/d": ""})
	if v := tree.Version(); v < 9 {
		t.Errorf("version %d after 9 changes", v)
	}
}

func TestTreeFilter(t *testing.T) {
	root := zktest.Root(t)
	s, ctx := session(t, dial(t, root)), t.Context()
	for _, path := range []string{"/b/1/lock/x", "/b/1/providers/p/images/u1/lock", "/b/1/providers/q", "/b/2"} {
		must(t, s.EnsurePath(ctx, path))
	}
	_, err := s.Set(ctx, "/b/1/providers/p/images/u1", []byte("up"), 0)
	must(t, err)
	tree := follow(t, dial(t, root), "/b", recipe.TreeOptions{
		Filter: func(path string) recipe.Interest {
			switch strings.Count(path, "/") {
			case 1, 3:
				return recipe.Children // builds; providers
			case 2, 6:
				return recipe.Data // one build; one upload
			case 5:
				return recipe.Children // uploads
			}
			return recipe.None // one provider
		},
		Known: func(path string) []string {
			switch strings.Count(path, "/") {
			case 2:
				return []string{"providers"}
			case 4:
				return []string{"images"}
			}
			return nil
		},
	})
	want := map[string]string{
		"/b": "", "/b/1": "", "/b/2": "", "/b/1/providers": "", "/b/1/providers/p": "", "/b/1/providers/q": "",
		"/b/1/providers/p/images": "", "/b/1/providers/p/images/u1": "up",
	}
	expect := func(step string) {
		t.Helper()
		barrier(t, tree)
		if got := content(tree, "/b"); !maps.Equal(got, want) {
			t.Fatalf("%s: tree has %v, want %v", step, got, want)
		}
	}
	expect("loaded")
	must(t, s.EnsurePath(ctx, "/b/2/providers/r/images/u2"))
	want["/b/2/providers"], want["/b/2/providers/r"], want["/b/2/providers/r/images"], want["/b/2/providers/r/images/u2"] = "", "", "", ""
	expect("known children appear")
	must(t, s.DeleteTree(ctx, "/b/1/providers/p/images"))
	delete(want, "/b/1/providers/p/images")
	delete(want, "/b/1/providers/p/images/u1")
	expect("known child vanishes")
	must(t, s.EnsurePath(ctx, "/b/1/providers/p/images/u3"))
	want["/b/1/providers/p/images"], want["/b/1/providers/p/images/u3"] = "", ""
	expect("known child returns")
	must(t, s.DeleteTree(ctx, "/b/1"))
	maps.DeleteFunc(want, func(path, _ string) bool { return strings.HasPrefix(path, "/b/1") })
	expect("build vanishes")
}

// TestTreeStorm changes a tree from several sides as fast as it can, and
// compares what two Trees have, of clients of their own, with what ZooKeeper has.
func TestTreeStorm(t *testing.T) {
	root := zktest.Root(t)
	c, ctx := dial(t, root), t.Context()
	s := session(t, c)
	must(t, s.EnsurePath(ctx, "/t"))
	trees := []*recipe.Tree{follow(t, dial(t, root), "/t", recipe.TreeOptions{}), follow(t, dial(t, root), "/t", recipe.TreeOptions{})}
	const writers, rounds = 4, 60
	done := make(chan error, writers)
	for w := range writers {
		go func() { done <- storm(ctx, s, w, rounds) }()
	}
	for range writers {
		must(t, <-done)
	}
	for _, tree := range trees {
		barrier(t, tree)
		same(t, ctx, tree, s, "/t")
	}
}

// same demands that tree has what ZooKeeper has.
func same(t *testing.T, ctx context.Context, tree *recipe.Tree, s *recipe.Session, root string) {
	t.Helper()
	want := map[string]string{}
	must(t, readAll(ctx, s, root, want))
	if got := content(tree, root); !maps.Equal(got, want) {
		t.Fatalf("tree differs from ZooKeeper:\n%v\nwant\n%v", got, want)
	}
}

// storm creates, changes and deletes the same few nodes again and again.
func storm(ctx context.Context, s *recipe.Session, writer, rounds int) error {
	for i := range rounds {
		path := fmt.Sprintf("/t/%d", (i*7+writer)%5)
		err := s.EnsurePath(ctx, path+"/kid")
		if err == nil {
			_, err = s.Set(ctx, path, fmt.Appendf(nil, "%d.%d", writer, i), recipe.AnyVersion)
		}
		if err == nil && i%3 == writer%3 {
			err = s.DeleteTree(ctx, path)
		}
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
	return nil
}

// readAll reads what is at and below path.
func readAll(ctx context.Context, s *recipe.Session, path string, all map[string]string) error {
	data, _, err := s.Get(ctx, path)
	if err != nil {
		return err
	}
	all[path] = string(data)
	names, err := s.Children(ctx, path)
	for _, name := range names {
		err = errors.Join(err, readAll(ctx, s, path+"/"+name, all))
	}
	return err
}
