//go:build !linux

package disk

import (
	"io/fs"
	"os"
	"syscall"
)

// Builds are made on Linux only. Elsewhere, which is in the simulation's replay, one process has
// the folder, and all files are its own.

func own(*os.File) error { return nil }

func disown(*os.File) error { return nil }

func markOf(info os.FileInfo) Mark { return Mark{Modified: info.ModTime().UTC()} }

func onDisk(fs.FileInfo) int64 { return 0 }

func userOf(fs.FileInfo) (uid int, err error) { return os.Geteuid(), nil }

const (
	careful    = 0
	unreadable = syscall.ENXIO
)

// Writable reports whether a file can be made in a folder and written to.
func Writable(dir string) error {
	file, err := os.CreateTemp(dir, ".probe")
	if err != nil {
		return err
	}
	_ = file.Close()
	return os.Remove(file.Name())
}
