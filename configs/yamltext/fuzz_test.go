package yamltext

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// wordless is what an error of Parse may say: where, and no word of the file.
var wordless = regexp.MustCompile(`^not the YAML that it should be(: line \d+|: it is more than one document)?$`)

// FuzzChange: a value that is changed is changed, and all others are what they were; a text that
// cannot be read is refused without a word of it, as it may be a secret.
func FuzzChange(f *testing.F) {
	paths, err := filepath.Glob("../*.yaml")
	if err != nil || len(paths) == 0 {
		f.Fatal("no samples", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text[:min(len(text), 4000)], 3)
	}
	for _, text := range []string{
		"", "a: b", "a: &x b\nc: *x\n", "{\"a\": [1, {\"name\": \"n\"}]}", "a:\n  - name: n\n    v: |\n      t\n\n  - 'it''s'\n", "a: %(NODEPOOL_X)\n",
		"\xef\xbb\xbfa: é\r\nb: \"c\"\r\n", "? [a]\n: b\n", "a: !!str\nb: !t x", "<<: {a: 1}\nb: 2\n", "a: 1\na: 2\n", "- - - a\n", "\ta", "a: 'b", "--- a\n--- b\n", "\x85\u2028: a", "a: b #c\n",
	} {
		f.Add([]byte(text), 0)
	}
	f.Fuzz(func(t *testing.T, text []byte, which int) {
		before, err := Parse(bytes.Clone(text))
		if err != nil {
			if !errors.Is(err, ErrSyntax) || !wordless.MatchString(err.Error()) {
				t.Errorf("the error %q", err)
			}
			return
		}
		if len(before.scalars) == 0 {
			return
		}
		one := before.scalars[uint(which)%uint(len(before.scalars))]
		const value = "sealed:v1:abc_-D" // as what is set is: one plain word
		changed, err := before.Change(map[string]string{one.Path.String(): value})
		if err != nil {
			return
		}
		after, err := Parse(changed)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, changed, err)
		}
		paths := map[string]int{} // with a key that is there twice nobody knows which counts
		for _, s := range before.scalars {
			paths[s.Path.String()]++
		}
		known := map[string]string{}
		for _, s := range after.scalars {
			known[s.Path.String()] = s.Value
		}
		if known[one.Path.String()] != value {
			t.Errorf("%q became %q: %s is %q", text, changed, one.Path, known[one.Path.String()])
		}
		for _, s := range before.scalars {
			if got, there := known[s.Path.String()]; s.Path.String() != one.Path.String() && there && got != s.Value && paths[s.Path.String()] == 1 {
				t.Errorf("%q became %q: %s is %q, was %q", text, changed, s.Path, got, s.Value)
			}
		}
	})
}

// FuzzPath: a path that is read is written so that it is read as the same.
func FuzzPath(f *testing.F) {
	for _, text := range []string{"", "a", "a.b", "a[b]", "a[0]", "a[00]", `a["0"]`, `"a b".c`, `a["\n"]`, "a.", ".a", "[a]", "a[]", `a"b"`, `a["`, `a["\xff"]`, `"\u00e9"`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := ParsePath(text)
		if err != nil {
			if !errors.Is(err, ErrPath) {
				t.Errorf("the error %q", err)
			}
			return
		}
		again, err := ParsePath(path.String())
		if err != nil || again.String() != path.String() || len(again) != len(path) {
			t.Fatalf("%q is %s, which is %s (%v)", text, path, again, err)
		}
		for i := range path {
			if path[i] != again[i] {
				t.Errorf("%q is %+v, which is %+v", text, path[i], again[i])
			}
		}
	})
}
