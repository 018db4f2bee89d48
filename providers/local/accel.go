package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/procfs"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

const (
	autoAccel = "auto"
	tcg       = "tcg"
	kvm       = "kvm"
	// emulation works everywhere, at a tenth of the speed. QEMU would keep up to
	// 1 GiB of translated code a guest; a quarter holds all that a CI node runs often.
	emulation = "tcg,thread=multi,tb-size=256"

	accelName     = "accel.json" // the memory, in the provider's folder
	accelLockName = "accel.lock" // flock: who probes, or writes the memory
)

// Choice is how guests run on a host, and why so.
type Choice struct {
	Accel string // the argument of QEMU's -accel
	Why   string // for people
}

// String says it in a line.
func (c Choice) String() string { return c.Accel + ", because " + c.Why }

// accelerator finds out how guests run fastest here.
type accelerator struct {
	wanted string // of the configuration
	dir    string
	qemu   string
	device string // of KVM
	proc   string // where an x86 tells in cpuinfo what its processor has; "" elsewhere
	limit  time.Duration
	log    hclog.Logger
}

// newAccelerator prepares the choice; nothing is tried before choose.
func newAccelerator(wanted, dir, qemu string, log hclog.Logger) *accelerator {
	a := &accelerator{
		wanted: wanted, dir: dir, qemu: qemu, device: "/dev/kvm", limit: probeTime, log: log,
	}
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" {
		a.proc = procfs.DefaultMountPoint
	}
	return a
}

// automatic reports whether the choice is ours.
func (a *accelerator) automatic() bool { return a.wanted == "" || a.wanted == autoAccel }

// configured is the choice of the operator, where it is the operator's.
func (a *accelerator) configured() (Choice, bool) {
	const why = "the configuration says so"
	switch {
	case a.automatic():
		return Choice{}, false
	case a.wanted == tcg:
		return Choice{emulation, why}, true
	}
	return Choice{a.wanted, why}, true
}

// choose tells how guests run. What the configuration wants is taken at its word,
// except "auto" and "": that is what is faster here, tried out once a boot of the
// host, because a /dev/kvm that opens does not mean that guests run.
//
// Errors: providers.ErrInvalid when QEMU is not installed.
func (a *accelerator) choose(ctx context.Context) (Choice, error) {
	binary, err := exec.LookPath(a.qemu)
	if err != nil {
		return Choice{}, fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	if c, ok := a.configured(); ok {
		return c, nil
	}
	held, err := a.lock(ctx) // one probe at a time, of all processes
	if err != nil {
		return Choice{}, err
	}
	defer held.Close() //nolint:errcheck // unlocks
	now, err := a.circumstances(binary)
	if err != nil {
		return Choice{}, err
	}
	if c, ok := a.recalled(now); ok {
		return c, nil
	}
	c, sure, err := a.find(ctx, binary)
	if err != nil {
		return Choice{}, err
	}
	if sure {
		a.remember(now, c)
	}
	a.log.Info("Accelerator of guests is chosen", "accel", c.Accel, "reason", c.Why, "remembered", sure)
	return c, nil
}

// find finds out what is faster. It is not sure of what would be found otherwise
// on a less busy host.
func (a *accelerator) find(ctx context.Context, binary string) (c Choice, sure bool, err error) {
	if why := a.noKVM(); why != "" {
		return Choice{emulation, why}, true, nil
	}
	return a.race(ctx, binary)
}

// noKVM is why KVM need not be tried, or "".
func (a *accelerator) noKVM() string {
	if a.proc != "" {
		has, err := virtualizes(a.proc)
		if err == nil && !has {
			return "the processor has neither vmx nor svm, without which KVM runs no guest at full speed"
		}
	}
	device, err := os.OpenFile(a.device, os.O_RDWR, 0)
	if err != nil {
		return "KVM cannot be used: " + err.Error()
	}
	_ = device.Close() // nothing was written
	return ""
}

// distrust makes emulation the choice, until the circumstances change: a guest
// has failed with KVM although the probe ran.
func (a *accelerator) distrust(ctx context.Context, why string) (Choice, error) {
	c := Choice{emulation, why}
	binary, err := exec.LookPath(a.qemu)
	if err != nil {
		return c, fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	held, err := a.lock(ctx)
	if err != nil {
		return c, err
	}
	defer held.Close() //nolint:errcheck // unlocks
	now, err := a.circumstances(binary)
	if err != nil {
		return c, err
	}
	a.remember(now, c)
	a.log.Warn("KVM is trusted no more: guests are emulated from now on", "reason", why)
	return c, nil
}

func (a *accelerator) lock(ctx context.Context) (*os.File, error) {
	return lock(ctx, filepath.Join(a.dir, accelLockName))
}

// Explain tells what is known of how guests of a provider run, without trying
// anything out.
//
// Errors: providers.ErrNotFound while nobody has found out; ErrInvalid when QEMU is
// not installed, or the provider is not local.
func Explain(cfg configs.Provider) (Choice, error) {
	settings := configs.SettingsOf[configs.LocalDriver](&cfg)
	if settings == nil {
		return Choice{}, fmt.Errorf("%w: provider %s is not local", providers.ErrInvalid, cfg.Name)
	}
	a := newAccelerator(settings.Accel, settings.Dir, newTools(Options{}).qemu, hclog.NewNullLogger())
	if c, ok := a.configured(); ok {
		return c, nil
	}
	binary, err := exec.LookPath(a.qemu)
	if err != nil {
		return Choice{}, fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	now, err := a.circumstances(binary)
	if err != nil {
		return Choice{}, err
	}
	return a.recall(now)
}
