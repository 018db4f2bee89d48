package release_test

import (
	"os/exec"
	"testing"

	"poolkeeper/test/release"
)

// Without the history there is nothing to build, and that is no error: tests of records stand in.
// Mistakes: a test that fails, or passes by itself, in a source archive or a shallow clone.
func TestWithoutHistory(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"source archive": func(*testing.T, string) {},
		"shallow clone": func(t *testing.T, dir string) {
			t.Helper()
			git := exec.CommandContext(t.Context(), "sh", "-ec", `cd "$1" && git init -q && git -c user.name=n -c user.email=m commit -q --allow-empty -m tip`, "sh", dir)
			if out, err := git.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		},
		"no git": func(t *testing.T, _ string) { t.Helper(); t.Setenv("PATH", t.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			t.Chdir(dir)
			t.Setenv("GIT_CEILING_DIRECTORIES", dir+"/..")
			if program, err := release.Build(t.Context(), t.TempDir()); program != "" || err != nil {
				t.Errorf("built %q, %v", program, err)
			}
		})
	}
}
