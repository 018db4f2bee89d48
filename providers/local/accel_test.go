package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/procfs"
	"go.uber.org/goleak"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/test/lacks"
)

// What a program in QEMU's place does when the probe runs to its end.
const done = "exit 33"

// pretendedQEMU is a program in place of QEMU that runs one script with KVM and
// another emulated, on a processor that has vmx, with a /dev/kvm that opens.
func pretendedQEMU(t *testing.T, native, emulated string) *accelerator {
	t.Helper()
	dir := t.TempDir()
	qemu := filepath.Join(dir, "qemu")
	write(t, qemu, fmt.Sprintf("#!/bin/sh\ncase \"$*\" in *'-accel kvm'*) echo kvm >>'%[1]s'; %[2]s;; *) echo tcg >>'%[1]s'; %[3]s;; esac\n",
		filepath.Join(dir, "starts"), native, emulated), 0o700)
	write(t, filepath.Join(dir, "kvm"), "", 0o600)
	a := newAccelerator(autoAccel, dir, qemu, hclog.New(&hclog.LoggerOptions{Output: t.Output(), Level: hclog.Debug}))
	a.device, a.proc = filepath.Join(dir, "kvm"), cpuinfo(t, "fpu vmx ssse3")
	return a
}

// cpuinfo is a /proc with the cpuinfo of a processor with these flags.
func cpuinfo(t *testing.T, flags string) string {
	t.Helper()
	dir := t.TempDir()
	one := "processor\t: %d\nmodel name\t: one with vmx in its name\nflags\t\t: " + flags + "\nvmx flags\t: vnmi\nbugs\t\t:\n\n"
	write(t, filepath.Join(dir, "cpuinfo"), fmt.Sprintf(one, 0)+fmt.Sprintf(one, 1), 0o600)
	return dir
}

// starts counts how often QEMU was started with an accelerator.
func (a *accelerator) starts(t *testing.T, accel string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(a.dir, "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), accel)
}

func choose(t *testing.T, a *accelerator) Choice {
	t.Helper()
	got, err := a.choose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// The faster one is taken, whatever else KVM does than to run guests.
func TestProbe(t *testing.T) {
	const slowly, hang = "sleep 0.5; exit 33", "exec sleep 600"
	tests := map[string]struct{ native, emulated, want, why string }{
		"guests run":                {done, slowly, kvm, "KVM ran the probe in"},
		"there is no emulation":     {slowly, "echo 'invalid accelerator tcg' >&2; exit 1", kvm, "invalid accelerator tcg"},
		"guests crawl":              {"sleep 60; exit 33", slowly, emulation, "emulation ran the probe in"},
		"guests stop at the kernel": {"echo 'KVM internal error. Suberror: 1'; echo 'EAX=00000010'; " + hang, slowly, emulation, "(KVM internal error. Suberror: 1)"},
		"QEMU has no KVM":           {"echo 'invalid accelerator kvm' >&2; exit 1", slowly, emulation, "invalid accelerator kvm"},
		"the machine goes wrong":    {"exit 37", slowly, emulation, "exit status 37"},
		"the machine ends":          {"exit 0", slowly, emulation, "ended before it was done"},
		"QEMU crashes":              {"kill -SEGV $$", slowly, emulation, "segmentation fault"},
		"guests hang":               {hang, slowly, emulation, "it was slower"},
		"guests hang, and children": {"sleep 600 & sleep 600", slowly, emulation, "it was slower"},
		"signals are ignored":       {"trap '' TERM INT HUP; while :; do sleep 600; done", slowly, emulation, "it was slower"},
		"nothing runs":              {hang, hang, emulation, "neither ran the probe"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			a := pretendedQEMU(t, test.native, test.emulated)
			if test.emulated == hang {
				a.limit = 300 * time.Millisecond
			} else {
				a.limit = time.Minute // a busy machine is no finding
			}
			if got := choose(t, a); got.Accel != test.want || !strings.Contains(got.Why, test.why) {
				t.Errorf("chose %s", got)
			}
			if left, _ := filepath.Glob(filepath.Join(a.dir, "probe-*")); left != nil {
				t.Errorf("left behind: %v", left)
			}
			again := choose(t, a)
			if probed, want := a.starts(t, kvm), map[bool]int{false: 1, true: 2}[test.emulated == hang]; probed != want {
				t.Errorf("probed %d times, want %d: %s", probed, want, again)
			}
		})
	}
}

// Both laps may come to their ends at the same moment.
func TestJudge(t *testing.T) {
	fast, slow := lap{took: time.Second}, lap{took: 2 * time.Second}
	if c, sure := judge(fast, slow); c.Accel != kvm || !sure || c.Why != "KVM ran the probe in 1.00 s; emulation ran the probe in 2.00 s" {
		t.Errorf("KVM is faster, chose %s", c)
	}
	if c, sure := judge(slow, fast); c.Accel != emulation || !sure {
		t.Errorf("emulation is faster, chose %s", c)
	}
}

// A processor without vmx and svm is not asked further, one with either is.
func TestFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"fpu vmx ssse3": kvm, "fpu svm": kvm, "svm": kvm,
		"fpu ssse3": emulation, "": emulation, "vmxx svm_lock hypervisor": emulation,
	} {
		a := pretendedQEMU(t, done, "sleep 60")
		a.proc = cpuinfo(t, flags)
		if got := choose(t, a); got.Accel != want || want == emulation && !strings.Contains(got.Why, "neither vmx nor svm") {
			t.Errorf("flags %q: chose %s", flags, got)
		}
		if tried := a.starts(t, kvm) == 1; tried != (want == kvm) {
			t.Errorf("flags %q: KVM was tried: %v", flags, tried)
		}
	}
}

// Where the flags cannot be read, or mean nothing, the probe decides.
func TestNoFlags(t *testing.T) {
	other := t.TempDir() // of another architecture, or a kernel that tells less
	write(t, filepath.Join(other, "cpuinfo"), "processor\t: 0\nfeatures\t: vmx\n", 0o600)
	for _, proc := range []string{"", "/no/such/folder", "/", other} {
		a := pretendedQEMU(t, done, "sleep 60")
		a.proc = proc
		if got := choose(t, a); got.Accel != kvm {
			t.Errorf("processors of %q: chose %s", proc, got)
		}
	}
}

func TestProbeIsRemembered(t *testing.T) {
	a := pretendedQEMU(t, done, "sleep 60")
	for range 2 {
		fresh := *a // another process
		if got := choose(t, &fresh).Accel + choose(t, &fresh).Accel; got != kvm+kvm {
			t.Errorf("chose %s", got)
		}
	}
	if got := a.starts(t, kvm); got != 1 {
		t.Errorf("probed %d times", got)
	}
	later := time.Now().Add(time.Hour)
	for i, path := range []string{a.qemu, a.device} { // an upgrade, another driver
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		choose(t, a)
		if got := a.starts(t, kvm); got != 2+i {
			t.Errorf("after a change of %s: probed %d times", path, got)
		}
	}
}

// Whoever comes second waits for the finding of the first.
func TestOneProbeAtATime(t *testing.T) {
	a := pretendedQEMU(t, "sleep 0.2; exit 33", "sleep 60")
	ended := make(chan Choice)
	for range 3 {
		fresh := *a
		go func() {
			c, err := fresh.choose(t.Context())
			if err != nil {
				t.Error(err)
			}
			ended <- c
		}()
	}
	for range 3 {
		if c := <-ended; c.Accel != kvm {
			t.Errorf("chose %s", c)
		}
	}
	if got := a.starts(t, kvm); got != 1 {
		t.Errorf("probed %d times", got)
	}
}

func TestMemoryThatIsNotBelieved(t *testing.T) {
	for name, text := range map[string]string{
		"broken": "{", "empty": "{}",
		"of the probe that was five instructions": `{"accel":"kvm"}`,
	} {
		a := pretendedQEMU(t, "exit 1", "sleep 60")
		if name != "broken" && name != "empty" {
			choose(t, a)
			data, err := os.ReadFile(filepath.Join(a.dir, accelName))
			if err != nil {
				t.Fatal(err)
			}
			text = strings.NewReplacer(fmt.Sprintf(`"probe": %d`, probeVersion), `"probes": 1`, emulation, kvm).Replace(string(data))
		}
		write(t, filepath.Join(a.dir, accelName), text, 0o600)
		if got := choose(t, a); got.Accel != emulation {
			t.Errorf("%s: chose %s", name, got)
		}
	}
}

func TestNoKVM(t *testing.T) {
	a := pretendedQEMU(t, done, "sleep 60")
	a.device += "-missing"
	if got := choose(t, a); got.Accel != emulation || !strings.Contains(got.Why, "no such file") {
		t.Errorf("chose %s", got)
	}
}

func TestConfiguredAccel(t *testing.T) {
	for wanted, want := range map[string]string{"tcg": emulation, "kvm": "kvm", "tcg,thread=single": "tcg,thread=single"} {
		a := pretendedQEMU(t, "exit 1", "exit 1")
		a.wanted, a.proc = wanted, cpuinfo(t, "")
		if got := choose(t, a); got.Accel != want || a.starts(t, "") > 1 {
			t.Errorf("%s: chose %s", wanted, got)
		}
	}
}

// A KVM that has failed a guest is not chosen again, by any process, until
// something is different.
func TestDistrust(t *testing.T) {
	a := pretendedQEMU(t, done, "sleep 60")
	if got := choose(t, a); got.Accel != kvm {
		t.Fatalf("chose %s", got)
	}
	if _, err := a.distrust(t.Context(), "a guest has failed"); err != nil {
		t.Fatal(err)
	}
	fresh := *a
	if got := choose(t, &fresh); got.Accel != emulation || got.Why != "a guest has failed" {
		t.Errorf("chose %s", got)
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(a.qemu, later, later); err != nil {
		t.Fatal(err)
	}
	if got := choose(t, a); got.Accel != kvm {
		t.Errorf("after an upgrade: chose %s", got)
	}
}

func TestExplain(t *testing.T) {
	cfg := section(t.TempDir())
	if c, err := Explain(cfg); err != nil || c.Accel != emulation {
		t.Errorf("configured: %s, %v", c, err)
	}
	settingsOf(&cfg).Accel = autoAccel
	if c, err := Explain(cfg); !errors.Is(err, providers.ErrNotFound) {
		t.Errorf("not found out yet: %s, %v", c, err)
	}
	p := open(t, cfg, Options{})
	if err := p.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := choose(t, p.speed)
	if c, err := Explain(cfg); err != nil || c != want || c.Why == "" {
		t.Errorf("found out: %s, %v", c, err)
	}
	if c, err := Explain(configs.Provider{Name: "cloud"}); !errors.Is(err, providers.ErrInvalid) {
		t.Errorf("of a cloud: %s, %v", c, err)
	}
}

// The real QEMU, on whatever host this is.
func TestRealProbe(t *testing.T) {
	a := newAccelerator(autoAccel, t.TempDir(), newTools(Options{}).qemu, hclog.NewNullLogger())
	c := choose(t, a)
	t.Logf("chose %s", c)
	if has, err := virtualizes(procfs.DefaultMountPoint); err == nil && !has && c.Accel != emulation {
		t.Errorf("no vmx, no svm, and chose %s", c)
	}
	a.proc = ""
	if err := os.Remove(filepath.Join(a.dir, accelName)); err != nil {
		t.Fatal(err)
	}
	t.Logf("by the probe alone: %s", choose(t, a))
	path, err := exec.LookPath(a.qemu)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := bootProbe(t.Context(), path, emulation, a.dir); err != nil {
		t.Errorf("the machine of the probe does not run: %v: %s", err, said)
	}
}

// The embedded payload is that of the source beside it.
func TestPayload(t *testing.T) {
	for _, tool := range []string{"as", "ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			lacks.Skip(t, "%v", err)
		}
	}
	made := filepath.Join(t.TempDir(), "payload.bin")
	if out, err := exec.CommandContext(t.Context(), "payload/assemble", made).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(made); err != nil || string(got) != string(payload) {
		t.Errorf("payload/assemble makes %d bytes that differ from payload.bin (%v)", len(got), err)
	}
}

func TestMissingQEMU(t *testing.T) {
	a := newAccelerator(autoAccel, t.TempDir(), "no-such-qemu", hclog.NewNullLogger())
	if _, err := a.choose(t.Context()); !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "no-such-qemu") {
		t.Errorf("got %v", err)
	}
}
