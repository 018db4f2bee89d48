package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzManifest: what is taken for the manifest of a folder says so itself, is written the same
// again, and what is refused names the folder.
func FuzzManifest(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `[]`, `{"image":"debian","build":"0000000001"}`, `{"image":"other","build":"0000000001"}`,
		`{"image":"debian","build":"0000000001","tmp_dir":"/tmp/x","processes":{"command":{"pid":1,"started":2}},"done":true,` +
			`"files":{"qcow2":{"size":1,"md5":"a","sha256":"b","mark":{"inode":1,"modified":"2026-11-23T00:00:00Z","changed":"2026-11-23T00:00:00+23:59"}}}}`,
	} {
		f.Add([]byte(text))
	}
	dir := filepath.Join(f.TempDir(), "debian-0000000001")
	if err := os.Mkdir(dir, 0o700); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, manifestFile), text, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := readManifest(dir)
		if err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("the error %q names no folder", err)
			}
			return
		}
		if name := (Name{m.Image, m.ID}).String(); name != filepath.Base(dir) {
			t.Fatalf("the manifest of %s was taken", name)
		}
		once, err := json.Marshal(m)
		if err != nil {
			t.Fatalf("write what was read: %v", err)
		}
		if err := replaceFile(filepath.Join(dir, manifestFile), once); err != nil {
			t.Fatal(err)
		}
		again, err := readManifest(dir)
		if err != nil {
			t.Fatalf("read what was written: %v", err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, once, twice)
		}
	})
}

// FuzzChecksumFile: a file that is accepted begins with the sum; one that is refused is named,
// in one line that is short however long the file is.
func FuzzChecksumFile(f *testing.F) {
	const sum = "d41d8cd98f00b204e9800998ecf8427e"
	for _, text := range []string{
		sum, sum + "  image.qcow2\n", strings.ToUpper(sum) + " *image.qcow2\n", sum + "\n" + sum + "\n", sum + "\timage\n", "", " ", "\n" + sum + " x",
		sum + "0", "\\" + sum + "  a", "\xff\x00\n", strings.Repeat("a", 10_000), strings.Repeat(" ", 5000) + sum,
	} {
		f.Add([]byte(text))
	}
	file := filepath.Join(f.TempDir(), "image.qcow2.md5")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		err := agree(file, sum)
		first := strings.Fields(string(text[:min(len(text), longestSums)]) + " ")
		switch {
		case err == nil && (len(first) == 0 || !strings.EqualFold(first[0], sum)):
			t.Errorf("%q was taken", text)
		case err != nil && (!errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), file) || len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\n\x00")):
			t.Errorf("the error %q", err)
		case err != nil && len(text) < longestSums && bytes.HasPrefix(text, []byte(sum+"  ")):
			t.Errorf("what md5sum writes was refused: %v", err)
		}
	})
}

// FuzzFileName: a file that is taken for an image has the name that its build gives it.
func FuzzFileName(f *testing.F) {
	for _, name := range []string{"", "debian-0000000001.qcow2", "a-b-0000000001.raw", "-1.raw", "a-.raw", "a-1.", "a-1.b.md5", ".-.", "a-1.raw/x", "a-\n1.raw", "é-1.raw"} {
		f.Add(name)
	}
	d := &Images{dir: "/images"}
	f.Fuzz(func(t *testing.T, file string) {
		n, format, ok := parseFile(file)
		if !ok || strings.Contains(file, "/") {
			return // a directory lists no such name
		}
		if got := filepath.Base(d.File(n, format)); got != file || n.Image == "" || n.ID == "" || format == "" {
			t.Errorf("%q is taken for %v of format %q, which is %q", file, n, format, got)
		}
	})
}
