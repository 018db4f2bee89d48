package pages

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// runHere are the lines of pages that are run in this tree as they stand.
// What starts with "!" is run only where nothing may be skipped: it takes a minute or more.
var runHere = []string{"make build", "!make check", "go test ", "!make test PACKAGES=", "scripts/fuzz "}

// pagesRunHere are the pages of which that is true.
var pagesRunHere = []string{"docs/CONTRIBUTING.md", "docs/testing.md"}

// onlyUnit is the one package that `make check` tests here: `make test` runs the tests of
// all that scripts/units lists, and compiling them once more, without the race detector,
// takes minutes.
const onlyUnit = "./builder/plan"

// A command of docs/CONTRIBUTING.md or docs/testing.md that names a package, a test, a benchmark or a target
// that is gone fails here: a newcomer would meet it in the first ten minutes.
func TestContributing(t *testing.T) {
	t.Parallel()
	if out, ok := command(t, "scripts/prerequisites --check build lint test"); !ok {
		if os.Getenv(requireEnv) != "" {
			t.Fatalf("this machine lacks something:\n%s", out)
		}
		t.Skipf("this machine lacks something:\n%s", out)
	}
	ran := 0
	for _, b := range allBlocks(t) {
		if !slices.Contains(pagesRunHere, b.Page) {
			continue
		}
		for _, c := range b.Commands() {
			for _, beginning := range runHere {
				always, rare := strings.CutPrefix(beginning, "!")
				if !strings.HasPrefix(c.Bare(), always) || rare && os.Getenv(requireEnv) == "" {
					continue
				}
				ran++
				out, ok := command(t, c.Text, "UNITS="+onlyUnit)
				if !ok || ranNothing(out) || strings.Contains(c.Text, "-bench") && !strings.Contains(out, "ns/op") {
					t.Errorf("%s: success %t:\n%s", c, ok, out)
				}
			}
		}
	}
	if ran < 7 {
		t.Errorf("%d lines were run", ran)
	}
}

// What `make check` tests where nothing else is said: packages of pure code, and none that
// starts servers.
func TestUnits(t *testing.T) {
	out, ok := command(t, "scripts/units")
	units := strings.Fields(out)
	if !ok || len(units) < 30 || !slices.Contains(units, path.Join("poolkeeper", onlyUnit)) ||
		slices.Contains(units, "poolkeeper/zkmodel/recipe") || slices.Contains(units, "poolkeeper/test/e2e") {
		t.Errorf("scripts/units: success %t:\n%s", ok, out)
	}
}

// packageRan is what go test says of a package in which it ran something, now or when it
// was last asked the same.
var packageRan = regexp.MustCompile(`(?m)^ok\s+\S+\s+([0-9.]+s|\(cached\))$`)

// ranNothing reports whether go test has run nothing in any package.
func ranNothing(out string) bool {
	return strings.Contains(out, "no tests to run") && !packageRan.MatchString(out)
}

// Catches a line that is taken for good although its test is gone, and one that is
// refused as one of several packages has no such test, or as Go remembers its result.
func TestRanNothing(t *testing.T) {
	for out, want := range map[string]bool{
		"ok  \tpoolkeeper/zkmodel\t1.0s [no tests to run]\n":                                                true,
		"ok  \tpoolkeeper/zkmodel\t1.0s [no tests to run]\nok  \tpoolkeeper/zkmodel/recipe\t2.042s\n":       false,
		"ok  \tpoolkeeper/zkmodel/recipe\t2.042s\n":                                                         false,
		"ok  \tpoolkeeper/zkmodel\t(cached) [no tests to run]\n":                                            true,
		"ok  \tpoolkeeper/zkmodel\t(cached) [no tests to run]\nok  \tpoolkeeper/zkmodel/recipe\t(cached)\n": false,
	} {
		if got := ranNothing(out); got != want {
			t.Errorf("%q: %t", out, got)
		}
	}
}
