package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
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
