// Package elements carries the diskimage-builder elements of this folder in the
// binary, so that it can try itself out where there is no checkout.
package elements

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Dot files are part of an element, too.
//
//go:embed all:*
var files embed.FS

// Extract writes the elements below dir, each file only where it differs.
// Elements in dir that are not ours stay as they are.
func Extract(dir string) error {
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case path.Dir(name) == ".": // of this package, not of an element
			return nil
		}
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		return write(target, content)
	})
	if err != nil {
		return fmt.Errorf("extract elements: %w", err)
	}
	return nil
}

// write makes target hold content. Embedding loses the permissions: what begins
// as a script is one.
func write(target string, content []byte) error {
	mode := fs.FileMode(0o644)
	if bytes.HasPrefix(content, []byte("#!")) {
		mode = 0o755
	}
	have, err := os.ReadFile(target)
	if err == nil && bytes.Equal(have, content) {
		return os.Chmod(target, mode)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return renameio.WriteFile(target, content, mode, renameio.IgnoreUmask(), renameio.WithTempDir(filepath.Dir(target)))
}
