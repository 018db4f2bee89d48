package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
)

const (
	autoAccel = "auto"
	kvm       = "kvm"
	// emulation works everywhere, at a tenth of the speed. QEMU would keep up to
	// 1 GiB of translated code a guest; a quarter holds all that a CI node runs often.
	emulation = "tcg,thread=multi,tb-size=256"
	accelName = "accel.json" // the cache, in the provider's folder
)

// accelerator finds out how guests run fastest here.
type accelerator struct {
	wanted string // of the configuration
	dir    string
	qemu   string
	device string // of KVM
	limit  time.Duration
	log    hclog.Logger
	turn   chan struct{} // holds one token: one probe at a time
}

// newAccelerator prepares the choice; nothing is tried before choose.
func newAccelerator(wanted, dir, qemu string, log hclog.Logger) *accelerator {
	a := &accelerator{
		wanted: wanted, dir: dir, qemu: qemu, device: "/dev/kvm", limit: probeTime,
		log: log, turn: make(chan struct{}, 1),
	}
	a.turn <- struct{}{}
	return a
}

// probed is a finding and what it depends on: another boot of the host, another
// QEMU or another user may come to another one.
type probed struct {
	Accel  string    `json:"accel"`
	Boot   string    `json:"boot_id"`
	QEMU   string    `json:"qemu"`
	Size   int64     `json:"qemu_size"`
	Time   time.Time `json:"qemu_time"`
	Device time.Time `json:"device_time"` // when /dev/kvm was made
	User   int       `json:"user"`
}

// choose gives the argument of QEMU's -accel. What the configuration wants is
// taken at its word, except "auto" and "": then a machine of a few instructions
// is booted with KVM, once a boot of the host, because a /dev/kvm that opens
// does not mean that guests run.
//
// Errors: providers.ErrInvalid when QEMU is not installed.
func (a *accelerator) choose(ctx context.Context) (string, error) {
	binary, err := exec.LookPath(a.qemu)
	if err != nil {
		return "", fmt.Errorf("%w: %w", providers.ErrInvalid, err)
	}
	switch a.wanted {
	case "", autoAccel:
	case "tcg":
		return emulation, nil
	default:
		return a.wanted, nil
	}
	select {
	case <-a.turn:
		defer func() { a.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	return a.find(ctx, binary)
}

// find takes the finding from the cache, or probes.
func (a *accelerator) find(ctx context.Context, binary string) (string, error) {
	now, err := a.circumstances(binary)
	if err != nil {
		return "", err
	}
	path := filepath.Join(a.dir, accelName)
	var before probed
	if err := readRecord(path, &before); err != nil && !errors.Is(err, providers.ErrNotFound) {
		a.log.Warn("Remembered accelerator is not readable and found out anew", "error", err)
	}
	now.Accel = before.Accel
	if before.Accel != "" && before == now {
		return now.Accel, nil
	}
	if now.Accel, err = a.probe(ctx, binary); err != nil {
		return "", err
	}
	if err := writeRecord(path, now); err != nil {
		a.log.Warn("Accelerator is not remembered", "error", err)
	}
	return now.Accel, nil
}

// circumstances are what a finding depends on.
func (a *accelerator) circumstances(binary string) (probed, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return probed{}, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return probed{}, err
	}
	c := probed{
		Boot: strings.TrimSpace(string(boot)), QEMU: binary,
		Size: info.Size(), Time: info.ModTime().UTC(), User: os.Geteuid(),
	}
	if device, err := os.Stat(a.device); err == nil {
		c.Device = device.ModTime().UTC()
	}
	return c, nil
}

// probe tries KVM.
func (a *accelerator) probe(ctx context.Context, binary string) (string, error) {
	device, err := os.OpenFile(a.device, os.O_RDWR, 0)
	if err != nil {
		a.log.Info("Guests are emulated", "reason", err)
		return emulation, nil
	}
	if err := device.Close(); err != nil {
		return "", err
	}
	err = bootProbe(ctx, binary, kvm, a.dir, a.limit)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		a.log.Warn("Guests are emulated, because none runs with KVM", "reason", err)
		return emulation, nil
	}
	a.log.Info("Guests run with KVM")
	return kvm, nil
}
