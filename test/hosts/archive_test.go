// Package hosts tests that the repository works where other people have it: what
// can be tested on this machine. The script beside it makes other machines.
package hosts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/test/lacks"
)

// tree is a small tree with the scripts of ours that ask git about it.
type tree struct{ dir string }

// newTree makes one in a path with a space, and puts it under git with a tag.
func newTree(t *testing.T) tree {
	t.Helper()
	tr := tree{filepath.Join(t.TempDir(), "a path")}
	for _, name := range []string{"Makefile", ".gitattributes", ".gitignore", "scripts/version", "scripts/check"} {
		content, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		tr.write(t, name, string(content))
	}
	tr.run(t, `chmod +x scripts/* && git init --quiet && git add --all &&
		git -c user.name=x -c user.email=x@example commit --quiet -m x && git tag v1.2.3`)
	return tr
}

func (tr tree) write(t *testing.T, name, content string) {
	t.Helper()
	file := filepath.Join(tr.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// try runs a command in the tree; nothing of the caller's git is in its environment.
func (tr tree) try(t *testing.T, command string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", command)
	cmd.Dir = tr.dir
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "MAKE") && !strings.HasPrefix(entry, "VERSION=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (tr tree) run(t *testing.T, command string) string {
	t.Helper()
	out, err := tr.try(t, command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// archive unpacks an archive of the tree.
func (tr tree) archive(t *testing.T) tree {
	t.Helper()
	return tr.archiveTo(t, filepath.Join(t.TempDir(), "an archive"))
}

// archiveWithin does so below a repository with another tag.
func (tr tree) archiveWithin(t *testing.T) tree {
	t.Helper()
	outer := tree{filepath.Join(t.TempDir(), "an outer repository")}
	outer.write(t, "README", "of something else")
	outer.run(t, `git init --quiet && git add --all &&
		git -c user.name=x -c user.email=x@example commit --quiet -m x && git tag v9.9.9`)
	return tr.archiveTo(t, filepath.Join(outer.dir, "inner"))
}

func (tr tree) archiveTo(t *testing.T, dir string) tree {
	t.Helper()
	tr.run(t, `mkdir "`+dir+`" && git archive HEAD | tar -x -C "`+dir+`"`)
	return tree{dir}
}

// asOther makes git believe that the clone is another user's.
const asOther = "export GIT_TEST_ASSUME_DIFFERENT_OWNER=1; "

// makesVersion is what make would link into the program.
const makesVersion = `make --dry-run build | grep -o 'app.Version=[^ ]*' | cut -d= -f2 | tr -d "'"`

func TestVersionOfEachTree(t *testing.T) {
	clone := newTree(t)
	bare := clone.archiveWithin(t)
	bare.run(t, `cp "`+clone.dir+`/scripts/version" scripts/`) // a copy of files, not an archive that git made
	for name, c := range map[string]struct {
		in   tree
		env  string
		want string
	}{
		"clone":                         {clone, "", "v1.2.3"},
		"clone of another owner":        {clone, asOther, "v1.2.3"},
		"archive in another repository": {clone.archiveWithin(t), "", "v1.2.3"},
		"archive":                       {clone.archive(t), "", "v1.2.3"},
		"given":                         {clone, "export VERSION=v7; ", "v7"},
		"copy in another repository":    {bare, "", "unknown"},
	} {
		t.Run(name, func(t *testing.T) { checkVersion(t, c.in, c.env, c.want) })
	}
	t.Run("changed clone", func(t *testing.T) { checkVersion(t, clone, "echo >>Makefile; ", "v1.2.3-dirty") })
	if said := bare.run(t, "scripts/version 2>&1 >/dev/null"); !strings.Contains(said, "neither a clone nor an archive") {
		t.Errorf("an unknown version is not explained: %q", said)
	}
}

func checkVersion(t *testing.T, in tree, env, want string) {
	t.Helper()
	out, err := in.try(t, "exec 2>/dev/null; "+env+makesVersion)
	if got := strings.TrimSpace(out); err != nil || got != want {
		t.Errorf("make would link version %q, want %q: %v", got, want, err)
	}
}

// The check finds the scripts wherever the tree lies, and says what is wrong with them.
func TestCheckOfEachTree(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		lacks.Skip(t, "no shellcheck: run scripts/prerequisites lint")
	}
	for name, c := range map[string]struct {
		in  tree
		env string
	}{
		"clone":                         {newTree(t), ""},
		"clone of another owner":        {newTree(t), asOther},
		"archive":                       {newTree(t).archive(t), ""},
		"archive in another repository": {newTree(t).archiveWithin(t), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := c.in.try(t, c.env+"scripts/check"); err != nil {
				t.Errorf("a good tree: %v\n%s", err, out)
			}
			c.in.write(t, "scripts/bad", "#!/bin/bash\necho $1\n")
			c.in.write(t, "bin/ignored", "#!/bin/bash\necho $1\n")
			out, err := c.in.try(t, c.env+"scripts/check")
			if err == nil || !strings.Contains(out, "scripts/bad: a script that is not executable") || !strings.Contains(out, "SC2086") {
				t.Errorf("a bad script: %v\n%s", err, out)
			}
			if strings.Contains(out, "ignored") {
				t.Errorf("what the build makes is checked, too:\n%s", out)
			}
		})
	}
}
