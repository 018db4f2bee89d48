package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Verify returns what a build's file of a format is, and makes sure that it is
// what was built. A file that nobody touched since it was last read is not
// read again; several callers at once share one reading.
//
// The checksums of the build's record may be empty, if there are none.
//
// Errors: ErrNoFile, ErrChecksum.
func (d *Images) Verify(ctx context.Context, n Name, format, md5, sha256 string) (File, error) {
	path := d.File(n, format)
	release, err := d.readers.enter(ctx, n.String())
	if err != nil {
		return File{}, fmt.Errorf("read image %s: %w", path, err)
	}
	defer release()
	known, _ := d.Build(n)
	file, ok := known.Files[format]
	if !ok || !file.Unchanged(path) {
		if file, err = Sum(ctx, path); err != nil {
			if errors.Is(err, ErrNoFile) {
				d.forget(n, format) // somebody removed it behind our back
			}
			return File{}, err
		}
		if before, ok := known.Files[format]; ok && before.SHA256 != file.SHA256 {
			return File{}, fmt.Errorf("verify image: %w: %s was changed after it was built", ErrChecksum, path)
		}
		if err := d.note(n, format, file); err != nil {
			return File{}, err
		}
	}
	if md5 != "" && !strings.EqualFold(md5, file.MD5) || sha256 != "" && !strings.EqualFold(sha256, file.SHA256) {
		return File{}, fmt.Errorf("verify image: %w: %s is not the file that its record describes", ErrChecksum, path)
	}
	return file, nil
}

// note adds a file to a build's manifest. Files without one are read again
// after a restart.
func (d *Images) note(n Name, format string, file File) error {
	b, _ := d.Build(n)
	if !b.Ours {
		return nil
	}
	m, err := readManifest(d.ownPath(n))
	if err != nil {
		return err
	}
	files := maps.Clone(m.Files)
	if files == nil {
		files = map[string]File{}
	}
	files[format] = file
	w := Work{images: d, name: n, manifest: m}
	return w.Finish(files)
}

// Adopt makes the files of a build ours whose record says that they are.
func (d *Images) Adopt(n Name) error {
	w, err := d.Begin(n, "")
	if err != nil {
		return err
	}
	return w.Finish(nil)
}
