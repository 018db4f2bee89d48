package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"poolkeeper/providers"
	"poolkeeper/test/zktest"
)

func TestGuestBootsItsImage(t *testing.T) {
	// The path of the control socket alone would be too long for its address.
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 100), strings.Repeat("e", 100))
	p := open(t, section(dir), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	zktest.Eventually(t, func() bool {
		text, err := p.ConsoleLog(t.Context(), g.ID, 1000)
		return err == nil && bytes.Contains(text, []byte(greeting))
	}, "the guest's greeting")
	text, err := p.ConsoleLog(t.Context(), g.ID, 8)
	if err != nil || string(text) != greeting[len(greeting)-8:] {
		t.Errorf("the last 8 bytes are %q, %v", text, err)
	}
	got, err := p.WaitNode(t.Context(), g.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.InterfaceIP != "127.0.0.1" || got.Port != g.Port || g.Port < 1024 {
		t.Errorf("got %+v", got)
	}
}

func TestGuestIsNobodysChildAndKnowsNoSecret(t *testing.T) {
	t.Setenv("OS_PASSWORD", "correct horse")
	p := open(t, section(t.TempDir()), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	pid := process(t, g)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(environ, []byte("correct horse")) {
		t.Errorf("QEMU got %q", environ)
	}
	ours, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := unix.Getsid(pid)
	if err != nil {
		t.Fatal(err)
	}
	if ours == theirs {
		t.Error("QEMU is in our session")
	}
	qemu, err := procfs.NewProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := qemu.Stat(); err != nil || stat.PPID == os.Getpid() {
		t.Errorf("QEMU is our child: %v", err)
	}
}

func TestKilledGuestHasFailed(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	if err := syscall.Kill(process(t, g), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := p.ended(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitNode(t.Context(), g.ID); !errors.Is(err, providers.ErrNodeFailed) {
		t.Errorf("WaitNode gave %v", err)
	}
	if again, err := p.CreateNode(t.Context(), spec(p, 1, "any")); err != nil || again != g.ID {
		t.Errorf("CreateNode gave %s, %v", again, err)
	}
	list, err := p.ListNodes(t.Context())
	if err != nil || len(list) != 1 || list[0].Down != "its QEMU has ended" {
		t.Errorf("listed %v, %v", list, err)
	}
	if err := p.DeleteNode(t.Context(), g.ID); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(p.guests.dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestStoppedGuestIsKilled(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	pid := process(t, g)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.DeleteNode(t.Context(), g.ID); err != nil {
		t.Error(err)
	}
	if slices.Contains(pids(t, g), pid) {
		t.Error("QEMU is still there")
	}
}

func TestQEMUThatEndsAtOnceIsQuoted(t *testing.T) {
	cfg := section(t.TempDir())
	settingsOf(&cfg).Accel = "warp-drive"
	p := open(t, cfg, Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	_, err := p.WaitNode(t.Context(), g.ID)
	if !errors.Is(err, providers.ErrNodeFailed) || !strings.Contains(err.Error(), "warp-drive") {
		t.Errorf("WaitNode gave %v", err)
	}
}

func TestFailedPreparationLeavesNothing(t *testing.T) {
	opts := map[string]Options{
		"no-such-img": {QEMUImg: "no-such-img"}, "no-such-iso": {Genisoimage: "no-such-iso"},
		"no-such-qemu": {QEMU: "no-such-qemu"},
	}
	for missing, o := range opts {
		p := open(t, section(t.TempDir()), o)
		_, err := p.CreateNode(t.Context(), spec(p, 1, upload(t, p)))
		if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), missing) {
			t.Errorf("CreateNode gave %v", err)
		}
		if ids, err := p.guests.ids(); err != nil || len(ids) > 0 {
			t.Errorf("%s: left behind: %v, %v", missing, ids, err)
		}
	}
}

func TestBadKeyIsInvalidAndNotShown(t *testing.T) {
	cfg := section(t.TempDir())
	settingsOf(&cfg).AuthorizedKeys = []string{"-----BEGIN OPENSSH PRIVATE KEY-----"}
	p := open(t, cfg, Options{})
	_, err := p.CreateNode(t.Context(), spec(p, 1, upload(t, p)))
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "authorized-keys[0]") ||
		strings.Contains(err.Error(), "PRIVATE") {
		t.Errorf("got %v", err)
	}
}

// A dead process may have come to any point; the next create goes on.
func TestUnfinishedGuestIsStartedAnew(t *testing.T) {
	for name, undo := range map[string]func(*testing.T, *Provider, guest){
		"before QEMU was started": func(t *testing.T, p *Provider, g guest) {
			t.Helper()
			if err := p.halt(t.Context(), g); err != nil {
				t.Fatal(err)
			}
		},
		"before it was written down that QEMU runs": func(*testing.T, *Provider, guest) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := open(t, section(t.TempDir()), Options{})
			s := spec(p, 1, upload(t, p))
			g := boot(t, p, s)
			undo(t, p, g)
			g.Phase, g.Port = planned, 0
			if err := p.write(g); err != nil {
				t.Fatal(err)
			}
			if _, err := p.WaitNode(t.Context(), g.ID); !errors.Is(err, providers.ErrNodeFailed) {
				t.Errorf("WaitNode of what nobody starts gave %v", err)
			}
			if again, err := p.CreateNode(t.Context(), s); err != nil || again != g.ID {
				t.Errorf("CreateNode gave %s, %v", again, err)
			}
			if instance, err := p.WaitNode(t.Context(), g.ID); err != nil || instance.Port == 0 {
				t.Errorf("WaitNode gave %+v, %v", instance, err)
			}
		})
	}
}

func TestUnfinishedDeletionIsFinished(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	s := spec(p, 1, upload(t, p))
	old := boot(t, p, s)
	old.Phase = deleting
	if err := p.write(old); err != nil {
		t.Fatal(err)
	}
	g := boot(t, p, s)
	if g.ID == old.ID {
		t.Error("a guest that is being deleted was given out")
	}
	if _, err := p.WaitNode(t.Context(), old.ID); !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("WaitNode of the old one gave %v", err)
	}
	if on, err := p.alive(g.ID); err != nil || !on {
		t.Errorf("the new one runs: %v, %v", on, err)
	}
}

// A deletion that is interrupted has begun: the guest is given to nobody.
func TestInterruptedDeletion(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	s := spec(p, 1, upload(t, p))
	old := boot(t, p, s)
	if err := syscall.Kill(process(t, old), syscall.SIGSTOP); err != nil { // it does not end at once
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.DeleteNode(ctx, old.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("DeleteNode gave %v", err)
	}
	if _, err := p.WaitNode(t.Context(), old.ID); !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("WaitNode gave %v", err)
	}
	if list, err := p.ListNodes(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("listed %v, %v", list, err)
	}
	if again := boot(t, p, s); again.ID == old.ID {
		t.Error("CreateNode gave the one that is being deleted")
	}
}

// Two providers on one folder are what two launchers are.
func TestTwoLaunchersShareTheRoom(t *testing.T) {
	dir := t.TempDir()
	launchers := []*Provider{open(t, section(dir), Options{}), open(t, section(dir), Options{})}
	image := upload(t, launchers[0])
	cleanUp(t, launchers[0])
	var group errgroup.Group
	for i := range 10 {
		p := launchers[i%2]
		group.Go(func() error {
			_, err := p.CreateNode(t.Context(), spec(p, i/2, image)) // each id twice
			if errors.Is(err, providers.ErrQuota) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{}
	for _, p := range launchers {
		list, err := p.ListNodes(t.Context())
		if err != nil || len(list) != room {
			t.Errorf("listed %v, %v", list, err)
		}
		for _, n := range list {
			instance, err := p.WaitNode(t.Context(), n.ExternalID)
			if err != nil {
				t.Error(err)
			}
			ports[instance.Port] = true
		}
	}
	if len(ports) != room {
		t.Errorf("ports %v", ports)
	}
}
