//go:build linux

package dib

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// hidingBuild has a descendant that nothing but its ancestors tells of, which
// goes on making loop devices.
const hidingBuild = `
mkdir -p "$TMP_DIR/image"
truncate -s 1M "$TMP_DIR/image/raw"
cat >"$OUT/hider" <<'END'
cd /
echo $$ >"$1/hider.pid"
while [ -e "$1" ]; do losetup -f "$2/image/raw" 2>/dev/null; touch "$1/up"; sleep 0.1; done
END
env -i "PATH=$PATH" setsid sh "$OUT/hider" "$OUT" "$TMP_DIR" &
wait
sleep 1000
`

// Whichever of the two processes of a guard dies, the other ends the build to
// its last process.
func TestOneDeadGuardLeavesNothing(t *testing.T) {
	for name, which := range map[string]int{"keeper": 0, "guard": 1} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, hidingBuild)
			r.Started = func(p Processes) error {
				go func() {
					for !exists(r.Dir + "/up") {
						pause()
					}
					_ = syscall.Kill(append([]int{p.Guard.PID}, descendants(p.Guard.PID, processes())...)[which], syscall.SIGKILL)
				}()
				return nil
			}
			result, err := r.Do(t.Context())
			if !errors.Is(err, ErrGuard) && !errors.Is(err, ErrStopped) || result.Left != "" {
				t.Errorf("got %+v, %v", result, err)
			}
			nothingLeft(t, r)
			text, err := os.ReadFile(filepath.Join(r.Dir, "hider.pid"))
			pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
			if process, gone := readProcess(pid); err != nil || pid == 0 || gone == nil {
				t.Errorf("the descendant %d that has no environment lives: %+v, %v", pid, process, err)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// When both die, the daemon cleans up what proves to be of the build.
func TestBothGuardsDead(t *testing.T) {
	r := newRun(t, `setsid sh -c 'cd /; sleep 1000' & touch "$OUT/up"; wait`)
	r.Started = func(p Processes) error {
		go func() {
			for !exists(r.Dir + "/up") {
				pause()
			}
			inner := descendants(p.Guard.PID, processes())[0]
			_ = syscall.Kill(p.Guard.PID, syscall.SIGSTOP)
			_ = syscall.Kill(inner, syscall.SIGKILL)
			_ = syscall.Kill(p.Guard.PID, syscall.SIGKILL)
		}()
		return nil
	}
	if _, err := r.Do(t.Context()); !errors.Is(err, ErrGuard) {
		t.Fatalf("got %v", err)
	}
	nothingLeft(t, r)
}
