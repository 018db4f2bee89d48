//go:build linux

package dib

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a file, or a folder with all that is in it. It follows no
// link, and takes nothing from what is mounted there: that is an error. Builds
// make files as root and folders without write permission, so sudo helps those
// who are not root.
//
// Errors: ErrLeft.
func RemoveTree(ctx context.Context, path string) error {
	parent, err := openFolder(filepath.Dir(path))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove files: %w: %w", ErrLeft, err)
	}
	defer func() { _ = parent.Close() }()
	if err := removeEntry(ctx, parent, filepath.Base(path)); err != nil {
		return fmt.Errorf("remove files: %w: %w", ErrLeft, err)
	}
	return nil
}

// removeEntry removes what has a name in a folder, as root where we may not.
func removeEntry(ctx context.Context, folder *os.File, name string) error {
	err := removeAt(folder, name)
	if errors.Is(err, os.ErrPermission) && os.Geteuid() != 0 {
		return removeAsRoot(ctx, filepath.Join(folder.Name(), name))
	}
	return err
}

// removeAt removes what has a name in a folder, and all below it.
func removeAt(folder *os.File, name string) error {
	path := filepath.Join(folder.Name(), name)
	err := unix.Unlinkat(int(folder.Fd()), name, 0)
	switch {
	case err == nil, errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EISDIR), errors.Is(err, unix.EPERM): // folders, as Linux and POSIX name them
	default:
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	// RESOLVE_NO_XDEV also stops at a bind mount of the same file system, which
	// no device number tells.
	fd, err := unix.Openat2(int(folder.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("something is mounted on %s", path)
	default:
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	err = eachEntry(dir, func(name string) error { return removeAt(dir, name) })
	_ = dir.Close()
	if err != nil {
		return err
	}
	if err := unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR); err != nil && !errors.Is(err, unix.ENOENT) {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}

// eachEntry does something with each name in a folder, and goes on after errors.
func eachEntry(dir *os.File, do func(name string) error) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("list %s: %w", dir.Name(), err)
	}
	for _, name := range names {
		err = errors.Join(err, do(name))
	}
	return err
}

// removeAsRoot removes what our user may not. rm follows no link; mounts it
// would cross, and only root can make one between our look and its work.
func removeAsRoot(ctx context.Context, path string) error {
	points, err := mountsOf(path, nil)
	if err != nil {
		return err
	}
	if len(points) > 0 {
		return fmt.Errorf("something is mounted on %q", points)
	}
	return privileged(ctx, "rm", "-rf", "--one-file-system", "--", path)
}

// Unmount takes off what is mounted on a path or below it. What the mounts show
// stays as it is.
//
// Errors: ErrLeft.
func Unmount(ctx context.Context, path string) error {
	points, err := mountsOf(path, nil)
	for _, point := range points {
		err = errors.Join(err, privileged(ctx, "umount", "-l", point))
	}
	if err != nil {
		return fmt.Errorf("take off mounts in %s: %w: %w", path, ErrLeft, err)
	}
	return nil
}
