package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"poolkeeper/cmd/poolkeeper/devenv"
	"poolkeeper/test/journey"
	"poolkeeper/test/tempdir"
)

// The programs run as from a careful person's shell: what they make for others
// must be for others all the same, in images above all.
func TestMain(m *testing.M) {
	syscall.Umask(0o077)
	m.Run()
}

// requireEnv makes these tests fail where they would be skipped.
const requireEnv = "POOLKEEPER_REQUIRE_E2E"

// needMachine skips a test on a machine that cannot build images: without root,
// loop devices or the programs.
func needMachine(t *testing.T) {
	t.Helper()
	err := devenv.CheckTools()
	if os.Geteuid() != 0 {
		err = errors.Join(err, errors.New("not root"))
	}
	if _, lerr := os.Stat("/dev/loop-control"); lerr != nil {
		err = errors.Join(err, lerr)
	}
	switch {
	case err == nil:
	case os.Getenv(requireEnv) != "":
		t.Fatalf("%s is set, and this machine lacks something: %v", requireEnv, err)
	default:
		t.Skipf("this machine lacks something: %v", err)
	}
}

// buildBinary builds the program as `make build` does.
func buildBinary(t *testing.T) string {
	t.Helper()
	file := filepath.Join(tempdir.New(t), "poolkeeper")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", file, "poolkeeper/cmd/poolkeeper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	return file
}

// The tests share one build of the program. Each has a site in a folder of its own, by which it
// tells what is left of it; they mostly wait, so they run beside each other.
func TestEndToEnd(t *testing.T) {
	needMachine(t)
	binary := buildBinary(t)
	for name, run := range map[string]func(*testing.T, string){
		"mission": mission, "Ctrl-C": ctrlC, "stop a builder": stopBuilder, "bad KVM": badKVM,
		"missing dib-cmd": missingCommand, "all drivers": allDrivers, "killed demo": killedDemo, "full disk": fullDisk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, binary)
		})
	}
}

// start starts an environment in dir. Whatever becomes of the test, it is
// stopped, and its log shown when the test has failed.
func start(t *testing.T, binary, dir string) *journey.Journey {
	t.Helper()
	j := journey.New(binary, dir)
	t.Cleanup(func() {
		if err := j.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		if err := journey.CheckNothingLeft(context.WithoutCancel(t.Context()), dir); err != nil {
			t.Error(err)
		}
		if text, err := os.ReadFile(j.LogFile()); t.Failed() && err == nil {
			t.Logf("%s:\n%s", j.LogFile(), text)
		}
	})
	do(t, "start", j.Start)
	return j
}

// do runs a step of the journey.
func do(t *testing.T, name string, step func(context.Context) error) {
	t.Helper()
	if err := step(t.Context()); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// mission: an image is built by diskimage-builder, uploaded and booted; a Zuul gets a
// node of it, logs in and gives it back. On the way the tree is what the wire
// document says, and the listings show what a kazoo client reads.
func mission(t *testing.T, binary string) {
	t.Helper()
	j := start(t, binary, tempdir.New(t))
	checkUmask(t, j)
	do(t, "build", j.AwaitBuild)
	if file := j.Build.Files["qcow2"]; file.Size < 1<<20 || len(file.MD5) != 32 || len(file.SHA256) != 64 {
		t.Errorf("files of the build: %+v", j.Build.Files)
	}
	do(t, "upload", j.AwaitUpload)
	tree := dump(t, j)
	checkWire(t, tree)
	checkListings(t, j, tree)

	do(t, "request", j.AskForNode)
	do(t, "boot", j.AwaitNode)
	do(t, "take", j.TakeNode)
	if j.Node.ImageID != j.Upload.Path() {
		t.Errorf("the node's image is %s, want %s", j.Node.ImageID, j.Upload.Path())
	}
	tree = dump(t, j)
	checkWire(t, tree)
	checkNodeListing(t, j, tree)
	do(t, "log in", j.LogIn)
	if !strings.HasPrefix(j.Answer, "Linux ") {
		t.Errorf("uname -a answers %q", j.Answer)
	}
	do(t, "return", j.ReturnNode)
	person(t, j)
	slots(t, binary, j)
}

// checkUmask: what an environment that root has started holds can be used by others,
// its secrets excepted.
func checkUmask(t *testing.T, j *journey.Journey) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", j.Pid()))
	if err != nil || !strings.Contains(string(status), "\nUmask:\t0022\n") {
		t.Errorf("the environment does not run with umask 022: %v\n%s", err, status)
	}
	for file, want := range map[string]os.FileMode{j.ConfigFile(): 0o644, j.Dir + "/id_ed25519": 0o600} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", file, got, want)
		}
	}
}

// ctrlC ends an environment in the middle of a build, and again while a guest
// boots. Nothing is left either time; what was begun is begun anew by the next
// start, and no record promises a node that is not there.
func ctrlC(t *testing.T, binary string) {
	t.Helper()
	dir := tempdir.New(t)
	look := func(ctx context.Context) error { return journey.CheckNothingLeft(ctx, dir) }
	j := start(t, binary, dir)
	do(t, "build", j.AwaitMounts)
	interrupted := j.Build.ID
	if err := j.Stop(); err != nil {
		t.Fatalf("Ctrl-C in a build: %v", err)
	}
	do(t, "look around", look)

	j = start(t, binary, dir)
	do(t, "build again", j.AwaitBuild)
	if j.Build.ID <= interrupted {
		t.Errorf("the new build is %s, after %s", j.Build.ID, interrupted)
	}
	do(t, "upload", j.AwaitUpload)
	do(t, "request", j.AskForNode)
	do(t, "guest", j.AwaitGuest)
	if err := j.Stop(); err != nil {
		t.Fatalf("Ctrl-C in a boot: %v", err)
	}
	do(t, "look around", look)

	j = start(t, binary, dir)
	_, out, err := j.CLI(t.Context(), "list", "-o", "json")
	if err != nil || strings.Contains(out, `"ready"`) {
		t.Errorf("nodes after a restart: %s, %v", out, err)
	}
}
