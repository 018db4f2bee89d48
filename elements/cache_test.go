package elements_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maker stands in for make-base: a tree made with the umask that it inherits, and
// a note of each time that it was called.
const maker = `#!/bin/bash
set -eu
if [ "$1" = --depends ]; then cat "$OUT/depends"; exit; fi
echo once >>"$OUT/made"
[ ! -e "$OUT/broken" ] || exit 1
mkdir -p "$1"/{etc/dib-manifests,usr/bin,root}
chmod 700 "$1/root"
echo 'bash 5.2' >"$1/etc/dib-manifests/packages"
echo '#!/bin/sh' >"$1/usr/bin/hello"
chmod +x "$1/usr/bin/hello"
`

// cache is a cached-root with a maker of its own.
type cache struct{ dir string }

func newCache(t *testing.T) cache {
	t.Helper()
	c := cache{t.TempDir()}
	if err := os.WriteFile(c.file("make-base"), []byte(maker), 0o755); err != nil {
		t.Fatal(err)
	}
	c.dependOn(t, "sources of bookworm")
	return c
}

func (c cache) file(name string) string { return filepath.Join(c.dir, name) }

func (c cache) dependOn(t *testing.T, what string) {
	t.Helper()
	if err := os.WriteFile(c.file("depends"), []byte(what), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is cached-root, run under an umask to fill a tree.
func (c cache) command(t *testing.T, tree, umask string, env ...string) *exec.Cmd {
	t.Helper()
	script, err := filepath.Abs("cached-root/bin/cached-root")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `umask "$1"; exec "$2" tree 7 "$3" bash`, "-",
		umask, script, c.file("make-base"))
	cmd.Env = append(os.Environ(), append(env,
		"TARGET_ROOT="+tree, "TMP_BUILD_DIR="+c.dir, "DIB_IMAGE_CACHE="+c.dir, "OUT="+c.dir)...)
	return cmd
}

// fill runs it and returns the tree and what was said.
func (c cache) fill(t *testing.T, umask string, env ...string) (tree, said string) {
	t.Helper()
	tree = t.TempDir()
	out, err := c.command(t, tree, umask, env...).CombinedOutput()
	if err != nil {
		t.Fatalf("cached-root: %v\n%s", err, out)
	}
	return tree, string(out)
}

// made is how many times the tree was made.
func (c cache) made(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(c.file("made"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "once")
}

// archive is the stored tree.
func (c cache) archive(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(c.file("cached-root/tree-*.tar"))
	if err != nil || len(found) == 0 {
		t.Fatalf("stored trees: %v, %v", found, err)
	}
	return found[len(found)-1]
}

// openToAll fails unless every user of an image can reach what is in the tree.
func openToAll(t *testing.T, tree string) {
	t.Helper()
	for name, want := range map[string]os.FileMode{
		".": 0o755, "etc": 0o755, "usr": 0o755, "usr/bin": 0o755, "usr/bin/hello": 0o755,
		"etc/dib-manifests/packages": 0o644, "root": 0o700,
	} {
		info, err := os.Stat(filepath.Join(tree, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
}

// A maker that closes folders itself is told so, and nothing is stored.
func TestClosedTreeIsNotStored(t *testing.T) {
	for _, folder := range []string{"/", "/etc", "/usr/bin"} {
		c := newCache(t)
		closing := strings.Replace(maker, "chmod +x", `chmod 700 "$1`+folder+`"; chmod +x`, 1)
		if err := os.WriteFile(c.file("make-base"), []byte(closing), 0o755); err != nil {
			t.Fatal(err)
		}
		said, err := c.command(t, t.TempDir(), "022").CombinedOutput()
		if want := "cannot enter: " + folder + " drwx------"; err == nil || !strings.Contains(string(said), want) {
			t.Errorf("closed %q: %v, it said %q, want %q", folder, err, said, want)
		}
		if found, err := filepath.Glob(c.file("cached-root/*.tar")); err != nil || len(found) > 0 {
			t.Errorf("closed %q: stored %v, %v", folder, found, err)
		}
	}
}

// The umask of whoever starts a build is in no image, and in none that is made
// of the same tree later.
func TestTreeIsMadeForAllUsers(t *testing.T) {
	c := newCache(t)
	for _, umask := range []string{"077", "022", "027"} {
		tree, _ := c.fill(t, umask)
		openToAll(t, tree)
	}
	if n := c.made(t); n != 1 {
		t.Errorf("made %d times, want once", n)
	}
}

// What lies in the cache was put there by an earlier version, or was damaged since.
func TestBadTreeIsNotUsed(t *testing.T) {
	for name, damage := range map[string]string{
		"closed folders": `cd "$OUT" && mkdir bad && tar -xf "$1" -C bad && chmod 700 bad/etc && tar -cf "$1" -C bad .`,
		"closed root":    `cd "$OUT" && mkdir bad && tar -xf "$1" -C bad && chmod 700 bad && tar -cf "$1" -C bad .`,
		"cut off":        `truncate -s 2000 "$1"`,
		"empty":          `: >"$1"`,
		"no archive":     `head -c 20000 /dev/urandom >"$1"`,
		"no packages":    `: >"${1%.tar}.packages"`,
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t)
			c.fill(t, "022")
			cmd := exec.CommandContext(t.Context(), "bash", "-c", damage, "-", c.archive(t))
			cmd.Env = append(os.Environ(), "OUT="+c.dir)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("damage: %v\n%s", err, out)
			}
			tree, said := c.fill(t, "022")
			openToAll(t, tree)
			if n := c.made(t); n != 2 {
				t.Errorf("made %d times, want twice; it said %q", n, said)
			}
			if !strings.Contains(said, "is not used") {
				t.Errorf("it does not say why the tree is made anew: %q", said)
			}
		})
	}
}

// A tree is used for what it was made for only.
func TestTreeFollowsWhatItDependsOn(t *testing.T) {
	c := newCache(t)
	steps := []struct {
		name string
		do   func()
		env  string
		made int
	}{
		{"first", func() {}, "", 1},
		{"again", func() {}, "", 1},
		{"another release of the host", func() { c.dependOn(t, "sources of trixie") }, "", 2},
		{"another release of the image", func() {}, "DIB_RELEASE=trixie", 3},
		{"the first once more", func() { c.dependOn(t, "sources of bookworm") }, "", 3},
	}
	for _, step := range steps {
		step.do()
		c.fill(t, "022", step.env)
		if n := c.made(t); n != step.made {
			t.Errorf("%s: made %d times, want %d", step.name, n, step.made)
		}
	}
}
