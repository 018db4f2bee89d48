package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"poolkeeper/providers"
)

// recordName is the file that describes an entry of a shelf.
const recordName = "record.json"

// writeRecord replaces a record so that a reader sees the old or the new one,
// whatever crashes.
func writeRecord(path string, record any) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(data, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(path)))
}

// readRecord reads a record. A broken one is an error that names the file: to
// go on without it would make a list look complete.
//
// Errors: providers.ErrNotFound.
func readRecord(path string, record any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return providers.ErrNotFound
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, record); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// diskError marks a full disk as ErrQuota, because free space fixes it; other errors stay.
func diskError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: the disk is full: %w", providers.ErrQuota, err)
	}
	return err
}
