package reference

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sinceFile lists each key that Poolkeeper has added to Nodepool's format, below the section of
// CHANGELOG.md in which it came.
const sinceFile = "../../configs/effective/since.txt"

// sinces are the sections of CHANGELOG.md in which keys came.
type sinces struct {
	sections []string // of CHANGELOG.md, the newest first
	came     map[string]string
	asked    map[string]bool
}

// section is a heading of CHANGELOG.md: a version with its date, or what is not released.
var section = regexp.MustCompile(`(?m)^## (\S+)`)

// readSince reads the file, and what CHANGELOG.md has.
func readSince(t *testing.T) *sinces {
	t.Helper()
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sinceFile)
	if err != nil {
		t.Fatal(err)
	}
	s := &sinces{came: map[string]string{}, asked: map[string]bool{}}
	for _, m := range section.FindAllStringSubmatch(string(changes), -1) {
		s.sections = append(s.sections, m[1])
	}
	heading := ""
	for line := range strings.SplitSeq(string(text), "\n") {
		switch m := section.FindStringSubmatch(line); {
		case m != nil:
			heading = m[1]
			if !slices.Contains(s.sections, heading) {
				t.Errorf("%s: CHANGELOG.md has no section %s", sinceFile, heading)
			}
		case line == "" || strings.HasPrefix(line, "#"):
		case s.came[line] != "":
			t.Errorf("%s: %s comes twice", sinceFile, line)
		default:
			s.came[line] = heading
		}
	}
	return s
}

// of is the section in which a key came. UPDATE_GOLDEN=1 takes a new one for the newest's.
func (s *sinces) of(t *testing.T, key string) string {
	t.Helper()
	s.asked[key] = true
	if s.came[key] == "" {
		if os.Getenv("UPDATE_GOLDEN") == "" {
			t.Errorf("%s does not say since when there is %s; UPDATE_GOLDEN=1 puts it below %s", sinceFile, key, s.sections[0])
		}
		s.came[key] = s.sections[0]
	}
	return s.came[key]
}

// finish reports keys that there are no more, and writes the file where that is wanted.
func (s *sinces) finish(t *testing.T) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(s.came)) {
		if !s.asked[key] {
			t.Errorf("%s: there is no key %s of ours", sinceFile, key)
		}
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		return
	}
	var text strings.Builder
	text.WriteString("# The keys that Poolkeeper has added to Nodepool's format, below the section of CHANGELOG.md in which they came.\n" +
		"# A release renames the section here, too: docs/releasing.md.\n")
	for _, heading := range s.sections {
		var keys []string
		for key, came := range s.came {
			if came == heading {
				keys = append(keys, key)
			}
		}
		if len(keys) > 0 {
			text.WriteString("\n## " + heading + "\n\n" + strings.Join(slices.Sorted(slices.Values(keys)), "\n") + "\n")
		}
	}
	if err := os.WriteFile(sinceFile, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
