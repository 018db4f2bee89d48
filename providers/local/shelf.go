package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"poolkeeper/configs/kit"
)

// Names on a shelf that are no entries.
const (
	stagePrefix = ".new-"  // being made, by the holder of its flock
	gonePrefix  = ".gone-" // being removed, by anybody
	lockName    = ".lock"
)

// shelf is a folder of entries, each a folder of files that appears and
// disappears as a whole. What a crash leaves has a name with a dot.
type shelf struct{ dir string }

// path is where an entry is. The id must be safe.
func (s shelf) path(id string, file ...string) string {
	return filepath.Join(append([]string{s.dir, id}, file...)...)
}

// ids names the entries.
func (s shelf) ids() ([]string, error) {
	all, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range all {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// lock keeps other processes from adding entries.
func (s shelf) lock(ctx context.Context) (*os.File, error) { return lock(ctx, s.path(lockName)) }

// stage is an entry that is being made.
type stage struct {
	shelf shelf
	dir   string
	held  *os.File
}

// stage begins an entry. Its caller ends it by commit or abort.
func (s shelf) stage(ctx context.Context) (*stage, error) {
	held, err := s.lock(ctx) // keeps the sweep from a folder that has no lock yet
	if err != nil {
		return nil, err
	}
	defer held.Close() //nolint:errcheck // unlocks
	return s.stageLocked()
}

// stageLocked is stage for a caller that holds the shelf's lock.
func (s shelf) stageLocked() (*stage, error) {
	dir, err := os.MkdirTemp(s.dir, stagePrefix)
	if err != nil {
		return nil, err
	}
	st := &stage{shelf: s, dir: dir}
	if st.held, err = os.Open(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := flock(st.held, unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, st.abort())
	}
	return st, nil
}

// commit puts the entry on the shelf, safe from a crash of the host.
func (st *stage) commit(id string) error {
	if err := st.held.Sync(); err != nil {
		return errors.Join(err, st.abort())
	}
	if err := os.Rename(st.dir, st.shelf.path(id)); err != nil {
		return errors.Join(err, st.abort())
	}
	return errors.Join(st.held.Close(), syncDir(st.shelf.dir))
}

// abort removes the entry.
func (st *stage) abort() error {
	return errors.Join(os.RemoveAll(st.dir), st.held.Close())
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// remove takes an entry away. It is no error when it is gone already.
func (s shelf) remove(id string) error {
	gone := s.path(gonePrefix + id + "-" + kit.RandomHex(4))
	err := os.Rename(s.path(id), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// sweep removes what dead processes left. While another process adds an entry
// there is no need: its own start has swept.
func (s shelf) sweep() error {
	held, err := tryLock(s.path(lockName), unix.LOCK_EX)
	if errors.Is(err, errBusy) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // unlocks
	all, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		if err := s.sweepOne(e.Name()); err != nil {
			return fmt.Errorf("remove what a dead process left: %w", err)
		}
	}
	return nil
}

func (s shelf) sweepOne(name string) error {
	switch {
	case strings.HasPrefix(name, gonePrefix):
		return os.RemoveAll(s.path(name))
	case !strings.HasPrefix(name, stagePrefix):
		return nil
	}
	dir, err := os.Open(s.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // committed or aborted a moment ago
	}
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // only read
	if err := flock(dir, unix.LOCK_EX); err != nil {
		if errors.Is(err, errBusy) {
			return nil // its maker lives
		}
		return err
	}
	return os.RemoveAll(s.path(name))
}
