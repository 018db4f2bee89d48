package dib

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Snapshot keeps the host's files as they are: what a daemon does to them from now on, one that has
// crashed and does not know it, is undone by Restore. What goes on running on the host writes to
// the kept ones.
func (h *Host) Snapshot() error {
	kept := h.opts.Folder + ".kept"
	err := errors.New("never tried")
	for try := 0; try < 5 && err != nil; try++ { // other goroutines may be writing
		err = errors.Join(os.RemoveAll(kept), copyTree(h.opts.Folder, kept))
	}
	if err != nil {
		return fmt.Errorf("keep the files of %s: %w", h.name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limbo = kept
	return nil
}

// Restore puts the files that were kept back, when the daemon that crashed has ended.
func (h *Host) Restore() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.limbo == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(h.opts.Folder), os.Rename(h.limbo, h.opts.Folder))
	h.limbo = ""
	return err
}

func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rest), 0o700)
		}
		return copyFile(path, filepath.Join(to, rest))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
