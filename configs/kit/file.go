package kit

import (
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"
)

// ReplaceFile writes a file anew, at once or not at all, for its owner alone whatever mode
// the one before had.
func ReplaceFile(file string, data []byte) error {
	return replaceFile(file, data, func(*renameio.PendingFile) error { return nil })
}

// ReplaceFileLike replaces a file in one step and gives it the owner, group and mode of another file. If the process
// may not set the owner, the process owns the file. If it may not set the group, the group has the rights of others.
func ReplaceFileLike(file string, data []byte, like fs.FileInfo) error {
	return replaceFile(file, data, func(f *renameio.PendingFile) error {
		mode := like.Mode().Perm()
		owner, ok := like.Sys().(*syscall.Stat_t)
		if ok && f.Chown(int(owner.Uid), int(owner.Gid)) != nil {
			ok = f.Chown(-1, int(owner.Gid)) == nil
		}
		if !ok {
			mode = mode&^0o070 | mode&0o007<<3
		}
		return f.Chmod(mode)
	})
}

// replaceFile replaces a file in one step; prepare changes the new one before it has content.
func replaceFile(file string, data []byte, prepare func(*renameio.PendingFile) error) error {
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // nothing is left once it has replaced the other
	if err := prepare(f); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
