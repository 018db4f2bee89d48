package disk

import (
	"crypto/md5" // as in the product
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
)

func reference(text string) (md5sum, sha256sum string) {
	m, s := md5.Sum([]byte(text)), sha256.Sum256([]byte(text))
	return hex.EncodeToString(m[:]), hex.EncodeToString(s[:])
}

// built is a build of ours with one file.
func built(t *testing.T) (*Images, Name, File) {
	t.Helper()
	d := open(t, t.TempDir())
	n := Name{"img", "0000000001"}
	w, err := d.Begin(n, "")
	if err != nil {
		t.Fatal(err)
	}
	write(t, d.Dir(), "img-0000000001.raw")
	f, err := Sum(t.Context(), d.File(n, "raw"))
	if err == nil {
		err = w.Finish(map[string]File{"raw": f})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d, n, f
}

func TestVerifyReadsNothingTwice(t *testing.T) {
	d, n, f := built(t)
	// Had it been read again, it would not have come to this.
	f.SHA256 = "as noted"
	w, err := d.Begin(n, "")
	if err == nil {
		err = w.Finish(map[string]File{"raw": f})
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.Verify(t.Context(), n, "raw", f.MD5, f.SHA256)
	if err != nil || got != f {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := d.Verify(t.Context(), n, "raw", f.MD5, "another"); !errors.Is(err, ErrChecksum) {
		t.Errorf("another record: %v", err)
	}
}

func TestVerifySeesWhatChanged(t *testing.T) {
	d, n, f := built(t)
	path := d.File(n, "raw")
	same, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// A copy that was put back is as good.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, same, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Verify(t.Context(), n, "raw", f.MD5, f.SHA256); err != nil || got.Mark == f.Mark {
		t.Errorf("put back: %+v, %v", got, err)
	}
	same[0] ^= 1
	if err := os.WriteFile(path, same, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(t.Context(), n, "raw", "", ""); !errors.Is(err, ErrChecksum) {
		t.Errorf("changed: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Verify(t.Context(), n, "raw", "", ""); !errors.Is(err, ErrNoFile) {
		t.Errorf("gone: %v", err)
	}
	if b, ok := d.Build(n); !ok || slices.Contains(b.Formats, "raw") {
		t.Errorf("the file that is gone is still known: %+v", b)
	}
}

func TestAdoptMakesFilesOurs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "img-5446a9b0.raw")
	d := open(t, dir)
	n := Name{"img", "5446a9b0"}
	if err := d.Adopt(n); err != nil {
		t.Fatal(err)
	}
	if b, _ := d.Build(n); !b.Ours || b.Running || len(b.Formats) != 1 {
		t.Errorf("adopted: %+v", b)
	}
	if _, err := d.Verify(t.Context(), n, "raw", "", ""); err != nil {
		t.Error(err)
	}
	_ = d.Close()
	if b, _ := open(t, dir).Build(n); !b.Ours || b.Files["raw"].SHA256 == "" {
		t.Errorf("after a restart: %+v", b)
	}
}

func TestTurnsAreTakenOneAtATime(t *testing.T) {
	var all turns
	var group sync.WaitGroup
	inside := map[string]int{"a": 0, "b": 0}
	var mu sync.Mutex
	for range 20 {
		for _, key := range []string{"a", "b"} {
			group.Go(func() {
				release, err := all.enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				defer release()
				for _, by := range []int{1, -1} {
					mu.Lock()
					if inside[key] += by; inside[key] > 1 {
						t.Errorf("%d at %s", inside[key], key)
					}
					mu.Unlock()
				}
			})
		}
	}
	group.Wait()
	if len(all.inUse) != 0 {
		t.Errorf("%d turns are left", len(all.inUse))
	}
}
