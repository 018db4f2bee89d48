package kit

import (
	"path/filepath"

	"github.com/google/renameio/v2"
)

// ReplaceFile writes a file anew, at once or not at all, for its owner alone whatever mode
// the one before had.
func ReplaceFile(file string, data []byte) error {
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		return err
	}
	defer f.Cleanup() //nolint:errcheck // nothing is left once it has replaced the other
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.CloseAtomicallyReplace()
}
