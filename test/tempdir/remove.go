package tempdir

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Remove takes off what is mounted in a folder, what was mounted last first, and removes it with all that is in
// it. It follows no link and enters nothing that is mounted meanwhile.
//
// Errors: ErrMounted, and nothing was removed.
func Remove(dir string) error {
	return remove(dir, func(point string) error { return unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) })
}

// remove is Remove with a way to take off a mount.
func remove(dir string, unmount func(point string) error) error {
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	points, err := mounts(dir)
	for _, point := range points {
		if uerr := unmount(point); uerr != nil {
			err = errors.Join(err, fmt.Errorf("take off %s: %w", point, uerr))
		}
	}
	left, lerr := mounts(dir)
	if err = errors.Join(err, lerr); lerr != nil || len(left) > 0 {
		return fmt.Errorf("remove %s: %w on %q: %w", dir, ErrMounted, left, cmp.Or(err, errors.New("it came again")))
	}
	parent, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	return removeAt(parent, filepath.Base(dir))
}

// mounts are the mount points at and below a folder, deepest first, and of those that cover each other the last
// one first.
func mounts(dir string) ([]string, error) {
	all, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir)) // in the order of mounting
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	var points []string
	for _, m := range slices.Backward(all) {
		points = append(points, m.Mountpoint)
	}
	slices.SortStableFunc(points, func(a, b string) int {
		return cmp.Compare(strings.Count(b, "/"), strings.Count(a, "/"))
	})
	return points, nil
}

// removeAt removes what has a name in a folder, and all below it. The kernel stops it where something is mounted,
// of the same file system too, whose device number is no other.
func removeAt(folder *os.File, name string) error {
	path := filepath.Join(folder.Name(), name)
	err := unix.Unlinkat(int(folder.Fd()), name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) { // folders, as Linux and POSIX name them
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	fd, err := unix.Openat2(int(folder.Fd()), name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_XDEV | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH,
	})
	if errors.Is(err, unix.EXDEV) {
		return fmt.Errorf("remove: %w on %s", ErrMounted, path)
	}
	if err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	dir := os.NewFile(uintptr(fd), path)
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		err = errors.Join(err, removeAt(dir, name))
	}
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	if err := unix.Unlinkat(int(folder.Fd()), name, unix.AT_REMOVEDIR); err != nil {
		return &os.PathError{Op: "remove", Path: path, Err: err}
	}
	return nil
}
