package recipe_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// noise are bytes that do not get shorter.
func noise(t *testing.T, n int) []byte {
	t.Helper()
	data := make([]byte, n)
	_, err := rand.Read(data)
	must(t, err)
	return data
}

// blobLock is the lock that blobs are written under.
func blobLock(t *testing.T, s *recipe.Session) *recipe.Held {
	t.Helper()
	held, err := recipe.NewLock(s, "/lock", "").Acquire(patiently(t))
	must(t, err)
	return held
}

// What was written is read, however long it is, and no node is longer than a server with
// half of the usual limit accepts. It would catch a shard that is lost at a boundary, and
// data that is stored as it is.
func TestBlobRoundTrip(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	held := blobLock(t, s)
	const shard = 512 << 10
	for name, data := range map[string][]byte{
		"empty": {}, "text": bytes.Repeat([]byte("labels: [{name: small}]\n"), 100_000),
		"a shard": noise(t, shard-200), "about a shard": noise(t, shard), "long": noise(t, 2*shard+1),
	} {
		b, err := held.WriteBlob(ctx, "/deep/blobs", data)
		must(t, err)
		got, err := s.ReadBlob(ctx, "/deep/blobs", b)
		must(t, err)
		if !bytes.Equal(got, data) || b.Digest != recipe.BlobDigest(data) || b.Size != len(data) {
			t.Errorf("%s: %d bytes became %d, %+v", name, len(data), len(got), b)
		}
		if name == "text" && b.Shards != 1 {
			t.Errorf("text of %d bytes takes %d shards", len(data), b.Shards)
		}
		shards, err := s.Children(ctx, "/deep/blobs/"+b.ID)
		must(t, err)
		for _, one := range shards {
			if stored, _, err := s.Get(ctx, "/deep/blobs/"+b.ID+"/"+one); err != nil || len(stored) > shard {
				t.Errorf("%s: shard %s has %d bytes, %v", name, one, len(stored), err)
			}
		}
	}
	_, err := held.WriteBlob(ctx, "/deep/blobs", make([]byte, 64<<20+1))
	want(t, err, recipe.ErrTooLarge)
}

// Whatever happens to shards, a reader gets what was written or ErrDamaged, never
// something else: missing, altered, swapped, cut, longer, those of another blob, or made to
// fill the memory.
func TestBlobDamaged(t *testing.T) {
	t.Parallel()
	s, ctx := session(t, dial(t, zktest.Root(t))), t.Context()
	held := blobLock(t, s)
	data := noise(t, 5<<17)
	write := func() recipe.Blob {
		b, err := held.WriteBlob(ctx, "/blobs", data)
		must(t, err)
		return b
	}
	at := func(b recipe.Blob, n int) string { return fmt.Sprintf("/blobs/%s/%04d", b.ID, n) }
	read := func(b recipe.Blob, n int) []byte {
		got, _, err := s.Get(ctx, at(b, n))
		must(t, err)
		return slices.Clone(got)
	}
	set := func(b recipe.Blob, n int, data []byte) {
		_, err := s.Set(ctx, at(b, n), data, recipe.AnyVersion)
		must(t, err)
	}
	for name, harm := range map[string]func(b *recipe.Blob){
		"first missing":  func(b *recipe.Blob) { must(t, s.Delete(ctx, at(*b, 0), recipe.AnyVersion)) },
		"last missing":   func(b *recipe.Blob) { must(t, s.Delete(ctx, at(*b, b.Shards-1), recipe.AnyVersion)) },
		"all missing":    func(b *recipe.Blob) { must(t, s.DeleteTree(ctx, "/blobs/"+b.ID)) },
		"a bit altered":  func(b *recipe.Blob) { x := read(*b, 1); x[100] ^= 1; set(*b, 1, x) },
		"swapped":        func(b *recipe.Blob) { x, y := read(*b, 0), read(*b, 1); set(*b, 0, y); set(*b, 1, x) },
		"cut":            func(b *recipe.Blob) { x := read(*b, b.Shards-1); set(*b, b.Shards-1, x[:len(x)/2]) },
		"emptied":        func(b *recipe.Blob) { set(*b, 1, nil) },
		"another digest": func(b *recipe.Blob) { b.Digest = recipe.BlobDigest(nil) },
		"shorter":        func(b *recipe.Blob) { b.Size-- },
		"longer":         func(b *recipe.Blob) { b.Size++ },
		"fewer shards":   func(b *recipe.Blob) { b.Shards-- },
		"no shards":      func(b *recipe.Blob) { b.Shards = 0 },
		"endless shards": func(b *recipe.Blob) { b.Shards = 1 << 30 },
		"endless size":   func(b *recipe.Blob) { b.Size = 1 << 40 },
		"a bomb": func(b *recipe.Blob) {
			var out bytes.Buffer
			z := gzip.NewWriter(&out)
			for range 16 {
				_, _ = z.Write(make([]byte, 1<<20))
			}
			must(t, z.Close())
			set(*b, 0, out.Bytes())
			b.Shards, b.Size = 1, 5
		},
	} {
		b := write()
		harm(&b)
		if got, err := s.ReadBlob(ctx, "/blobs", b); !errors.Is(err, recipe.ErrDamaged) || got != nil {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
}

// A writer that loses its lock between two shards writes no more, and what it has left is
// collected by the next that holds the lock; what is referred to stays. It would catch a
// shard that is written without the fence, and a collector that takes a blob in use.
func TestBlobCollected(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	s, other := session(t, dial(t, root)), session(t, dial(t, root))
	data := noise(t, 3<<19)
	for cut := range 4 { // 0 is before the first shard
		held := blobLock(t, s)
		kept, err := held.WriteBlob(ctx, "/blobs", []byte("kept"))
		must(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := held.WriteBlob(ctx, "/blobs", data)
			done <- err
		}()
		zktest.Eventually(t, func() bool { return unfinished(t, other, kept.ID) >= cut }, "%d shards", cut)
		must(t, other.Delete(ctx, held.Path(), recipe.AnyVersion)) // as the end of its session does
		if err := <-done; err != nil {
			want(t, err, recipe.ErrFenceLost)
		}
		next := blobLock(t, other)
		before, err := other.Children(ctx, "/blobs")
		must(t, err)
		n, err := next.CollectBlobs(ctx, "/blobs", func(id string) bool { return id == kept.ID })
		must(t, err)
		after, err := other.Children(ctx, "/blobs")
		must(t, err)
		if n != len(before)-1 || !slices.Equal(after, []string{kept.ID}) {
			t.Errorf("after %d shards: %d of %q collected, %q are left", cut, n, before, after)
		}
		if got, err := other.ReadBlob(ctx, "/blobs", kept); err != nil || string(got) != "kept" {
			t.Errorf("after %d shards: %q, %v", cut, got, err)
		}
		must(t, next.DeleteTree(ctx, "/blobs"))
		must(t, next.Release(ctx))
	}
	held := blobLock(t, s)
	if n, err := held.CollectBlobs(ctx, "/nowhere", func(string) bool { return false }); n != 0 || err != nil {
		t.Errorf("collected nowhere: %d, %v", n, err)
	}
}

// unfinished is how many shards a blob has that is not the one called kept.
func unfinished(t *testing.T, s *recipe.Session, kept string) int {
	t.Helper()
	ids, err := s.Children(t.Context(), "/blobs")
	if err != nil {
		return -1
	}
	for _, id := range ids {
		if id != kept {
			shards, err := s.Children(t.Context(), "/blobs/"+id)
			if err != nil {
				return -1
			}
			return len(shards)
		}
	}
	return -1
}

// A broken connection between and during shards stops no writer, and doubles nothing.
func TestBlobOverBrokenConnections(t *testing.T) {
	t.Parallel()
	root, ctx := zktest.Root(t), t.Context()
	c, p := proxied(t, root, timeout(30e9))
	s := session(t, c)
	held := blobLock(t, s)
	data := noise(t, 2<<20)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			p.Break()
			wait(ctx, 20e6)
		}
	}()
	b, err := held.WriteBlob(ctx, "/blobs", data)
	<-done
	must(t, err)
	got, err := s.ReadBlob(ctx, "/blobs", b)
	must(t, err)
	ids, err := s.Children(ctx, "/blobs")
	must(t, err)
	if !bytes.Equal(got, data) || strings.Join(ids, " ") != b.ID {
		t.Errorf("%d bytes in %q", len(got), ids)
	}
}
