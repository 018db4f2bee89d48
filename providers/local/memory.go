package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"poolkeeper/providers"
)

// probeVersion counts the kinds of probes that we had: what another kind found is
// not believed.
const probeVersion = 2

// circumstances are what a choice depends on: another boot of the host, another
// QEMU, device or user may come to another one.
type circumstances struct {
	Probe  int       `json:"probe"`
	Boot   string    `json:"boot_id"`
	QEMU   string    `json:"qemu"`
	Size   int64     `json:"qemu_size"`
	Time   time.Time `json:"qemu_time"`
	Path   string    `json:"device"`
	Device time.Time `json:"device_time"` // when the device was made; zero when there is none
	User   int       `json:"user"`
}

// remembered is a choice with its circumstances.
type remembered struct {
	circumstances
	Accel string `json:"accel"`
	Why   string `json:"why"`
}

// circumstances are those of now.
func (a *accelerator) circumstances(binary string) (circumstances, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return circumstances{}, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return circumstances{}, err
	}
	c := circumstances{
		Probe: probeVersion, Boot: strings.TrimSpace(string(boot)), QEMU: binary,
		Size: info.Size(), Time: info.ModTime().UTC(), Path: a.device, User: os.Geteuid(),
	}
	if device, err := os.Stat(a.device); err == nil {
		c.Device = device.ModTime().UTC()
	}
	return c, nil
}

// recall is the choice that was made in these circumstances, if one was.
//
// Errors: providers.ErrNotFound.
func (a *accelerator) recall(now circumstances) (Choice, error) {
	var before remembered
	if err := readRecord(filepath.Join(a.dir, accelName), &before); err != nil {
		return Choice{}, err
	}
	if before.Accel == "" || before.circumstances != now {
		return Choice{}, providers.ErrNotFound
	}
	return Choice{before.Accel, before.Why}, nil
}

// recalled is recall for one who can find out anew.
func (a *accelerator) recalled(now circumstances) (Choice, bool) {
	c, err := a.recall(now)
	if err != nil && !errors.Is(err, providers.ErrNotFound) {
		a.log.Warn("Remembered accelerator is not readable and found out anew", "error", err)
	}
	return c, err == nil
}

// remember keeps a choice for these circumstances.
func (a *accelerator) remember(now circumstances, c Choice) {
	path := filepath.Join(a.dir, accelName)
	if err := writeRecord(path, remembered{now, c.Accel, c.Why}); err != nil {
		a.log.Warn("Accelerator is not remembered", "error", err)
	}
}
