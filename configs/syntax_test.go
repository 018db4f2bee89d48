package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A key that is wrong is shown where it stands, not where its value begins.
func TestLineOfKey(t *testing.T) {
	c := load(t, site+`
nobody-knows:
  # a remark

  - one
providers:
  - name: north
    cloud: x
    pool:
      # another

      main: 1
    pools: &pools

      - name: main
  - name: south
    cloud: y
    pools: *pools
    rate: 1.0
    rate:

      1.0
`)
	want := []string{
		"7: nobody-knows: unknown key",
		`14: providers[north].pool: unknown key (did you mean "pools"?)`,
		"25: providers[south].rate: the key appears twice in one mapping, the last one counts",
	}
	for i, warning := range c.Warnings {
		c.Warnings[i] = warning[strings.LastIndexByte(warning[:strings.Index(warning, ": ")], ':')+1:]
	}
	if got := strings.Join(c.Warnings, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("warnings\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	got := loadFails(t, "diskimages:\n\n\n  debian: 1\nlabels: &l\n  small: 1\nproviders: *l\n", false)
	for _, want := range []string{":1: diskimages: ", ":5: labels: "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q misses %q", got, want)
		}
	}
}

// Whatever is no YAML is told with its line.
func TestLineOfWhatIsNoYAML(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: \x00\n":                     "2: a NUL character is not allowed, at byte 8",
		"a: 1\nb: \xff\n":                     "2: the text is not UTF-8, at byte 8",
		"\xef\xbb\xbfa: 1\nb: \x07\n":         "2: a control character is not allowed, at byte 11",
		"\x1f\x8b\x08\x00\x00":                "1: the file is compressed with gzip, at byte 0",
		"\xff\xfea\x00":                       "1: the text is not UTF-8, at byte 0",
		"%YAML 2.0\n---\na: 1\n":              "1: found incompatible YAML document",
		"a:\n  - b\n c: d\n":                  "3: did not find expected key, in what begins at line 1",
		"# x\n\na:\n  b: 1\n c: d\n":          "5: did not find expected key, in what begins at line 3",
		"a: 1\nb c\nd: 1\n":                   "2: could not find expected ':' behind the key, or the end of its quotation",
		"a: b: c\n":                           "1: mapping values are not allowed in this context",
		"a:\n\tb: 1\n":                        "2: found character that cannot start any token",
		"a:\n  b: [1,\n  {2}}\nc: 1\n":        "3: did not find expected ',' or ']', in what begins at line 2",
		"a: 1\nb: \"\\q\"\n":                  "2: found unknown escape character",
		"a: \"1\n\n\nb: 1\n":                  "4: found unexpected end of stream, in what begins at line 1",
		"a: 1\n\n\nb: *nobody\n":              "4: the anchor is not defined; text that begins with * needs quotes",
		"a: &x 1\nb: |\n c\n---\nimages: 2\n": "4: a second document begins here; a configuration is one document",
		"images-dir: a\n---\nb: [\n":          "3: did not find expected node content",
		"a: 1\n---\nb: 2\n---\n[":             "2: a second document begins here",
	} {
		if got := loadFails(t, text, false); !strings.Contains(got, "nodepool.yaml:"+want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What PyYAML reads and yaml.v3 does not.
func TestYAMLThatNodepoolReads(t *testing.T) {
	for text, want := range map[string]string{
		"%YAML 1.2\n---\n":          "/images",
		"# x\n%YAML 1.1\n---\n":     "/images",
		"# x\n\n%YAML 1.3 # \n---":  "/images",
		`images-dir: "\/a\/b\\/c"`:  `/a/b\/c`,
		`images-dir: '\/a' # "\/"`:  `\/a`,
		`images-dir: "\/%YAML 1.2"`: "/%YAML 1.2",
	} {
		if !strings.Contains(text, "images-dir") {
			text += site
		}
		if got := load(t, text+"\n").ImagesDir; got != want {
			t.Errorf("%q: images-dir %q, want %q", text, got, want)
		}
	}
}

// Mistakes at all places of a long file are found where PyYAML, Nodepool's
// parser, finds them: at its line, or at the beginning that it names.
func TestLinesAgreeWithPyYAML(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		lacking(t, "python3")
	}
	texts := brokenTexts(t, 160)
	input, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `
import json, sys, yaml
out = []
for text in json.load(sys.stdin):
    marks = []
    try:
        yaml.safe_load(text)
    except yaml.MarkedYAMLError as e:
        marks = [m.line + 1 for m in (e.problem_mark, e.context_mark) if m]
    except Exception:
        pass
    out.append(marks)
print(json.dumps(out))`)
	cmd.Stdin = strings.NewReader(string(input))
	output, err := cmd.CombinedOutput()
	if strings.Contains(string(output), "No module named") {
		lacking(t, "yaml in python3")
	}
	var theirs [][]int
	if err := errors.Join(err, json.Unmarshal(output, &theirs)); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	compared, far := 0, 0
	for i, text := range texts {
		_, _, err := decodeYAML(text)
		broken, ok := errors.AsType[*syntaxError](err)
		if !ok || len(theirs[i]) == 0 {
			continue
		}
		compared++
		distance := 1000
		for _, line := range theirs[i] {
			distance = min(distance, max(line-broken.line, broken.line-line))
		}
		if distance > 1 {
			far++
			t.Logf("line %d, theirs %v: %s", broken.line, theirs[i], broken.message)
		}
	}
	t.Logf("%d compared, %d off by two lines or more", compared, far)
	if compared < 80 || far > compared/50 {
		t.Errorf("%d of %d are off by two lines or more", far, compared)
	}
}

// brokenTexts are copies of the longest sample, each with one mistake.
func brokenTexts(t *testing.T, count int) []string {
	t.Helper()
	content, err := os.ReadFile("openstack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var texts []string
	for len(texts) < count {
		lines := strings.Split(string(content), "\n")
		i := random.IntN(len(lines))
		line := lines[i]
		if strings.TrimSpace(line) == "" || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		at := random.IntN(len(line))
		lines[i] = []string{
			line[:at] + string(`"'[{]}&*!|%@`[random.IntN(12)]) + line[at:],
			" " + line, line[1:], "\t" + line,
			strings.Replace(line, ":", "", 1), strings.Replace(line, "- ", "-", 1),
			fmt.Sprintf("%s: x", line),
		}[random.IntN(7)]
		texts = append(texts, strings.Join(lines, "\n"))
	}
	return texts
}
