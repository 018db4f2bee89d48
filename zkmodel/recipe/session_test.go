package recipe_test

import (
	"errors"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestSessionOperations(t *testing.T) {
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()

	if _, err := s.Create(ctx, "/a/b", nil, recipe.Persistent); !errors.Is(err, recipe.ErrNoNode) {
		t.Errorf("create without parent: %v", err)
	}
	if err := s.EnsurePath(ctx, "/a/b/c"); err != nil {
		t.Fatalf("ensure path: %v", err)
	}
	path, err := s.Create(ctx, "/a/n", []byte("x"), recipe.Ephemeral|recipe.Sequential)
	if err != nil || path != "/a/n0000000001" {
		t.Fatalf("create: %q, %v", path, err)
	}
	data, stat, err := s.Get(ctx, path)
	if err != nil || string(data) != "x" || stat.EphemeralOwner != s.ID() {
		t.Fatalf("get: %q, %+v, %v", data, stat, err)
	}
	if stat, err = s.Set(ctx, path, []byte("y"), 0); err != nil || stat.Version != 1 {
		t.Fatalf("set: %+v, %v", stat, err)
	}
	if _, err = s.Set(ctx, path, []byte("z"), 0); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("set of old version: %v", err)
	}
	if err = s.Delete(ctx, "/a", recipe.AnyVersion); !errors.Is(err, recipe.ErrNotEmpty) {
		t.Errorf("delete of full node: %v", err)
	}
	if _, err = s.Create(ctx, "/a/big", make([]byte, 1<<20), recipe.Persistent); !errors.Is(err, recipe.ErrTooLarge) {
		t.Errorf("create of 1 MiB: %v", err)
	}
	if err = s.DeleteTree(ctx, "/a"); err != nil {
		t.Fatalf("delete tree: %v", err)
	}
	if _, exists, err := s.Exists(ctx, "/a"); err != nil || exists {
		t.Errorf("exists after delete: %v, %v", exists, err)
	}
	if names, err := s.Children(ctx, "/"); err != nil || len(names) != 0 {
		t.Errorf("children: %v, %v", names, err)
	}
}

func TestMulti(t *testing.T) {
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	results, err := s.Multi(ctx,
		recipe.OpCreate("/r", []byte("1"), recipe.Persistent),
		recipe.OpCreate("/r/c", nil, recipe.Sequential),
		recipe.OpSet("/r", []byte("2"), 0))
	if err != nil {
		t.Fatalf("multi: %v", err)
	}
	if results[1].Path != "/r/c0000000000" || results[2].Stat.Version != 1 {
		t.Errorf("results: %+v", results)
	}
	_, err = s.Multi(ctx, recipe.OpSet("/r", []byte("3"), 1), recipe.OpCheck("/none", recipe.AnyVersion))
	if !errors.Is(err, recipe.ErrNoNode) {
		t.Errorf("multi with failing step: %v", err)
	}
	if data, _, _ := s.Get(ctx, "/r"); string(data) != "2" {
		t.Errorf("half a multi was applied: %q", data)
	}
}
