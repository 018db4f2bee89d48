package journey

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLastWarningOfTheLogs(t *testing.T) {
	dir := t.TempDir()
	if got := lastWarning(dir); got != "" {
		t.Errorf("of no log: %q", got)
	}
	for name, text := range map[string]string{
		"dev.log":        "A development environment\n2026-11-22T03:00:01.000Z [WARN]  poolkeeper.builder: first\n2026-11-22T03:00:03.000Z [ERROR] poolkeeper.builder: No build: little room\n",
		"launcher-1.log": "2026-11-22T03:00:02.000Z [WARN]  poolkeeper.launcher: second\n2026-11-22T03:00:04.000Z [INFO]  poolkeeper.launcher: fine\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := lastWarning(dir), "[ERROR] poolkeeper.builder: No build: little room"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := New("", dir).State(); !strings.Contains(got, "little room") {
		t.Errorf("before the tree is followed: %q", got)
	}
}

// A builder that has a reason against the first build will not begin it; a lock that
// another holds is none.
func TestObstacle(t *testing.T) {
	const none = `[{"image": "tiny", "verdicts": [{"subject": "build", "rule": "missing", "verdict": "yes", "detail": "no ready build"}]}]`
	for text, want := range map[string]string{
		none:      "",
		"no JSON": "",
		`[{"verdicts": [{"subject": "build", "rule": "disk space", "verdict": "no", "detail": "the disk is full: 60 MiB free, about 1.0 GiB needed"}]}]`: "disk space: the disk is full: 60 MiB free, about 1.0 GiB needed",
		`[{"verdicts": [{"subject": "build", "rule": "build lock", "verdict": "no"}, {"subject": "upload", "verdict": "no"}]}]`:                          "",
	} {
		if got := obstacleIn([]byte(text)); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
