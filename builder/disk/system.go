//go:build linux

package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// own takes possession of a file, until disown or the end of the process.
//
// Errors: ErrInUse.
func own(lock *os.File) error {
	err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrInUse
	}
	return err
}

// disown gives it up. Closing the file would not be enough: a process that is
// just being started has it open until it runs its program.
func disown(lock *os.File) error { return syscall.Flock(int(lock.Fd()), syscall.LOCK_UN) }

// markOf reads the mark of an open file.
func markOf(info os.FileInfo) Mark {
	m := Mark{Modified: info.ModTime().UTC()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		m.Inode = st.Ino
		m.Changed = time.Unix(st.Ctim.Unix()).UTC()
	}
	return m
}

// onDisk is how many bytes of the disk a file takes; 0 where the system does not say.
func onDisk(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Blocks * 512 // stat(2): whatever the blocks of the file system are
	}
	return 0
}

// userOf is whom a file belongs to.
func userOf(info fs.FileInfo) (uid int, err error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, fmt.Errorf("stat %s: %w", info.Name(), errors.ErrUnsupported)
	}
	return int(st.Uid), nil
}

// How a file that a build has made is opened: a link may lead to a file of this host, a FIFO
// never answers.
const careful = unix.O_NOFOLLOW | unix.O_NONBLOCK

// unreadable are the errors of what is no regular file and no link: a socket, or a device
// without a driver.
const unreadable = unix.ENXIO

// Writable reports whether a file can be made in a folder and written to. It leaves
// nothing there, whenever we are killed: the file has no name. Where the file system
// has no such files, rights alone are asked about.
func Writable(dir string) error {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
		if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
			return fmt.Errorf("write to %s: %w", dir, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("make a file in %s: %w", dir, err)
	}
	file := os.NewFile(uintptr(fd), dir)
	_, err = file.WriteString("x")
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write to %s: %w", dir, err)
	}
	return nil
}
