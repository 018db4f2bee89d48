// Package devenv makes and finds what a development environment is made of: a
// folder with a first configuration, elements and an operator's key, and a
// private ZooKeeper.
package devenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"poolkeeper/configs"
	"poolkeeper/elements"
)

// ErrInUse is returned for a folder that another process is using.
var ErrInUse = errors.New("in use by another process")

// Env is the folder of a development environment. All paths are absolute.
type Env struct {
	Dir    string
	Port   int // of ZooKeeper, on loopback
	config *configs.Config
	lock   *os.File
}

// The parts of an environment.
func (e *Env) file(name string) string { return filepath.Join(e.Dir, name) }

// ConfigFile is the configuration.
func (e *Env) ConfigFile() string { return e.file("nodepool.yaml") }

// KeyFile is the operator's private key; the public one is beside it.
func (e *Env) KeyFile() string { return e.file("id_ed25519") }

// ElementsDir holds our diskimage-builder elements.
func (e *Env) ElementsDir() string { return e.file("elements") }

// ImagesDir holds what was built.
func (e *Env) ImagesDir() string { return e.file("images") }

// BuildLogDir holds the logs of the builds.
func (e *Env) BuildLogDir() string { return e.file("build-logs") }

// CloudDir is the local provider's: its images, its guests and their consoles.
func (e *Env) CloudDir() string { return e.file("cloud") }

// ZooKeeperDir holds ZooKeeper's data and log.
func (e *Env) ZooKeeperDir() string { return e.file("zookeeper") }

// Config is the configuration as it was loaded.
func (e *Env) Config() *configs.Config { return e.config }

// Open prepares dir, which may exist: the configuration and the key that are
// there stay as they are. port is ZooKeeper's, 0 for the configuration's or a
// free one. The environment is this process's until Close.
//
// Errors: ErrInUse.
func Open(ctx context.Context, dir string, port int) (*Env, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", dir, err)
	}
	if strings.ContainsAny(dir, " \t\n\"':,%") { // of ELEMENTS_PATH, of QEMU's options, of YAML
		return nil, fmt.Errorf("prepare %q: the path must hold no blank, quote, colon, comma or percent sign", dir)
	}
	e := &Env{Dir: dir}
	if err := e.prepare(ctx, port); err != nil {
		return nil, errors.Join(fmt.Errorf("prepare %s: %w", dir, err), e.Close())
	}
	return e, nil
}

// Close lets others use the folder. Everything in it stays.
func (e *Env) Close() error {
	if e.lock == nil {
		return nil
	}
	return e.lock.Close()
}

func (e *Env) prepare(ctx context.Context, port int) error {
	for _, dir := range []string{e.Dir, e.ElementsDir(), e.ImagesDir(), e.BuildLogDir(), e.CloudDir(), e.ZooKeeperDir()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := e.takeLock(); err != nil {
		return err
	}
	if err := elements.Extract(e.ElementsDir()); err != nil {
		return err
	}
	if err := ensureKey(e.KeyFile()); err != nil {
		return err
	}
	if err := e.ensureConfig(ctx, port); err != nil {
		return err
	}
	if to, ok := invokerOf(os.Geteuid(), os.Getenv); ok {
		return e.handOver(to)
	}
	return nil
}

// takeLock makes the environment ours for as long as the process lives.
func (e *Env) takeLock() error {
	file, err := os.OpenFile(e.file("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	e.lock = file
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrInUse
		}
		return fmt.Errorf("lock %s: %w", file.Name(), err)
	}
	return nil
}
