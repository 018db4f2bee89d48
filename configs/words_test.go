package configs

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestSplitWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                 {},
		" a  b\tc\n":       {"a", "b", "c"},
		`a\ b 'c d' "e f"`: {"a b", "c d", "e f"},
		`'' ""`:            {"", ""},
		`"a\"b\\c\d"`:      {`a"b\c\d`},
		`'a\b'`:            {`a\b`},
		`a'b'"c"d`:         {"abcd"},
		`\'`:               {"'"},
		"ä 'ö ü'":          {"ä", "ö ü"},
	} {
		got, err := SplitWords(line)
		if err != nil || strings.Join(got, "|") != strings.Join(want, "|") || len(got) != len(want) {
			t.Errorf("%q: got %q, %v", line, got, err)
		}
	}
	for _, bad := range []string{`a "b`, `a 'b`, `a \`} {
		if got, err := SplitWords(bad); err == nil {
			t.Errorf("%q: got %q", bad, got)
		}
	}
}

// lacking ends a test for which this machine lacks something; where all must run, as in CI, it fails.
func lacking(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("POOLKEEPER_REQUIRE_E2E") != "" {
		t.Fatalf("there is no %s", what)
	}
	t.Skipf("there is no %s", what)
}

// Mistakes: a dib-cmd that Nodepool runs is split otherwise, or refused, because a shell would
// expand, comment or end something there; Python's own splitting is asked.
func TestSplitWordsAgreesWithShlex(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		lacking(t, "python3")
	}
	lines := []string{
		`build $HOME ${X:-y} $(id) x`, "build `id`", `a;b`, `a # b`, `#a`, `a&b|c>d<e`, `(a)`, `{a,b}`, `~/x *.img ?`,
		"a\\\nb", `$'a\n'`, `x='a b' c`, `"a\$b\` + "`" + `c"`, `"a\` + "\n" + `b"`, `!a`, "a\vb\fc", "a\u00a0b\u2003c", `''`, `a''"" ''`,
	}
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab ' ' \"\" \\\\ $#;`\t\r\nü%{}")
	for range 5000 {
		line := make([]rune, random.IntN(12))
		for i := range line {
			line[i] = letters[random.IntN(len(letters))]
		}
		lines = append(lines, string(line))
	}
	input, err := json.Marshal(lines)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import json, shlex, sys
def split(line):
    try:
        return shlex.split(line)
    except ValueError:
        return None
print(json.dumps([split(line) for line in json.load(sys.stdin)]))`)
	cmd.Stdin = strings.NewReader(string(input))
	output, err := cmd.CombinedOutput()
	var theirs [][]string
	if err := errors.Join(err, json.Unmarshal(output, &theirs)); err != nil || len(theirs) != len(lines) {
		t.Fatalf("%v: %s", err, output)
	}
	for i, line := range lines {
		ours, err := SplitWords(line)
		if refused := theirs[i] == nil; refused != (err != nil) || !slices.Equal(ours, theirs[i]) {
			t.Errorf("%q: %q, %v; shlex says %q", line, ours, err, theirs[i])
		}
	}
}
