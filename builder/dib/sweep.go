//go:build linux

package dib

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// A sweep looks again until nothing is left: what was killed or released a
// moment ago may hold a loop device for as long as the kernel takes it apart, and
// a process that has just begun cannot be recognised before it has its environment.
const (
	sweepPatience = 2500 * time.Millisecond
	sweepPause    = 20 * time.Millisecond
	sweepLooks    = 2 // in a row that find nothing
)

// errRestless says that a build had new processes in each round.
var errRestless = errors.New("new processes begin all the time")

// Sweep removes what a build left: its processes, loop devices over files in its
// private folder, mounts in it, and the folder itself. A folder that is gone is
// swept; one that does not prove to be the build's stays untouched, and so do
// processes that live in it and do not prove to be of the build.
//
// The order matters. A loop device is released before the mount over it is,
// because a lazy unmount hides the file that it belongs to; and no file is
// removed while anything is mounted below, because a bind mount of /dev there
// is the /dev of this machine.
//
// Errors: ErrLeft, naming what is left.
func (s Scratch) Sweep(ctx context.Context) error {
	if s == (Scratch{}) {
		return nil
	}
	if s.Dir == "" {
		return s.free(ctx)
	}
	if err := s.sweepable(); err != nil {
		return err
	}
	if err := s.free(ctx); err != nil {
		return err
	}
	err := s.prove()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sweep build: %w: %w; nothing in it was touched", ErrLeft, err)
	}
	others := s.others()
	if err := s.remove(ctx); err != nil {
		return fmt.Errorf("sweep build: %w: %w", ErrLeft, err)
	}
	if len(others) > 0 {
		return fmt.Errorf("sweep build: %w: processes %v live in %s and do not prove to be of the build; they go on", ErrLeft, others, s.Dir)
	}
	return nil
}

// remove removes the folder, and its mark last: without it nobody would sweep the
// rest after a crash.
func (s Scratch) remove(ctx context.Context) error {
	dir, err := openFolder(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	err = eachEntry(dir, func(name string) error {
		if name == markerFile {
			return nil
		}
		return removeEntry(ctx, dir, name)
	})
	if err != nil {
		return err
	}
	return RemoveTree(ctx, s.Dir)
}

// free ends the build's processes and takes off its mounts.
func (s Scratch) free(ctx context.Context) error {
	patience := time.NewTimer(sweepPatience)
	defer patience.Stop()
	for quiet := 0; ; {
		clean, err := s.release(ctx)
		if quiet++; !clean {
			quiet = 0
		}
		if quiet == sweepLooks {
			return nil
		}
		pause := time.NewTimer(sweepPause)
		select {
		case <-pause.C:
		case <-patience.C:
			return fmt.Errorf("sweep build: %w: %w", ErrLeft, cmp.Or(err, errRestless))
		}
	}
}

// release is one round: it reports whether nothing held the folder in it.
func (s Scratch) release(ctx context.Context) (clean bool, err error) {
	living, err := s.tenants()
	if err != nil {
		return false, err
	}
	for _, pid := range living {
		err = errors.Join(err, kill(ctx, pid, syscall.SIGKILL))
	}
	if s.Dir == "" || !s.mountsAreOurs() {
		return len(living) == 0, err
	}
	free, derr := detach(ctx, s.Dir)
	return free && len(living) == 0, errors.Join(err, derr)
}

// mountsAreOurs reports whether what is mounted in the folder is the build's: the
// folder is, or it is gone or covered by a mount of its own. Only root mounts, and
// nobody knows the name of the folder before it is made.
func (s Scratch) mountsAreOurs() bool {
	err := s.prove()
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return true
	}
	points, merr := mountinfo.GetMounts(mountinfo.SingleEntryFilter(s.Dir))
	return merr == nil && !s.legacy() && len(points) > 0
}

// detach is one round of taking off what is mounted on a path or below it: it
// reports whether there was nothing.
func detach(ctx context.Context, path string) (free bool, err error) {
	loops, lerr := loopsOf(path)
	for _, device := range loops {
		err = errors.Join(err, privileged(ctx, "losetup", "-d", device))
	}
	points, merr := mountsOf(path, loops)
	for _, point := range points {
		err = errors.Join(err, privileged(ctx, "umount", "-l", point))
	}
	if err = errors.Join(err, lerr, merr); lerr != nil || merr != nil {
		return false, err
	}
	loops, lerr = loopsOf(path)
	points, merr = mountsOf(path, loops)
	if lerr != nil || merr != nil {
		return false, errors.Join(err, lerr, merr)
	}
	if len(loops)+len(points) > 0 {
		return false, errors.Join(err, fmt.Errorf("mounts %q, loop devices %q", points, loops))
	}
	return true, err
}

// Make makes the folder, for its owner alone. A folder that is there already is
// another's.
func (s Scratch) Make() error {
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	dir, err := openFolder(s.Dir)
	if err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	defer func() { _ = dir.Close() }()
	if err := own(dir); err != nil {
		return fmt.Errorf("make temporary folder of build: %w", err)
	}
	fd, err := unix.Openat(int(dir.Fd()), markerFile, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("mark temporary folder of build: %w", err)
	}
	marker := os.NewFile(uintptr(fd), markerFile)
	_, err = marker.WriteString(s.mark())
	if err = errors.Join(err, marker.Close()); err != nil {
		return fmt.Errorf("mark temporary folder of build: %w", err)
	}
	return nil
}

// prove makes sure that the folder is the one that Make made. An error that is
// fs.ErrNotExist says that there is none.
func (s Scratch) prove() error {
	dir, err := openFolder(s.Dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := own(dir); err != nil || s.legacy() {
		return err
	}
	fd, err := unix.Openat(int(dir.Fd()), markerFile, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && empty(dir) {
		return nil // we died between the folder and its marker
	}
	if err != nil {
		return fmt.Errorf("%s: open %s: %s", s.Dir, markerFile, err.Error())
	}
	marker := os.NewFile(uintptr(fd), markerFile)
	defer func() { _ = marker.Close() }()
	text, err := io.ReadAll(io.LimitReader(marker, 4<<10))
	if err == nil && (string(text) == s.mark() || strings.HasPrefix(s.mark(), string(text)) && onlyMarker(dir)) {
		return nil // whole, or we died when we wrote it
	}
	return fmt.Errorf("%s has the mark of another build", s.Dir)
}

// own refuses a folder of another user.
func own(dir *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("%s: %w", dir.Name(), err)
	}
	if int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d", dir.Name(), st.Uid)
	}
	return nil
}

// onlyMarker reports whether a folder holds the marker and nothing else.
func onlyMarker(dir *os.File) bool {
	names, err := dir.Readdirnames(2)
	return err == nil && len(names) == 1 && names[0] == markerFile
}

func empty(dir *os.File) bool {
	_, err := dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// openFolder opens a folder that no link leads to.
//
// Errors: fs.ErrNotExist.
func openFolder(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%s is a link or no folder", path)
	case err != nil:
		return nil, fmt.Errorf("open folder %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
