package dib

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A sweep looks again until nothing is left: what was killed or released a
// moment ago may hold a loop device for as long as the kernel takes it apart, and
// a process that has just begun cannot be recognised before it has its environment.
const (
	sweepPatience = 2500 * time.Millisecond
	sweepPause    = 20 * time.Millisecond
	sweepLooks    = 2 // in a row that find nothing
)

// Sweep removes what a build left of its private folder: processes that live
// in it, loop devices over its files, mounts in it, and the folder itself. A
// folder that is gone is swept.
//
// The order matters. A loop device is released before the mount over it is,
// because a lazy unmount hides the file that it belongs to; and no file is
// removed while anything is mounted below, because a bind mount of /dev there
// is the /dev of this machine.
//
// Errors: ErrLeft, naming what is left.
func Sweep(ctx context.Context, dir string) error {
	dir, err := filepath.EvalSymlinks(dir) // the kernel tells real paths
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep build: %w", err)
	}
	if err := sweepable(dir); err != nil {
		return err
	}
	patience := time.NewTimer(sweepPatience)
	defer patience.Stop()
	for quiet := 0; ; {
		clean, err := release(ctx, dir)
		if quiet++; !clean {
			quiet = 0
		}
		if quiet == sweepLooks {
			return RemoveTree(ctx, dir)
		}
		pause := time.NewTimer(sweepPause)
		select {
		case <-pause.C:
		case <-patience.C:
			return fmt.Errorf("sweep build: %w in %s: %w", ErrLeft, dir, err)
		}
	}
}

// sweepable refuses folders that nobody gives to a build alone.
func sweepable(dir string) error {
	if !strings.HasPrefix(dir, "/") || strings.Count(dir, "/") < 2 || filepath.Clean(dir) != dir {
		return fmt.Errorf("sweep build: %w: %q is no folder of a build", ErrLeft, dir)
	}
	return nil
}

// release is one round: it tells whether nothing held dir in it.
func release(ctx context.Context, dir string) (clean bool, err error) {
	living := tenants(dir)
	for _, pid := range living {
		err = errors.Join(err, kill(ctx, pid, syscall.SIGKILL))
	}
	loops, lerr := loopsOf(dir)
	for _, device := range loops {
		err = errors.Join(err, privileged(ctx, "losetup", "-d", device))
	}
	points, merr := mountsOf(dir, loops)
	for _, point := range points {
		err = errors.Join(err, privileged(ctx, "umount", "-l", point))
	}
	if err = errors.Join(err, lerr, merr); lerr != nil || merr != nil {
		return false, err
	}
	loops, lerr = loopsOf(dir)
	points, merr = mountsOf(dir, loops)
	if lerr != nil || merr != nil {
		return false, errors.Join(err, lerr, merr)
	}
	if len(loops)+len(points) > 0 {
		err = errors.Join(err, fmt.Errorf("mounts %q, loop devices %q", points, loops))
		return false, err
	}
	return len(living) == 0, err
}

// RemoveTree removes a folder with nothing mounted in it. Builds make files as
// root and folders without write permission.
func RemoveTree(ctx context.Context, dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if err := privileged(ctx, "rm", "-rf", "--one-file-system", "--", dir); err != nil {
		return fmt.Errorf("sweep build: %w: %w", ErrLeft, err)
	}
	return nil
}
