package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// tidy removes folders of builds without a manifest: a crash came between the
// folder and its manifest, at the beginning or at the end, and left nothing
// else but the file in which the manifest was to be written.
func (d *Images) tidy() error {
	unfinished, err := filepath.Glob(filepath.Join(d.dir, ownDir, "."+idFile+"*")) // see BuilderID
	if err != nil {
		return fmt.Errorf("tidy images-dir: %w", err)
	}
	for _, file := range unfinished {
		if err := gone(os.Remove(file)); err != nil {
			return fmt.Errorf("tidy images-dir: %w", err)
		}
	}
	folders, err := filepath.Glob(filepath.Join(d.dir, ownDir, "*"))
	if err != nil {
		return fmt.Errorf("tidy images-dir: %w", err)
	}
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue // no folder
		}
		isOdd := func(e fs.DirEntry) bool { return !e.Type().IsRegular() || e.Name() == manifestFile }
		if slices.ContainsFunc(entries, isOdd) {
			continue
		}
		for _, entry := range entries {
			err = errors.Join(err, gone(os.Remove(filepath.Join(folder, entry.Name()))))
		}
		if err = errors.Join(err, gone(os.Remove(folder))); err != nil {
			return fmt.Errorf("tidy images-dir: %w", err)
		}
	}
	return nil
}
