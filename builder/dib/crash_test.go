//go:build linux

package dib

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/tempdir"
)

// daemonCommand makes the test binary a daemon that runs the given Run.
const daemonCommand = "test-daemon"

func itoa(n int) string { return strconv.Itoa(n) }

// daemonRun is what a daemon of a test needs to know.
type daemonRun struct {
	Argv, Env []string
	Dir, Log  string
	Scratch   Scratch
	Lease     time.Duration
}

// runDaemon runs a build as the daemon does, and notes its processes.
func runDaemon(arg string) {
	var d daemonRun
	if err := json.Unmarshal([]byte(arg), &d); err != nil {
		panic(err)
	}
	r := Run{Argv: d.Argv, Env: d.Env, Dir: d.Dir, Scratch: d.Scratch, Log: d.Log, Grace: time.Second}
	if d.Lease > 0 {
		r.Lease = func() time.Duration { return d.Lease }
	}
	r.Started = func(p Processes) error {
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(r.Dir, "processes"), data, 0o600)
	}
	_, err := r.Do(context.Background())
	fmt.Fprintln(os.Stderr, err)
}

// startDaemon starts one and waits until its build is under way.
func startDaemon(t *testing.T, r Run, lease time.Duration) *exec.Cmd {
	t.Helper()
	arg, err := json.Marshal(daemonRun{r.Argv, r.Env, r.Dir, r.Log, r.Scratch, lease})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], daemonCommand, string(arg)) //nolint:noctx // killed by the test
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "the build is under way", func() bool { return exists(r.Dir + "/up") })
	return cmd
}

// mountingBuild leaves everything that a build can leave. $OUT/dev stands for the machine's /dev, which a sweep that
// goes wrong would delete.
const mountingBuild = `
mkdir -p "$TMP_DIR/image/mnt/dev"
truncate -s 16M "$TMP_DIR/image/raw"
mkfs.ext4 -q "$TMP_DIR/image/raw"
dev=$(losetup --show -f "$TMP_DIR/image/raw")
mount $dev "$TMP_DIR/image/mnt"
mkdir -p "$TMP_DIR/image/mnt/dev" "$TMP_DIR/image/mnt/with blank"
mount --bind "$OUT/dev" "$TMP_DIR/image/mnt/dev"
mount -t tmpfs none "$TMP_DIR/image/mnt/with blank"
(cd "$TMP_DIR/image/mnt" && setsid sleep 1000) &
touch "$OUT/up"
sleep 1000
`

// newMountingRun makes a run of mountingBuild, after which nothing may be left, and no device be gone.
func newMountingRun(t *testing.T) (r Run, check func()) {
	t.Helper()
	needRoot(t)
	r = newRun(t, mountingBuild)
	null := filepath.Join(r.Dir, "dev", "null")
	if err := errors.Join(os.Mkdir(filepath.Dir(null), 0o700), os.WriteFile(null, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	return r, func() {
		t.Helper()
		nothingLeft(t, r)
		if !exists(null) {
			t.Error("the sweep went through a bind mount")
		}
	}
}

func TestNothingIsLeftOfADaemonThatWasKilled(t *testing.T) {
	r, check := newMountingRun(t)
	cmd := startDaemon(t, r, 0)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the guard swept", func() bool { return !exists(r.Scratch.Dir) })
	check()
	eventually(t, "the log tells why", func() bool {
		return hasLine(readLog(t, r), "poolkeeper: build stopped: the builder is gone")
	})
}

func TestNothingIsLeftOfADaemonThatIsPaused(t *testing.T) {
	r, check := newMountingRun(t)
	cmd := startDaemon(t, r, time.Second)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the guard swept", func() bool { return !exists(r.Scratch.Dir) })
	check()
}

func TestReclaimAfterDaemonAndGuardWereKilled(t *testing.T) {
	r, check := newMountingRun(t)
	cmd := startDaemon(t, r, 0)
	var noted Processes
	data, err := os.ReadFile(filepath.Join(r.Dir, "processes"))
	if err != nil || json.Unmarshal(data, &noted) != nil {
		t.Fatalf("processes: %s, %v", data, err)
	}
	// A paused daemon cannot clean up after its guard, nor a paused keeper.
	keeper, inner := guards(t, noted.Guard.PID)
	for _, pid := range []int{cmd.Process.Pid, keeper, inner} {
		send(t, pid, syscall.SIGSTOP)
	}
	for _, pid := range []int{inner, keeper, cmd.Process.Pid} {
		send(t, pid, syscall.SIGKILL)
	}
	_ = cmd.Wait()
	eventually(t, "both are dead", func() bool { return !noted.Guard.alive() })
	if points, err := mountsOf(r.Scratch.Dir, nil); err != nil || len(points) != 3 {
		t.Fatalf("the test has nothing to reclaim: %v, %v", points, err)
	}
	if err := Reclaim(t.Context(), noted, r.Scratch); err != nil {
		t.Fatal(err)
	}
	check()
	if err := Reclaim(t.Context(), noted, r.Scratch); err != nil {
		t.Errorf("again: %v", err)
	}
}

// guards are the two processes of a guard.
func guards(t *testing.T, keeper int) (int, int) {
	t.Helper()
	var inner []int
	eventually(t, "the guard is there", func() bool {
		inner = descendants(keeper, processes())
		return len(inner) > 0
	})
	return keeper, inner[0]
}

func send(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

func TestReclaimKillsNobodyElse(t *testing.T) {
	other := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	id := newProcessID(other.Process.Pid)
	reused := Processes{Guard: ProcessID{PID: id.PID, Start: id.Start + "0", Boot: id.Boot}}
	if err := Reclaim(t.Context(), reused, Scratch{Dir: filepath.Join(tempdir.New(t), "tmp"), Token: "x"}); err != nil {
		t.Fatal(err)
	}
	if !id.alive() {
		t.Error("a process with the number of an old guard was killed")
	}
	_ = other.Process.Kill()
	_ = other.Wait()
	if id.alive() {
		t.Error("alive does not see the end")
	}
}
