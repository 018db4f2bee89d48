package pages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// command runs a line of bash at the top of the tree, with some variables changed, and
// returns what it prints and whether it succeeded.
func command(t *testing.T, line string, env ...string) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Dir = top
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// withoutGo is a PATH that has all that this one's system folders have, but no Go.
func withoutGo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{"/usr/bin", "/usr/sbin", "/bin", "/sbin"} {
		programs, err := filepath.Glob(folder + "/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range programs {
			if name := filepath.Base(program); name != "go" && name != "gofmt" {
				_ = os.Symlink(program, filepath.Join(dir, name)) // the first of a name counts
			}
		}
	}
	return dir
}

// Without Go each target says so first of all, and where to get it; none dies of a
// command that is not found, and none installs anything before.
func TestEveryTargetSaysThatGoIsMissing(t *testing.T) {
	path := "PATH=" + withoutGo(t)
	for _, target := range []string{"demo", "test", "test-openstack", "chaos", "check", "lint", "fmt", "bench", "build"} {
		out, ok := command(t, "make "+target, path)
		if ok || !strings.Contains(out, "there is no go on PATH") || !strings.Contains(out, "https://go.dev/doc/install") ||
			strings.Contains(out, "command not found") || strings.Contains(out, "prerequisites: installing") {
			t.Errorf("make %s: success %t:\n%s", target, ok, out)
		}
	}
}

// All that is missing is told at once, packages with the command that installs them.
func TestAllThatIsMissingIsToldAtOnce(t *testing.T) {
	fake := t.TempDir() // a machine where nothing is installed
	for _, name := range []string{"dpkg-query", "apt-get"} {
		if err := os.WriteFile(filepath.Join(fake, name), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	blank := filepath.Join(t.TempDir(), "a b")
	if err := os.Mkdir(blank, 0o700); err != nil {
		t.Fatal(err)
	}
	out, ok := command(t, "make demo", "PATH="+fake+":"+withoutGo(t), "TMPDIR="+blank)
	for _, want := range []string{"no go on PATH", "apt-get install --no-install-recommends ", " ca-certificates ", " zookeeper", blank + " has a blank"} {
		if ok || !strings.Contains(out, want) {
			t.Errorf("success %t, want %q in\n%s", ok, want, out)
		}
	}
}

// A module cache that lacks something, and a proxy that is off, is one thing that is
// missing, and not a line a package.
func TestModulesThatCannotBeHad(t *testing.T) {
	out, ok := command(t, "make build", "GOPROXY=off", "GOMODCACHE="+t.TempDir(), "GOFLAGS=-modcacherw")
	if ok || !strings.Contains(out, "GOPROXY is off") || !strings.Contains(out, "go mod download") || strings.Count(out, "\n") > 6 {
		t.Errorf("success %t:\n%s", ok, out)
	}
}

// The race detector is linked with cgo, whatever the environment says.
func TestRaceWithoutCgo(t *testing.T) {
	if out, ok := command(t, "scripts/prerequisites --check test"); !ok {
		t.Skipf("this machine lacks something:\n%s", out)
	}
	if out, ok := command(t, "make test PACKAGES=./elements TESTFLAGS='-run ^$'", "CGO_ENABLED=0"); !ok {
		t.Errorf("make test:\n%s", out)
	}
}

// The tools are built where the path of the clone has a blank, too.
func TestToolsInAPathWithABlank(t *testing.T) {
	if out, ok := command(t, "go -C scripts/tools list -deps gotest.tools/gotestsum"); !ok {
		t.Skipf("no modules of the tools here:\n%s", out)
	}
	clone := filepath.Join(t.TempDir(), "a b")
	if out, ok := command(t, `mkdir "$CLONE" && cp -r Makefile scripts "$CLONE" && make -C "$CLONE" bin/gotestsum`, "CLONE="+clone); !ok {
		t.Error(out)
	}
	if _, err := os.Stat(filepath.Join(clone, "bin/gotestsum")); err != nil {
		t.Error(err)
	}
}

// What a demo could not work with is told before anything is built.
func TestDemoWithoutItsNeeds(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	if out, ok := command(t, "scripts/prerequisites --check demo"); !ok {
		t.Skipf("this machine lacks something:\n%s", out)
	}
	dir := t.TempDir()
	for name, c := range map[string]struct{ mount, want string }{
		"no loop devices": {`mount --bind /dev/null /dev/full; mount --bind /etc/hostname /dev/loop-control`, "no /dev/loop-control"},
		"noexec":          {`mount -t tmpfs -o noexec t .; export TMPDIR=$PWD`, "no program runs in " + dir},
		"little room":     {`mount -t tmpfs -o size=64m t .; export TMPDIR=$PWD`, dir + " has 64 MB free"},
		"no such folder":  {`export TMPDIR=none`, "TMPDIR is none"},
		"relative":        {`mount -t tmpfs -o size=64m t .; cd ..; export TMPDIR="${OLDPWD##*/}"`, dir + " has 64 MB free"},
	} {
		out, ok := command(t, `top=$PWD; unshare --mount bash -euc 'cd "$1"; `+c.mount+`; exec "$2/scripts/prerequisites" demo' - "$DIR" "$top"`, "DIR="+dir)
		if ok || !strings.Contains(out, c.want) {
			t.Errorf("%s: success %t, want %q:\n%s", name, ok, c.want, out)
		}
	}
}

// Where sudo prints a remark with each call, no image can be built: diskimage-builder takes
// it for a part of the loop device's name, and ends with "/dev/loop0 does not exist and no
// size was specified". That is told before anything is built or installed, with the line
// that mends it, and only to who builds images. It would catch a check
// that spares root, whom sudo tells as well, or that asks of everybody who compiles.
func TestHostWithoutAName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nsswitch.conf"), []byte("hosts: files\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, remark := range map[string]string{
		"sudo":  "echo sudo: policy plugin complains >&2",
		"quiet": "exit 0",
		"asks":  "echo sudo: a password is required >&2; exit 1",
	} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "sudo"), []byte("#!/bin/sh\n"+remark+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const (
		nameless = `mount --bind "$DIR/nsswitch.conf" /etc/nsswitch.conf; hostname builder1; `
		mend     = "echo '127.0.1.1 builder1' >>/etc/hosts"
	)
	for _, c := range []struct{ host, group, want, not string }{
		{nameless, "demo", mend, "prerequisites: installing"},
		{nameless, "test", mend, "prerequisites: installing"},
		{nameless, "build", "", mend},
		{nameless, "lint", "", mend},
		{`echo 127.0.1.1 builder1 >"$DIR/hosts"; mount --bind "$DIR/hosts" /etc/hosts; ` + nameless, "demo", "", "builder1"},
		{`PATH="$DIR/sudo:$PATH"; `, "demo", "policy plugin complains", "prerequisites: installing"},
		{`PATH="$DIR/asks:$PATH"; `, "demo", "", "a password"},
		{`PATH="$DIR/quiet:$PATH"; `, "demo", "", "sudo that prints"},
	} {
		out, _ := command(t, `unshare --mount --uts bash -euc '`+c.host+`exec scripts/prerequisites --check "$0"' `+c.group, "DIR="+dir)
		if !strings.Contains(out, c.want) || strings.Contains(out, c.not) {
			t.Errorf("%s%s: want %q, not %q:\n%s", c.host, c.group, c.want, c.not, out)
		}
	}
	if out, ok := command(t, `unshare --mount --uts bash -euc '`+nameless+`exec make demo'`, "DIR="+dir); ok || !strings.Contains(out, mend) {
		t.Errorf("make demo: success %t:\n%s", ok, out)
	}
}

// A run of the tests prints its progress while no package ends.
func TestProgressOfTests(t *testing.T) {
	clone := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":          "module example\n\ngo 1.26\n",
		"quick/a_test.go": "package quick\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestQuick(*testing.T) { time.Sleep(15 * time.Second) }\n",
		"slow/a_test.go":  "package slow\n\nimport (\n\t\"testing\"\n\t\"time\"\n)\n\nfunc TestSlow(*testing.T) { time.Sleep(30 * time.Second) }\n",
	} {
		file := filepath.Join(clone, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, ok := command(t, `cp -r Makefile scripts "$CLONE" && FORMAT=standard-quiet "$CLONE/scripts/gotest" ./...`, "CLONE="+clone)
	if !ok || !strings.Contains(out, "test: 0 of 2 packages done, ") || !strings.Contains(out, "test: 1 of 2 packages done, ") {
		t.Errorf("success %t:\n%s", ok, out)
	}
}

// The output of apt-get is printed only if it fails.
func TestQuietInstall(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"dpkg-query": "exit 1",
		"apt-get":    `case "$*" in *install*) seq -f "Unpacking %g" 150; exit "$STATUS" ;; esac`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	const install = `unshare --map-root-user --mount bash -euc 'mount -t tmpfs tmpfs /usr/sbin; PATH="$DIR:$PATH" exec scripts/prerequisites lint'`
	if out, ok := command(t, install, "DIR="+dir, "STATUS=0"); !ok || strings.Contains(out, "Unpacking") || !strings.Contains(out, "installing") {
		t.Errorf("success %t:\n%s", ok, out)
	}
	if out, ok := command(t, install, "DIR="+dir, "STATUS=1"); ok || strings.Count(out, "Unpacking") != 150 || !strings.Contains(out, "apt-get could not install: ") {
		t.Errorf("success %t:\n%s", ok, out)
	}
}
