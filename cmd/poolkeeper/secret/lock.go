package secret

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/configs/clock"
)

// lockRetry is how often a lock is tried again; a blocking flock could not be interrupted.
const lockRetry = 20 * time.Millisecond

// lockFolders keeps other `secret` commands that change files from the folders of files, from
// before these are read until they are written. The folder is locked, not the file: that is
// replaced by another one, and a file to be locked beside it would stay. Files that are missing
// are passed over.
func (a *App) lockFolders(ctx context.Context, names ...string) (unlock func(), err error) {
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			_ = f.Close() // unlocks
		}
	}
	folders, err := openFolders(names)
	held = folders
	if err == nil {
		for _, f := range folders {
			if err = a.lockFolder(ctx, f); err != nil {
				break
			}
		}
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// openFolders opens the folders of files, each once, and in an order that is the same for all
// commands, so that no two wait for each other.
func openFolders(names []string) ([]*os.File, error) {
	type folder struct {
		dev, ino uint64
		file     *os.File
	}
	var folders []folder
	var failed error
	for _, name := range names {
		path, err := filepath.EvalSymlinks(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var f *os.File
		if err == nil {
			f, err = os.Open(filepath.Dir(path))
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("lock the folder of %s: %w", name, err))
			continue
		}
		var stat unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &stat); err != nil {
			failed = errors.Join(failed, fmt.Errorf("lock the folder of %s: %w", name, err))
		}
		one := folder{stat.Dev, stat.Ino, f}
		if slices.ContainsFunc(folders, func(o folder) bool { return o.dev == one.dev && o.ino == one.ino }) {
			_ = f.Close() // it is held already
			continue
		}
		folders = append(folders, one)
	}
	slices.SortFunc(folders, func(x, y folder) int { return cmp.Or(cmp.Compare(x.dev, y.dev), cmp.Compare(x.ino, y.ino)) })
	files := make([]*os.File, 0, len(folders))
	for _, f := range folders {
		files = append(files, f.file)
	}
	return files, failed
}

// lockFolder waits for the lock of one folder, and says so.
func (a *App) lockFolder(ctx context.Context, f *os.File) error {
	for told := false; ; told = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		case !told:
			fmt.Fprintf(a.Stderr, "poolkeeper: waiting for another command that changes sealed values in %s\n", f.Name())
		}
		if err := clock.Sleep(ctx, lockRetry); err != nil {
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}
