package local

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"poolkeeper/providers"
)

func TestCrashLeavesOnlyWhatIsSwept(t *testing.T) {
	dir := t.TempDir()
	first := open(t, section(dir), Options{})
	kept := upload(t, first)
	write(t, filepath.Join(dir, "images", ".new-123", imageName), "half", 0o600)
	write(t, filepath.Join(dir, "images", ".gone-456", imageName), "half", 0o600)
	write(t, filepath.Join(dir, "images", "README"), "not ours", 0o600)
	write(t, filepath.Join(dir, "guests", ".new-789", baseName), "half", 0o600)
	busy, err := first.images.stage(t.Context()) // an upload that goes on
	if err != nil {
		t.Fatal(err)
	}
	second := open(t, section(dir), Options{})
	for shelf, want := range map[string][]string{
		"images": {lockName, filepath.Base(busy.dir), "README", kept}, "guests": {lockName},
	} {
		var got []string
		entries, err := os.ReadDir(filepath.Join(dir, shelf))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			got = append(got, e.Name())
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", shelf, got, want)
		}
	}
	if err := busy.commit("late"); err != nil {
		t.Errorf("the upload that went on: %v", err)
	}
	if _, err := second.ListImages(t.Context()); err != nil && !strings.Contains(err.Error(), "late") {
		t.Error(err)
	}
}

func TestBrokenRecordFailsTheList(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	id := upload(t, p)
	write(t, p.images.path(id, recordName), `{"name": `, 0o600)
	if list, err := p.ListImages(t.Context()); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("got %v, %v", list, err)
	}
	write(t, p.guests.path("1-x", recordName), `[]`, 0o600)
	if list, err := p.ListNodes(t.Context()); err == nil || !strings.Contains(err.Error(), "1-x") {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestCopiesAreEqualAndSparse(t *testing.T) {
	src := filepath.Join(t.TempDir(), "src")
	data := make([]byte, 6<<20+12345)
	copy(data[1<<20:], bytes.Repeat([]byte("data"), 1000))
	copy(data[4<<20:], "more")
	write(t, src, "", 0o600)
	f, err := os.OpenFile(src, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(data); at += 4096 { // with holes where the zeros are
		if block := data[at:min(at+4096, len(data))]; bytes.ContainsFunc(block, func(r rune) bool { return r != 0 }) {
			if _, err := f.WriteAt(block, int64(at)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(f.Truncate(int64(len(data))), f.Close()); err != nil {
		t.Fatal(err)
	}
	for _, verified := range []bool{false, true} {
		dst := filepath.Join(t.TempDir(), "dst")
		up := providers.ImageUpload{Path: src, Size: int64(len(data)), Verified: verified}
		if err := copyImage(t.Context(), dst, up); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(dst)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data) {
			t.Errorf("verified %v: the copy differs", verified)
		}
		info, err := os.Stat(dst)
		if err != nil {
			t.Fatal(err)
		}
		if used := info.Sys().(*syscall.Stat_t).Blocks * 512; used > 1<<20 {
			t.Errorf("verified %v: the copy takes %d bytes", verified, used)
		}
	}
}

func TestCancelledAtTheLastByte(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	path := filepath.Join(t.TempDir(), "image.raw")
	write(t, path, "one block of data", 0o600)
	for _, verified := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		up := providers.ImageUpload{Path: path, Format: "raw", Size: 17, Verified: verified}
		up.Progress = func(sent int64) {
			if sent == up.Size {
				cancel()
			}
		}
		if id, err := p.UploadImage(ctx, up); !errors.Is(err, context.Canceled) {
			t.Errorf("UploadImage gave %s, %v", id, err)
		}
		if ids, err := p.images.ids(); err != nil || len(ids) > 0 {
			t.Errorf("left behind: %v, %v", ids, err)
		}
	}
}

// header makes the beginning of a qcow2.
func header(version uint32, backing, features uint64) []byte {
	b := make([]byte, 512)
	copy(b, "QFI\xfb")
	binary.BigEndian.PutUint32(b[4:], version)
	binary.BigEndian.PutUint64(b[8:], backing)
	binary.BigEndian.PutUint64(b[72:], features)
	return b
}

func TestFormats(t *testing.T) {
	tests := map[string]struct {
		format string
		data   []byte
		why    string
	}{
		"qcow2":             {"qcow2", header(3, 0, 0), ""},
		"old qcow2":         {"qcow2", header(2, 0, 1<<2), ""},
		"raw":               {"raw", []byte("anything"), ""},
		"vhd":               {"vhd", []byte("anything"), ""},
		"reads other files": {"qcow2", header(3, 512, 0), "backing file"},
		"data elsewhere":    {"qcow2", header(3, 0, 1<<2), "another file"},
		"raw as qcow2":      {"qcow2", make([]byte, 512), "no qcow2"},
		"short":             {"qcow2", []byte("QFI\xfb"), "too short"},
		"unknown":           {"tar", []byte("anything"), `"tar"`},
		"none":              {"", []byte("anything"), `""`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "image")
			write(t, path, string(test.data), 0o600)
			err := checkFormat(providers.ImageUpload{Format: test.format, Path: path})
			if test.why == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if test.why != "" && (!errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), test.why)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestFullDiskIsQuota(t *testing.T) {
	err := diskError(&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if !errors.Is(err, providers.ErrQuota) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("got %v", err)
	}
	if err := diskError(os.ErrPermission); errors.Is(err, providers.ErrQuota) {
		t.Errorf("got %v", err)
	}
}

func TestImageIDs(t *testing.T) {
	sum := strings.Repeat("0123456789abcdef", 4)
	for want, up := range map[string]providers.ImageUpload{
		"0123456789ab-0000000007-": {SHA256: sum, Metadata: map[string]string{providers.MetaUpload: "0000000007"}},
		"0123456789ab-":            {SHA256: sum, Metadata: map[string]string{providers.MetaUpload: "../7"}},
		"image-":                   {SHA256: "../../../../etc", Metadata: map[string]string{providers.MetaUpload: strings.Repeat("x", 500)}},
	} {
		got := imageID(up)
		if !strings.HasPrefix(got, want) || len(got) != len(want)+8 || !safe(got) {
			t.Errorf("got %s, want %s and 8 digits", got, want)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/b", "-x", ".new-1", "ok", "0000000001-ab12", "a\x00", "ä"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if !safe(id) {
			return
		}
		if filepath.Base(id) != id || !filepath.IsLocal(id) || id[0] == '.' || id[0] == '-' {
			t.Errorf("%q is called safe", id)
		}
	})
}

func TestUUIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		id := newUUID()
		var a, b, c, d, e uint64
		if n, err := fmt.Sscanf(id, "%8x-%4x-4%3x-%4x-%12x", &a, &b, &c, &d, &e); n != 5 || err != nil || d>>14 != 2 || len(id) != 36 {
			t.Errorf("%s is no UUID of version 4", id)
		}
		seen[id] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different ones", len(seen))
	}
}
