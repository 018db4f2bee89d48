package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
)

// badKVMDir is where the program in QEMU's place is, once it was needed.
var badKVMDir string

// badKVMProgram builds it, once.
var badKVMProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "badkvm-")
	if err != nil {
		return "", err
	}
	badKVMDir = dir
	program := filepath.Join(dir, "badkvm")
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", program, "poolkeeper/test/badkvm").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if badKVMDir != "" {
		_ = os.RemoveAll(badKVMDir)
	}
	os.Exit(code) //nolint:forbidigo // as every TestMain
}

// badKVM is a program in QEMU's place with which guests fail under KVM in one way.
func badKVM(t *testing.T, mode string) string {
	t.Helper()
	program, err := badKVMProgram()
	if err != nil {
		t.Fatal(err)
	}
	qemu, err := exec.LookPath(newTools(Options{}).qemu)
	if err != nil {
		t.Fatal(err)
	}
	wrapper := filepath.Join(t.TempDir(), "qemu")
	write(t, wrapper, fmt.Sprintf("#!/bin/sh\nexec '%s' %s '%s' \"$@\"\n", program, mode, qemu), 0o700)
	return wrapper
}

// lyingHost is a provider on a host whose processor has vmx, whose device opens, and
// whose guests fail under KVM.
func lyingHost(t *testing.T, cfg configs.Provider, mode string) *Provider {
	t.Helper()
	p := open(t, cfg, Options{QEMU: badKVM(t, mode)})
	device := filepath.Join(t.TempDir(), "kvm")
	write(t, device, "", 0o600)
	p.speed.device, p.speed.proc = device, cpuinfo(t, "vmx")
	p.speed.limit = time.Minute
	p.patience = 3 * time.Second
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// automatic is a section that leaves the accelerator to us.
func automatic(dir string) configs.Provider {
	cfg := section(dir)
	settingsOf(&cfg).Accel = autoAccel
	return cfg
}

// await does what a launcher does until the node is ready: it is here when the
// guest has greeted. It tells how often the guest was started again meanwhile.
func await(t *testing.T, p *Provider, id string) (restarts int, err error) {
	t.Helper()
	for {
		if _, err := p.WaitNode(t.Context(), id); err != nil {
			return restarts, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error, 1)
		go func() { watched <- p.WatchNode(ctx, id) }()
		go func() {
			for ctx.Err() == nil {
				if text, err := p.ConsoleLog(ctx, id, 1000); err == nil && bytes.Contains(text, []byte(greeting)) {
					cancel()
				}
				pause(ctx, 20*time.Millisecond)
			}
		}()
		err := <-watched
		cancel()
		if !errors.Is(err, providers.ErrRestarted) {
			return restarts, err
		}
		restarts++
	}
}

// Guests that KVM fails, in whatever way although the probe ran, are started again
// emulated, and KVM is not tried any more.
func TestKVMThatFailsGuests(t *testing.T) {
	for mode, said := range map[string]string{
		"refuses": "failed to initialize kvm", "hangs": "QEMU does not answer", "stops": "KVM internal error. Suberror: 1",
		"dies": "QEMU has ended: badkvm: error: failed to set MSR", "crawls": "has written nothing on its console", "mute": "sent no packet",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := lyingHost(t, automatic(t.TempDir()), mode)
			image := upload(t, p)
			cleanUp(t, p)
			var group errgroup.Group
			ids := make([]string, 2)
			for i := range ids {
				group.Go(func() (err error) {
					if ids[i], err = p.CreateNode(t.Context(), spec(p, i, image)); err != nil {
						return err
					}
					restarts, err := await(t, p, ids[i])
					if restarts > 1 {
						t.Errorf("started again %d times", restarts)
					}
					return err
				})
			}
			if err := group.Wait(); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				g, err := p.read(id)
				if err != nil || g.Accel != emulation || g.Phase != started {
					t.Errorf("guest %s: %+v, %v", id, g, err)
				}
				if n := processes(t, g); n != 1 {
					t.Errorf("guest %s has %d processes", id, n)
				}
			}
			if c := choose(t, p.speed); c.Accel != emulation || !strings.Contains(c.Why, said) {
				t.Errorf("from now on: %s", c)
			}
			instance, err := p.WaitNode(t.Context(), ids[0])
			if err != nil || !strings.Contains(instance.Runs, said) {
				t.Errorf("the guest runs with %q, %v", instance.Runs, err)
			}
		})
	}
}

// An operator who insists on KVM gets the reason, at once, and no other machine.
func TestKVMThatIsConfigured(t *testing.T) {
	for mode, said := range map[string]string{
		"refuses": "failed to initialize kvm", "stops": "KVM internal error", "dies": "failed to set MSR",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			cfg := automatic(t.TempDir())
			settingsOf(&cfg).Accel = kvm
			p := lyingHost(t, cfg, mode)
			g := boot(t, p, spec(p, 1, upload(t, p)))
			restarts, err := await(t, p, g.ID)
			if restarts > 0 || !errors.Is(err, providers.ErrNodeFailed) || !strings.Contains(err.Error(), said) ||
				!strings.Contains(err.Error(), "accelerator kvm, because the configuration says so") {
				t.Errorf("started again %d times, %v", restarts, err)
			}
		})
	}
}

// Silence alone is no failure of an image, and none of a KVM that is configured.
func TestSilenceIsNoFailure(t *testing.T) {
	cfg := automatic(t.TempDir())
	settingsOf(&cfg).Accel = kvm
	native := lyingHost(t, cfg, "mute")
	emulated := open(t, section(t.TempDir()), Options{})
	for _, p := range []*Provider{native, emulated} {
		p.patience = 100 * time.Millisecond
		g := boot(t, p, spec(p, 1, uploadFile(t, p, imageOf(t, sector([]byte{0xf4, 0xeb, 0xfd})))))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := p.WatchNode(ctx, g.ID); err != nil {
			t.Error(err)
		}
	}
}

// What a guest does to itself ends its launch at once.
func TestGuestThatFailsWhileItBoots(t *testing.T) {
	for name, test := range map[string]struct {
		code []byte
		want string
	}{
		"panics":   {[]byte{0xba, 0x05, 0x05, 0xb0, 0x01, 0xee, 0xf4, 0xeb, 0xfd}, "GUEST_PANICKED"},                                // to pvpanic's port
		"resets":   {[]byte{0xba, 0xf9, 0x0c, 0xb0, 0x06, 0xee, 0xf4, 0xeb, 0xfd}, "RESET, 11 times"},                               // to port 0xcf9
		"triple":   {[]byte{0x0f, 0x01, 0x1e, 0x00, 0x06, 0xcc, 0xf4, 0xeb, 0xfd}, "resets again and again"},                        // no interrupt table
		"shutdown": {[]byte{0xba, 0x04, 0x06, 0xb8, 0x00, 0x20, 0xef, 0xf4, 0xeb, 0xfd}, "SHUTDOWN, guest-shutdown|QEMU has ended"}, // to ACPI's port; a QEMU of a busy machine may end before it has told
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, section(t.TempDir()), Options{})
			g := boot(t, p, spec(p, 1, uploadFile(t, p, imageOf(t, sector(test.code)))))
			err := p.WatchNode(t.Context(), g.ID)
			if !errors.Is(err, providers.ErrNodeFailed) || !regexp.MustCompile(test.want).MatchString(err.Error()) || !strings.Contains(err.Error(), "accelerator tcg") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestEndOfQEMUEndsTheWatch(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	watched := make(chan error, 1)
	go func() { watched <- p.WatchNode(t.Context(), g.ID) }()
	if err := syscall.Kill(process(t, g), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; !errors.Is(err, providers.ErrNodeFailed) || !strings.Contains(err.Error(), "QEMU has ended") {
		t.Errorf("got %v", err)
	}
}

// The launcher that comes after a dead one watches on: it sees what has become of
// the guest meanwhile.
func TestWatchAfterARestartOfTheLauncher(t *testing.T) {
	dir := t.TempDir()
	first := lyingHost(t, automatic(dir), "stops")
	g := boot(t, first, spec(first, 1, upload(t, first)))
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		state, err := askStatus(t.Context(), first.guests.path(g.ID))
		return err == nil && state == "internal-error"
	}, "the guest stops")
	second := lyingHost(t, automatic(dir), "stops")
	if err := second.WatchNode(t.Context(), g.ID); !errors.Is(err, providers.ErrRestarted) || !strings.Contains(err.Error(), "internal-error") {
		t.Fatalf("got %v", err)
	}
	if _, err := await(t, second, g.ID); err != nil {
		t.Error(err)
	}
}

// A guest that an older release has started has one socket only.
func TestWatchWithoutASecondSocket(t *testing.T) {
	p := open(t, section(t.TempDir()), Options{})
	g := boot(t, p, spec(p, 1, upload(t, p)))
	p.events.drop(g.ID)
	if err := os.Remove(p.guests.path(g.ID, eventsName)); err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() { watched <- p.WatchNode(t.Context(), g.ID) }()
	if err := syscall.Kill(process(t, g), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; !errors.Is(err, providers.ErrNodeFailed) {
		t.Errorf("got %v", err)
	}
}

// A guest whose watch has ended is its user's: it may reset as often as it likes.
func TestNobodyWatchesAReadyGuest(t *testing.T) {
	p := lyingHost(t, automatic(t.TempDir()), "stops")
	s := spec(p, 1, upload(t, p))
	g := boot(t, p, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // ready at once
	if err := p.WatchNode(ctx, g.ID); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool {
		state, err := askStatus(t.Context(), p.guests.path(g.ID))
		return err == nil && state == "internal-error"
	}, "the guest stops")
	if again, err := p.read(g.ID); err != nil || again.Accel != kvm || again.Port != g.Port || processes(t, g) != 1 {
		t.Errorf("the guest is now %+v, %v", again, err)
	}
	if c := choose(t, p.speed); c.Accel != kvm {
		t.Errorf("KVM is distrusted: %s", c)
	}
}

// A deletion during the watch is no failure of the guest.
func TestDeletionEndsTheWatch(t *testing.T) {
	p := lyingHost(t, automatic(t.TempDir()), "mute")
	p.patience = time.Minute
	g := boot(t, p, spec(p, 1, upload(t, p)))
	watched := make(chan error, 1)
	go func() { watched <- p.WatchNode(t.Context(), g.ID) }()
	if err := p.DeleteNode(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-watched; !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	if ids, err := p.guests.ids(); err != nil || len(ids) > 0 {
		t.Errorf("left: %v, %v", ids, err)
	}
}
