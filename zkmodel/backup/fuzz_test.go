package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// FuzzParse: a file of images that is taken is written the same again; what is refused is
// refused as no such file.
func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		"", "null", "{}", "[]", `{"/nodepool/images/a/pause":""}`, `{"/nodepool/images/a/builds/1":"{}"}`, `{"/nodepool/images/../builds/1":"x"}`, `{"a":1}`,
		`{"/nodepool/images/a/builds/1/providers/p/images/2":"","/nodepool/images/a/builds/1":"\ud800"}`, `{"a/builds/1/providers/p/images/2":"","/nodepool/images/a/builds/1":""}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := Parse(text)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Errorf("the error %q", err)
			}
			return
		}
		once, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(once)
		if err != nil {
			t.Fatalf("read what was written of %q: %v", text, err)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, once, twice)
		}
		d.Counts()
	})
}

// FuzzParseWhole: a whole backup with a right sum, whatever its lines say, is taken or refused;
// what is taken is written the same again, and no path of it leads out of our trees.
func FuzzParseWhole(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-23T00:00:00Z"}`), []byte(""))
	f.Add([]byte(`{}`), []byte(`{"path":"/nodepool/images/a/builds/0000000001","text":"{}"}`+"\n"))
	f.Add([]byte(`{"by":"me"}`), []byte(`{"path":"/poolkeeper/../x","text":"{}"}`+"\n"+`{"path":"/nodepool/images/a/builds","next":5}`+"\n"))
	f.Add([]byte(`{"waves_under_way":["a"]}`), []byte(`{"path":"/poolkeeper/pauses","text":"{}"}`+"\n"+`{"path":"/poolkeeper//x"}`+"\n"))
	f.Fuzz(func(t *testing.T, head, lines []byte) {
		var h header
		if json.Unmarshal(head, &h) != nil {
			return
		}
		h.Format, h.Records = Format, bytes.Count(lines, []byte("\n"))
		first, err := json.Marshal(h)
		if err != nil {
			return
		}
		body := append(append(first, '\n'), lines...)
		digest := sha256.Sum256(body)
		text := append(body, fmt.Sprintf(`{"SHA256":"%s"}`+"\n", hex.EncodeToString(digest[:]))...)
		w, err := ParseWhole(text)
		if err != nil {
			if !errors.Is(err, ErrFile) {
				t.Errorf("the error %q", err)
			}
			return
		}
		once, err := w.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseWhole(once)
		if err != nil {
			t.Fatalf("read what was written of %q: %v\n%s", text, err, once)
		}
		if twice, err := again.Encode(); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("not stable (%v):\n%s\n%s", err, once, twice)
		}
	})
}
