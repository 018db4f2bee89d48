package imagefile_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

// sample writes size bytes of a pattern and describes them.
func sample(t *testing.T, size int) ([]byte, providers.ImageUpload) {
	t.Helper()
	data := bytes.Repeat([]byte("pool"), size/4+1)[:size]
	path := filepath.Join(t.TempDir(), "image.raw")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	m, s := md5.Sum(data), sha256.Sum256(data)
	return data, providers.ImageUpload{
		Path: path, Size: int64(size),
		MD5: hex.EncodeToString(m[:]), SHA256: hex.EncodeToString(s[:]),
	}
}

func TestReadWhole(t *testing.T) {
	for _, size := range []int{0, 1, 256 << 10, 1<<20 + 7} {
		data, image := sample(t, size)
		var seen []int64
		image.Progress = func(sent int64) { seen = append(seen, sent) }
		r, err := imagefile.Open(t.Context(), image)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if n, err := io.Copy(&got, r); err != nil || n != int64(size) {
			t.Fatalf("copied %d of %d: %v", n, size, err)
		}
		if !bytes.Equal(got.Bytes(), data) {
			t.Errorf("size %d: other bytes", size)
		}
		if size > 0 && seen[len(seen)-1] != int64(size) {
			t.Errorf("size %d: progress ended at %v", size, seen)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestReaderContract(t *testing.T) {
	data, image := sample(t, 4096)
	r, err := imagefile.Open(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	if err := iotest.TestReader(r, data); err != nil {
		t.Error(err)
	}
}

func TestRefuses(t *testing.T) {
	tests := map[string]struct {
		change func(*providers.ImageUpload)
		want   error
	}{
		"md5":       {func(i *providers.ImageUpload) { i.MD5 = "00" }, providers.ErrChecksum},
		"sha256":    {func(i *providers.ImageUpload) { i.SHA256 = "00" }, providers.ErrChecksum},
		"size":      {func(i *providers.ImageUpload) { i.Size++ }, providers.ErrChecksum},
		"no file":   {func(i *providers.ImageUpload) { i.Path += "x" }, providers.ErrInvalid},
		"directory": {func(i *providers.ImageUpload) { i.Path = filepath.Dir(i.Path) }, providers.ErrInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, image := sample(t, 1<<20)
			test.change(&image)
			var got bytes.Buffer
			r, err := imagefile.Open(t.Context(), image)
			if err == nil {
				defer r.Close() //nolint:errcheck // only read
				_, err = io.Copy(&got, r)
			}
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if got.Len() == 1<<20 {
				t.Error("the whole wrong image left")
			}
		})
	}
}

func TestVerifiedIsNotHashed(t *testing.T) {
	data, image := sample(t, 1000)
	image.Verified, image.MD5 = true, "of something else"
	r, err := imagefile.Open(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	got, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(data, got); diff != "" {
		t.Error(diff)
	}
}

func TestShrinksWhileRead(t *testing.T) {
	_, image := sample(t, 1<<20)
	image.Progress = func(int64) { _ = os.Truncate(image.Path, 1) }
	r, err := imagefile.Open(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, providers.ErrChecksum) {
		t.Errorf("got %v", err)
	}
}

func TestEndsWithContext(t *testing.T) {
	_, image := sample(t, 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	image.Progress = func(int64) { cancel() }
	r, err := imagefile.Open(ctx, image)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close() //nolint:errcheck // only read
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
