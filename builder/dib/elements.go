package dib

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Command is the program that builds images, unless a configuration names another.
const Command = "disk-image-create"

// ownElements is where diskimage-builder's own elements are below its prefix: as
// Debian's package has them, and as pip does.
var ownElements = []string{
	"lib/python3/dist-packages/diskimage_builder/elements",
	"lib/python3*/dist-packages/diskimage_builder/elements",
	"lib/python3*/site-packages/diskimage_builder/elements",
}

// OwnElements is the folder of the elements that diskimage-builder brings; "" when
// it is not installed here, or not where it usually is.
func OwnElements(command string) string {
	for prefix := command; prefix != "/" && prefix != "."; {
		prefix = filepath.Dir(prefix)
		for _, pattern := range ownElements {
			if found, err := filepath.Glob(filepath.Join(prefix, pattern)); err == nil && len(found) > 0 {
				return found[0]
			}
		}
	}
	return ""
}

// CheckFolder fails when there is no folder dir, saying what is there instead.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	return err
}

// MissingElements returns those of an image's elements that none of the folders
// holds. What diskimage-builder takes for no element's name is not judged.
func MissingElements(folders, elements []string) []string {
	var missing []string
	for _, element := range elements {
		if element == "" || strings.ContainsAny(element, "/ ") || strings.HasPrefix(element, "-") {
			continue
		}
		there := false
		for _, folder := range folders {
			_, err := os.Stat(filepath.Join(folder, element))
			there = there || !errors.Is(err, fs.ErrNotExist) // what cannot be read may be one
		}
		if !there {
			missing = append(missing, element)
		}
	}
	return missing
}
