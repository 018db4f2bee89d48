package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
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

	readers turns // one reading of a build at a time

	mu    sync.Mutex
	known map[Name]Build // see Scan
}

// Name names a build.
type Name struct{ Image, ID string }

// String is "<image>-<id>".
func (n Name) String() string { return n.Image + "-" + n.ID }

// Open takes possession of a folder, which is made when it is missing, until
// Close or the end of the process.
//
// Errors: ErrInUse.
func Open(dir string) (*Images, error) {
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
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("open images-dir %s: %w", dir, err)
	}
	d := &Images{dir: dir, lock: lock}
	d.real, err = filepath.EvalSymlinks(dir)
	if err := errors.Join(err, d.tidy(), d.Scan()); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return d, nil
}

// Close gives the folder up. Closing the file would not be enough: a process that is
// just being started has it open until it runs its program.
func (d *Images) Close() error {
	return errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN), d.lock.Close())
}

// Dir is the folder.
func (d *Images) Dir() string { return d.dir }

// Base is the path of a build's files without their endings.
func (d *Images) Base(n Name) string { return filepath.Join(d.dir, n.String()) }

// File is the path of a build's file of a format.
func (d *Images) File(n Name, format string) string { return d.Base(n) + "." + format }

// Free is how many bytes a build may still write in the folder.
func (d *Images) Free() (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(d.dir, &fs); err != nil {
		return 0, fmt.Errorf("measure free space of %s: %w", d.dir, err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
