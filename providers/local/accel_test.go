package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/providers"
)

// pretendedQEMU is a program in place of QEMU, with a /dev/kvm that opens.
func pretendedQEMU(t *testing.T, script string) *accelerator {
	t.Helper()
	dir := t.TempDir()
	qemu := filepath.Join(dir, "qemu")
	write(t, qemu, "#!/bin/sh\necho started >>"+filepath.Join(dir, "starts")+"\n"+script+"\n", 0o700)
	write(t, filepath.Join(dir, "kvm"), "", 0o600)
	a := newAccelerator(autoAccel, dir, qemu, hclog.NewNullLogger())
	a.device = filepath.Join(dir, "kvm")
	return a
}

func choose(t *testing.T, a *accelerator) string {
	t.Helper()
	got, err := a.choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestProbe(t *testing.T) {
	tests := map[string]struct{ script, want string }{
		"guests run":                   {"exit 33", kvm},
		"QEMU has no KVM":              {"echo 'invalid accelerator kvm' >&2; exit 1", emulation},
		"the machine ends by itself":   {"exit 0", emulation},
		"QEMU crashes":                 {"kill -SEGV $$", emulation},
		"guests hang":                  {"exec sleep 600", emulation},
		"guests hang, and children":    {"sleep 600 & sleep 600", emulation},
		"guests hang, signals ignored": {"trap '' TERM INT HUP; while :; do sleep 600; done", emulation},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			a := pretendedQEMU(t, test.script)
			a.limit = 300 * time.Millisecond
			if test.want == kvm {
				a.limit = probeTime
			}
			start := time.Now()
			if got := choose(t, a); got != test.want {
				t.Errorf("chose %s", got)
			}
			if took := time.Since(start); took > a.limit+2*reapTime {
				t.Errorf("took %s", took)
			}
			if left, _ := filepath.Glob(filepath.Join(a.dir, "probe-*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestProbeIsRemembered(t *testing.T) {
	a := pretendedQEMU(t, "exit 33")
	for range 2 {
		fresh := newAccelerator(autoAccel, a.dir, a.qemu, hclog.NewNullLogger())
		fresh.device = a.device
		if got := choose(t, fresh) + choose(t, fresh); got != kvm+kvm {
			t.Errorf("chose %s", got)
		}
	}
	starts := func() string {
		data, err := os.ReadFile(filepath.Join(a.dir, "starts"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if got := starts(); strings.Count(got, "started") != 1 {
		t.Errorf("probed %q", got)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(a.qemu, later, later); err != nil { // an upgrade
		t.Fatal(err)
	}
	choose(t, a)
	if got := starts(); strings.Count(got, "started") != 2 {
		t.Errorf("after an upgrade: %q", got)
	}
}

func TestBrokenMemoryIsProbedAnew(t *testing.T) {
	a := pretendedQEMU(t, "exit 33")
	write(t, filepath.Join(a.dir, accelName), "{", 0o600)
	if got := choose(t, a); got != kvm {
		t.Errorf("chose %s", got)
	}
}

func TestNoKVM(t *testing.T) {
	a := pretendedQEMU(t, "exit 33")
	a.device += "-missing"
	if got := choose(t, a); got != emulation {
		t.Errorf("chose %s", got)
	}
}

func TestConfiguredAccel(t *testing.T) {
	for wanted, want := range map[string]string{"tcg": emulation, "kvm": "kvm", "tcg,thread=single": "tcg,thread=single"} {
		a := pretendedQEMU(t, "exit 1")
		a.wanted = wanted
		if got := choose(t, a); got != want {
			t.Errorf("%s: chose %s", wanted, got)
		}
	}
}

// The real QEMU, on whatever host this is.
func TestRealProbe(t *testing.T) {
	a := newAccelerator(autoAccel, t.TempDir(), newTools(Options{}).qemu, hclog.NewNullLogger())
	start := time.Now()
	if got := choose(t, a); got != kvm && got != emulation {
		t.Errorf("chose %s", got)
	}
	if took := time.Since(start); took > probeTime+2*reapTime {
		t.Errorf("took %s", took)
	}
	path, err := exec.LookPath(a.qemu)
	if err != nil {
		t.Fatal(err)
	}
	if err := bootProbe(t.Context(), path, "tcg", a.dir, 30*time.Second); err != nil {
		t.Errorf("the machine of the probe does not run: %v", err)
	}
}

func TestMissingQEMU(t *testing.T) {
	a := newAccelerator(autoAccel, t.TempDir(), "no-such-qemu", hclog.NewNullLogger())
	if _, err := a.choose(t.Context()); !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "no-such-qemu") {
		t.Errorf("got %v", err)
	}
}
