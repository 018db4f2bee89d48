// Package local is the embedded provider: images are files on this host, nodes
// are QEMU guests with an SSH port on the loopback address.
//
// Everything it knows is on disk below one folder, so several processes (a
// builder, some launchers) share it, a restart finds everything again, and a
// guest does not depend on the process that started it.
package local

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// What a guest gets when neither the provider nor the label says.
const (
	defaultGuests = 2
	defaultMemory = 1024 // MiB
	defaultCores  = 1
	sshPort       = 22
	// defaultReadyTime is how long a boot may take, where no boot-timeout says so.
	defaultReadyTime = 3 * time.Minute
)

// Options are what a Provider needs besides its configuration.
type Options struct {
	Logger hclog.Logger // nil is silent
	// The programs, searched in PATH; "" means the usual name of each.
	QEMU, QEMUImg, Genisoimage string
}

// Provider keeps images and guests below one folder of this host.
type Provider struct {
	cfg    configs.Provider
	local  configs.LocalDriver
	log    hclog.Logger
	tools  tools
	images shelf
	guests shelf
	speed  *accelerator
	calls  providers.CallCounter
	events parking // of guests that nobody watches yet

	patience  time.Duration // with a guest that does nothing
	readyTime time.Duration // until a machine that is to be saved asks for its identity
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Preparer = (*Provider)(nil)
	_ providers.Watcher  = (*Provider)(nil)
)

// New opens, and if need be makes, the folder that its settings name, and removes what
// dead processes left half-done there. It needs none of the programs yet.
//
// Errors: providers.ErrInvalid for settings that cannot work, or those of the
// file system.
func New(cfg configs.Provider, opts Options) (*Provider, error) {
	p := &Provider{cfg: cfg, log: opts.Logger, tools: newTools(opts), patience: patience}
	p.readyTime = cmp.Or(cfg.BootTimeout, defaultReadyTime)
	if p.log == nil {
		p.log = hclog.NewNullLogger()
	}
	p.log = p.log.Named("local").With("provider", cfg.Name)
	settings := configs.SettingsOf[configs.LocalDriver](&cfg)
	if settings == nil || settings.Dir == "" {
		return nil, fmt.Errorf("open local provider %s: %w: no dir", cfg.Name, providers.ErrInvalid)
	}
	p.local = withDefaults(*settings)
	if err := p.openFolders(); err != nil {
		return nil, fmt.Errorf("open local provider %s: %w", cfg.Name, err)
	}
	p.speed = newAccelerator(p.local.Accel, p.local.Dir, p.tools.qemu, p.log)
	return p, nil
}

func withDefaults(l configs.LocalDriver) configs.LocalDriver {
	l.MaxGuests = cmp.Or(l.MaxGuests, defaultGuests)
	l.Memory = cmp.Or(l.Memory, defaultMemory)
	l.Cores = cmp.Or(l.Cores, defaultCores)
	return l
}

// openFolders makes the two shelves. Their contents are for nobody else: a
// guest's disk may hold secrets of the jobs that ran there.
func (p *Provider) openFolders() error {
	dir, err := filepath.Abs(p.local.Dir) // QEMU and its tools run elsewhere
	if err != nil {
		return err
	}
	p.local.Dir = dir
	p.images = shelf{filepath.Join(dir, "images")}
	p.guests = shelf{filepath.Join(dir, "guests")}
	for _, s := range []shelf{p.images, p.guests} {
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return err
		}
		if err := s.sweep(); err != nil {
			return err
		}
	}
	return p.sweepSnapshots()
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Prepare implements providers.Preparer: it finds out how guests run here, once a
// boot of the host. The first CreateNode would do so too, and take up to three
// seconds longer.
//
// Errors: providers.ErrInvalid when QEMU is not installed.
func (p *Provider) Prepare(ctx context.Context) error {
	_, err := p.speed.choose(ctx)
	return err
}

// Close implements providers.Provider. Guests go on running.
func (p *Provider) Close() error {
	p.events.close()
	return nil
}
