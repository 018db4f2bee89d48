package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Probe reports whether files can be made where builds are noted and their images lie.
func (d *Images) Probe() error {
	for _, dir := range []string{d.dir, filepath.Join(d.dir, ownDir)} {
		if err := Writable(dir); err != nil {
			return err
		}
	}
	return nil
}

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
