package recipe_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// told is what a read brought, for comparing.
type told struct {
	Data     string
	Stat     recipe.Stat
	Children []string
	Err      string
}

func tell(data []byte, stat recipe.Stat, children []string, err error) told {
	if err != nil {
		stat = recipe.Stat{}
	}
	return told{string(data), stat, append([]string{}, children...), fmt.Sprint(err)}
}

// readBoth reads data and children of paths together, and each alone.
func readBoth(ctx context.Context, s *recipe.Session, paths []string) (together, alone []told) {
	var reads []recipe.Read
	for _, path := range paths {
		reads = append(reads, recipe.ReadData(path), recipe.ReadChildren(path))
		data, stat, err := s.Get(ctx, path)
		alone = append(alone, tell(data, stat, nil, err))
		children, err := s.Children(ctx, path)
		alone = append(alone, tell(nil, recipe.Stat{}, children, err))
	}
	for _, r := range s.ReadMany(ctx, reads...) {
		together = append(together, tell(r.Data, r.Stat, r.Children, r.Err))
	}
	return together, alone
}

// grove makes nodes of many sizes, with and without children, and returns their paths, and some
// of none.
func grove(t *testing.T, s *recipe.Session, count int) (paths []string) {
	t.Helper()
	for i := range count {
		path := fmt.Sprintf("/grove/%d", i)
		paths = append(paths, path, path+"/lock")
		must(t, s.EnsurePath(t.Context(), path))
		if i%3 == 0 {
			must(t, s.EnsurePath(t.Context(), path+"/lock/é"))
		}
		if i%5 > 0 {
			_, err := s.Set(t.Context(), path, make([]byte, i*i*i), recipe.AnyVersion)
			must(t, err)
		}
	}
	return append(paths, "/none")
}

// Mistakes: a read together brings something else than alone, or in another order; what is
// refused is taken for missing, or hides others; each is sent alone after all.
func TestReadManyIsGetAndChildren(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	s, ctx := session(t, dial(t, root, through(tap.Addr()))), t.Context()
	paths := grove(t, s, 60)
	check := func(what string, paths []string) {
		t.Helper()
		together, alone := readBoth(ctx, s, paths)
		if diff := cmp.Diff(alone, together); diff != "" {
			t.Errorf("%s (-alone +together):\n%s", what, diff)
		}
	}
	check("all", paths)
	check("none", nil)
	check("a bad path among them", []string{"/grove/1", "/grove/", "/grove/2"})
	var reads []recipe.Read
	for _, path := range paths {
		reads = append(reads, recipe.ReadData(path))
	}
	before := tap.Naming(root + "/")
	s.ReadMany(ctx, reads...)
	if sent := tap.Naming(root+"/") - before; sent != 3 {
		t.Errorf("%d requests for %d reads", sent, len(reads))
	}
	zktest.Forbid(t, zktest.Shared(t).Addr(), root, "/grove/7")
	check("one that is refused", paths)
}

// Mistakes: a connection that breaks loses reads, or what it has not told yet is taken for
// missing; behind one that broke, reads overtake the log-in, and its refusals stay.
func TestReadManyOverConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	root := zktest.Root(t)
	p := zktest.StartProxy(t, zktest.Shared(t).Addr())
	s := session(t, dial(t, root, through(p.Addr()), func(cfg *recipe.Config) {
		cfg.Digest = &recipe.Digest{User: "pool", Password: "secret", Private: true}
	}))
	paths := grove(t, s, 20)
	_, want := readBoth(t.Context(), s, paths)
	for range 20 {
		got := make(chan []told)
		go func() {
			together, _ := readBoth(patiently(t), s, paths)
			got <- together
		}()
		p.Break()
		if diff := cmp.Diff(want, <-got); diff != "" {
			t.Fatalf("(-before +over a broken connection):\n%s", diff)
		}
	}
}

// A server before 3.6 refuses what it does not know.
func TestReadManyAtAnOldServer(t *testing.T) {
	t.Parallel()
	f, _ := startFake(t)
	f.next.Store(1)
	s := session(t, dial(t, "", through(f.addr)))
	for _, r := range s.ReadMany(patiently(t), recipe.ReadData("/a"), recipe.ReadData("/b")) {
		want(t, r.Err, recipe.ErrNoNode)
	}
	if len(f.seen) != 1 {
		t.Errorf("%d requests for reads together", len(f.seen))
	}
}
