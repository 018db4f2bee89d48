package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"poolkeeper/builder/dib"
)

// ownDir is our folder in the folder of images. Its name matches no pattern by
// which Nodepool's builder recognises builds.
const ownDir = ".poolkeeper"

// Images is a folder of built images. Its methods may be called from several
// goroutines; those on one build, from one at a time.
type Images struct {
	dir  string
	real string // dir without links
	lock *os.File
	host Host

	readers turns // one reading of a build at a time

	mu      sync.Mutex
	known   map[Name]Build    // see Scan
	numbers map[string]string // see Seen; nil before it is read
}

// Name names a build.
type Name struct{ Image, ID string }

// String is "<image>-<id>".
func (n Name) String() string { return n.Image + "-" + n.ID }

// Host is the machine that the folder is on, which builds are made on.
type Host interface {
	Reclaim(ctx context.Context, run dib.Processes, scratch dib.Scratch) error
	Free(dir string) (int64, error)
}

// Open takes possession of a folder of this machine, which is made when it is missing, until
// Close or the end of the process.
//
// Errors: ErrInUse.
func Open(dir string) (*Images, error) { return OpenOn(dib.Here{}, dir) }

// OpenOn is Open on another machine.
func OpenOn(host Host, dir string) (*Images, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open images-dir: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ownDir), 0o755); err != nil {
		return nil, fmt.Errorf("open images-dir: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ownDir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open images-dir: %w", err)
	}
	if err := own(lock); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("open images-dir %s: %w", dir, err)
	}
	d := &Images{dir: dir, lock: lock, host: host}
	d.real, err = filepath.EvalSymlinks(dir)
	if err := errors.Join(err, d.tidy(), d.Scan()); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the folder up.
func (d *Images) Close() error { return errors.Join(disown(d.lock), d.lock.Close()) }

// Dir is the folder.
func (d *Images) Dir() string { return d.dir }

// Base is the path of a build's files without their endings.
func (d *Images) Base(n Name) string { return filepath.Join(d.dir, n.String()) }

// File is the path of a build's file of a format.
func (d *Images) File(n Name, format string) string { return d.Base(n) + "." + format }

// Free is how many bytes a build may still write in the folder.
func (d *Images) Free() (int64, error) { return d.host.Free(d.dir) }

// Peek looks into a folder of images without taking possession of it, and
// changes nothing. A folder that does not exist is empty. The result is for
// reading, and needs no Close.
func Peek(dir string) (*Images, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("look into images-dir: %w", err)
	}
	d := &Images{dir: dir, host: dib.Here{}}
	if err := d.Scan(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d, nil
}
