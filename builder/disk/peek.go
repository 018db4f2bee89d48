package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// Peek looks into a folder of images without taking possession of it, and
// changes nothing. A folder that does not exist is empty. The result is for
// reading, and needs no Close.
func Peek(dir string) (*Images, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("look into images-dir: %w", err)
	}
	d := &Images{dir: dir}
	if err := d.Scan(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return d, nil
}
