package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Each operator makes its mutants, in lines of the original; what must be a constant, and what would
// be evaluated twice, is left alone.
func TestMutate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		want []string
	}{
		"equal":      {"return a == b", []string{"== negated"}},
		"less":       {"return a < b", []string{"< negated", "< at its bound"}},
		"of a call":  {"return f() < b", []string{"< negated"}},
		"and":        {"return x && y", []string{"&& is ||"}},
		"or":         {"return x || y", []string{"|| is &&"}},
		"if":         {"if x { return y }\nreturn x", []string{"if: never", "if: always"}},
		"call":       {"g()\nreturn x", []string{"call dropped"}},
		"assignment": {"a = b\nreturn x", []string{"= dropped"}},
		"definition": {"c := b\nreturn c != 0", []string{"!= negated"}},
		"count":      {"a++\nreturn x", []string{"++ dropped"}},
		"loop":       {"for a = 0; x; a++ { continue }\nreturn y", []string{"continue dropped"}},
		"case":       {"switch { case a == b: return x }\nreturn y", []string{"== negated", "case: never", "case: always"}},
		"value":      {"switch a { case b + 1: return x }\nreturn y", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &mutator{}
			out, err := m.mutate("p.go", []byte("package p\nfunc p(a, b int, x, y bool) bool {\n"+c.body+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), "p.go", out, 0); err != nil {
				t.Errorf("no program any more: %v\n%s", err, out)
			}
			var got []string
			for _, mutant := range m.mutants {
				got = append(got, mutant.Operator)
				if mutant.File != "p.go" || mutant.Line < 3 || mutant.Line > 4 {
					t.Errorf("it is said to be in %s:%d", mutant.File, mutant.Line)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("mutants %q, want %q\n%s", got, c.want, out)
			}
		})
	}
}

// A mutant is named by what it is, so that a review fits it wherever it stands, and one of several that look alike by its place
// among them; a mistake that is planted for simulations has none.
func TestNamesOfMutants(t *testing.T) {
	t.Parallel()
	m := &mutator{}
	_, err := m.mutate("p.go", []byte("package p\nfunc (t *T) p(a,\n b int) { a = b; a = b; if planted.Bug(\"x\") { a++ } }\n"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, mutant := range m.mutants {
		got = append(got, mutant.Name())
	}
	if want := []string{"T.p: = dropped: a = b", "T.p: = dropped: a = b (2)"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A part is repeated by its number; by itself it is another one each hour.
func TestShards(t *testing.T) {
	t.Parallel()
	for shard, want := range map[string][2]int{"2/3": {2, 3}, "auto/4": {3, 4}, "4/3": {}, "0/3": {}, "x": {}} {
		part, parts, err := parseShard(shard, time.Unix(2*3600+5, 0))
		if (err != nil) != (want == [2]int{}) || [2]int{part, parts} != want {
			t.Errorf("%s: %d of %d, %v", shard, part, parts, err)
		}
	}
}

// Reviews are strict: a key that nobody knows, a review without a reason, with two, or that stands there twice, is a mistake.
func TestReviews(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"[{file: a.go, mutant: x, equivalent: so}, {file: b.go, mutant: x, left: so}]": true,
		"[{file: a.go, mutant: x}]":                                              false,
		"[{file: a.go, mutant: x, left: so, equivalent: so}]":                    false,
		"[{file: a.go, mutant: x, left: so}, {file: a.go, mutant: x, left: so}]": false,
		"[{file: a.go, mutant: x, left: so, line: 3}]":                           false,
	} {
		file := filepath.Join(t.TempDir(), "reviews")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readReviews(file); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What CI fails by: survivors that nobody has reviewed, of enough mutants; and a whole run by a review that fits nothing.
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sum     score
		matched bool
		ok      bool
	}{
		"all are killed":      {score{tried: 40, killed: 40}, true, true},
		"many are reviewed":   {score{tried: 40, killed: 10, left: 30}, true, true},
		"many are not":        {score{tried: 40, killed: 30}, true, false},
		"few were tried":      {score{tried: 10, killed: 1}, true, true},
		"a review is too old": {score{tried: 40, killed: 40}, false, true},
	} {
		r := &round{
			began: time.Now(), subjects: []*subject{{sources: []string{"a.go"}, score: c.sum}},
			reviewed: []*review{{File: "a.go", matched: c.matched}, {File: "other.go"}},
		}
		if err := r.judge(85); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if err := r.judge(0); (err == nil) != c.matched {
			t.Errorf("%s, without a floor: %v", name, err)
		}
	}
}

// A whole run fails where tests notice too few mutants of one package, however many of another, and whatever is reviewed.
func TestWholeRunWantsEachPackage(t *testing.T) {
	t.Parallel()
	good, poor := score{tried: 1000, killed: 1000}, score{tried: 100, killed: 94, left: 6}
	for name, c := range map[string]struct {
		r  round
		ok bool
	}{
		"whole":     {round{whole: true}, false},
		"a part":    {round{}, true},
		"a line":    {round{whole: true, at: []string{"a.go:1"}}, true},
		"some time": {round{whole: true, limit: time.Minute}, true},
	} {
		c.r.began, c.r.subjects = time.Now(), []*subject{{score: good}, {score: poor}}
		if err := c.r.judge(0); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		c.r.subjects = c.r.subjects[:1]
		if err := c.r.judge(0); err != nil {
			t.Errorf("%s, without the poor one: %v", name, err)
		}
	}
}
