package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A comment that cites a section of docs/wire.md which was renumbered or never written, or
// a "wire document" that nobody can find, fails here.
func TestSectionsThatAreCited(t *testing.T) {
	sections := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^##+ §([\d.]+)`).FindAllStringSubmatch(page(t, "docs/wire.md").text, -1) {
		sections[m[1]] = true
	}
	if len(sections) < 10 {
		t.Fatalf("docs/wire.md has %d sections", len(sections))
	}
	cited := 0
	for _, f := range tree(t) {
		if f.path == "test/docs/citations_test.go" || f.path == "CHANGELOG.md" {
			continue
		}
		for _, at := range regexp.MustCompile(`(RFC \d+ )?§(\d+(?:\.\d+)*)`).FindAllStringSubmatchIndex(f.text, -1) {
			number := f.text[at[4]:at[5]]
			if at[2] >= 0 { // of an RFC
				continue
			}
			cited++
			if !sections[number] {
				t.Errorf("%s:%d: docs/wire.md has no §%s", f.path, f.lineOf(at[0]), number)
			}
		}
		if at := regexp.MustCompile(`(?i)wire document`).FindStringIndex(f.text); at != nil {
			t.Errorf("%s:%d: say docs/wire.md and the section", f.path, f.lineOf(at[0]))
		}
	}
	if cited < 30 {
		t.Errorf("%d citations only: does the pattern still match?", cited)
	}
}

// A wish that is cited and not listed, or two wishes with one number, fail here.
func TestWishesThatAreCited(t *testing.T) {
	const list = "docs/better.md"
	wishes := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-F]?\d+) \|`).FindAllStringSubmatch(page(t, list).text, -1) {
		if wishes[m[1]] {
			t.Errorf("%s: two wishes have the number %s", list, m[1])
		}
		wishes[m[1]] = true
	}
	if len(wishes) < 90 {
		t.Fatalf("%s has %d numbered wishes", list, len(wishes))
	}
	for _, f := range tree(t, ".go", ".md") {
		for _, at := range regexp.MustCompile(`\b[Ww]ish ([A-F]?\d+)\b`).FindAllStringSubmatchIndex(f.text, -1) {
			if number := f.text[at[2]:at[3]]; !wishes[number] {
				t.Errorf("%s:%d: %s has no wish %s", f.path, f.lineOf(at[0]), list, number)
			}
		}
	}
}

// A wish that is left out, and an answer that says yes without a test, a page or a figure, fail here.
// That the tests exist is for TestTestsThatAreCited to see.
func TestWishesAreAnswered(t *testing.T) {
	const list = "docs/better.md"
	text := page(t, list).text
	last := map[string]int{}
	shown := regexp.MustCompile("`(?:Test|Benchmark)[A-Z]\\w*|`[\\w./-]+(?:\\.txtar|\\.go|\\.md|/\\w+)`|\\]\\(|\\d+(?:\\.\\d+)? (?:ms|s|MiB)\\b|\\d/s\\b|\\b\\d{3}\\b")
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-F]?)(\d+) \| .* \| (.*) \|$`).FindAllStringSubmatch(text, -1) {
		number, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		last[m[1]] = max(last[m[1]], number)
		if !strings.HasPrefix(m[3], "**No") && !shown.MatchString(m[3]) {
			t.Errorf("%s: wish %s%s: nothing shows the answer: %s", list, m[1], m[2], m[3])
		}
		if again := regexp.MustCompile(`^\*\*(Yes|Done|Partly|No)\b`); last[""] < 52 && !again.MatchString(m[3]) {
			t.Errorf("%s: wish %s%s has no answer: %s", list, m[1], m[2], m[3])
		}
	}
	for prefix, count := range last {
		for number := 1; number <= count; number++ {
			if !strings.Contains(text, fmt.Sprintf("\n| %s%d |", prefix, number)) {
				t.Errorf("%s: there is no wish %s%d", list, prefix, number)
			}
		}
	}
	if last["A"] < 10 || last["B"] < 20 || last[""] < 74 || last["F"] < 8 {
		t.Errorf("the test sees only %v", last)
	}
}

// resolve reports whether what a file cites is there, seen from the top or from the
// file's own folder.
func resolve(f file, cited string) bool {
	return there(cited) || there(path.Join(path.Dir(f.path), cited))
}

// prose is a page with blanks for its fenced blocks, line for line: in Go, f[T](x) is no
// link.
func prose(text string) string {
	fenced := regexp.MustCompile("(?ms)^ *```.*?^ *```")
	return fenced.ReplaceAllStringFunc(text, func(block string) string {
		return regexp.MustCompile(`[^\n]`).ReplaceAllStringFunc(block, func(r string) string { return strings.Repeat(" ", len(r)) })
	})
}

// A page that was renamed or never written, cited by a comment or by another page, or
// behind a link, fails here.
func TestPagesThatAreCited(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]+?)(?:#[^)]*)?\)`)
	name := regexp.MustCompile(`[\w.][\w./-]*\.md\b`)
	cited := 0
	for _, f := range tree(t, ".go", ".md", ".yaml") {
		if f.path == "CHANGELOG.md" || strings.HasPrefix(f.path, "test/docs/") || strings.HasPrefix(f.path, "test/pages/") {
			continue // what was, and names that tests make up
		}
		for _, at := range name.FindAllStringIndex(f.text, -1) {
			cited++
			one := f.text[at[0]:at[1]]
			everyFolders := one == "DESIGN.md" && strings.HasSuffix(f.path, ".md")
			ofALink := strings.HasPrefix(f.text[at[1]:], "](") // which is judged below
			if !everyFolders && !ofALink && !resolve(f, one) {
				t.Errorf("%s:%d: there is no %s", f.path, f.lineOf(at[0]), one)
			}
		}
		if !strings.HasSuffix(f.path, ".md") {
			continue
		}
		for _, at := range link.FindAllStringSubmatchIndex(prose(f.text), -1) {
			one := f.text[at[2]:at[3]]
			if !strings.Contains(one, "://") && !there(path.Join(path.Dir(f.path), one)) {
				t.Errorf("%s:%d: the link leads to %s, which is not there", f.path, f.lineOf(at[0]), one)
			}
		}
	}
	if cited < 80 {
		t.Errorf("%d citations only: does the pattern still match?", cited)
	}
}

// A test that a page names, and that was renamed or removed, fails here.
func TestTestsThatAreCited(t *testing.T) {
	tests := map[string]bool{}
	for _, f := range tree(t, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`).FindAllStringSubmatch(f.text, -1) {
			tests[m[1]] = true
		}
	}
	cited := 0
	for _, f := range tree(t, ".md") {
		if f.path == "CHANGELOG.md" {
			continue
		}
		for _, at := range regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w*)[`/]").FindAllStringSubmatchIndex(f.text, -1) {
			cited++
			if one := f.text[at[2]:at[3]]; !tests[one] {
				t.Errorf("%s:%d: there is no %s", f.path, f.lineOf(at[0]), one)
			}
		}
	}
	if cited < 100 {
		t.Errorf("%d tests are cited only: does the pattern still match?", cited)
	}
}

// A source file or folder that a page names, and that was moved or removed, fails here.
func TestFilesThatAreCited(t *testing.T) {
	const folders = "builder|cmd|configs|docs|elements|launcher|providers|scripts|test|web|zkmodel|\\.ci"
	file := regexp.MustCompile("`([\\w./-]+\\.(?:go|txtar)|(?:" + folders + ")/[\\w./-]+)`")
	cited := 0
	for _, f := range tree(t, ".md") {
		if f.path == "CHANGELOG.md" {
			continue
		}
		for _, at := range file.FindAllStringSubmatchIndex(f.text, -1) {
			cited++
			if one := f.text[at[2]:at[3]]; !resolve(f, one) {
				t.Errorf("%s:%d: there is no %s", f.path, f.lineOf(at[0]), one)
			}
		}
	}
	if cited < 100 {
		t.Errorf("%d files are cited only: does the pattern still match?", cited)
	}
}

// The package has the pages, and all below docs that they link to or show. Mistake: a page on a
// host without its picture, or with a link that leads nowhere.
func TestPackageHasWhatItsPagesLinkTo(t *testing.T) {
	build, err := os.ReadFile("../../scripts/packaging/deb/build")
	if err != nil {
		t.Fatal(err)
	}
	find := regexp.MustCompile(`(?m)^find docs [^|]*`).FindString(string(build))
	list := exec.CommandContext(t.Context(), "sh", "-c", find)
	list.Dir = "../.."
	packed, err := list.Output()
	if err != nil || find == "" {
		t.Fatalf("%q: %v", find, err)
	}
	link := regexp.MustCompile(`\]\(([^)#\s]+?)(?:#[^)]*)?\)`)
	text := regexp.MustCompile(`(?m)^readonly internal='(.*)'$`).FindSubmatch(build) // links to these are text there
	if text == nil {
		t.Fatal("the build has no pattern of internal pages")
	}
	internal := regexp.MustCompile(`(^|/)` + string(text[1]))
	for _, f := range tree(t, ".md") {
		if !strings.HasPrefix(f.path, "docs/") || !strings.Contains(string(packed), f.path+"\n") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(prose(f.text), -1) {
			to := path.Join(path.Dir(f.path), m[1])
			if strings.HasPrefix(to, "docs/") && path.Ext(to) != "" && !strings.HasPrefix(to, "docs/systemd/") && !internal.MatchString(to) && !strings.Contains(string(packed), to+"\n") {
				t.Errorf("%s links to %s, which the package lacks", f.path, to)
			}
		}
	}
}
