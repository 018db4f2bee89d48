package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"poolkeeper/builder/dib"
)

// Remove removes all files of a build, its manifest last, so that what a crash
// leaves of it is removed the next time. The caller knows that the build is
// ours or that its record said so.
func (d *Images) Remove(ctx context.Context, n Name) error {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return fmt.Errorf("remove files of %s: %w", n, err)
	}
	for _, entry := range entries {
		// Also what diskimage-builder had not finished: <base>.qcow2-new.
		if !strings.HasPrefix(entry.Name(), n.String()+".") {
			continue
		}
		path := filepath.Join(d.dir, entry.Name())
		if entry.IsDir() {
			err = dib.RemoveTree(ctx, path)
		} else {
			err = gone(os.Remove(path))
		}
		if err != nil {
			return fmt.Errorf("remove files of %s: %w", n, err)
		}
	}
	if err := d.reclaim(ctx, n); err != nil {
		return err
	}
	// The manifest goes when all else is gone.
	if err := errors.Join(gone(os.Remove(d.manifestPath(n))), gone(os.Remove(d.ownPath(n)))); err != nil {
		return fmt.Errorf("remove files of %s: %w", n, err)
	}
	d.forget(n, "")
	return nil
}

// RemoveFormat removes a build's file of one format and its checksum files.
func (d *Images) RemoveFormat(n Name, format string) error {
	var err error
	for _, ending := range []string{"", ".md5", ".sha256"} {
		err = errors.Join(err, gone(os.Remove(d.File(n, format)+ending)))
	}
	if err != nil {
		return fmt.Errorf("remove %s of %s: %w", format, n, err)
	}
	d.forget(n, format)
	return nil
}

// Reclaim ends and cleans what crashed builds left on the machine: processes,
// mounts, loop devices, temporary folders. Their files stay until their records
// are judged. It must run before the first build of this process.
func (d *Images) Reclaim(ctx context.Context) error {
	var err error
	for _, image := range d.Names() {
		for _, b := range d.Builds(image) {
			if b.Ours && b.Running {
				err = errors.Join(err, d.reclaim(ctx, b.Name))
			}
		}
	}
	return err
}

func (d *Images) reclaim(ctx context.Context, n Name) error {
	m, err := readManifest(d.ownPath(n))
	if err != nil {
		return gone(err)
	}
	if _, err := os.Lstat(m.TmpDir); m.Done && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := dib.Reclaim(ctx, m.Processes, m.TmpDir); err != nil {
		return fmt.Errorf("reclaim build %s: %w", n, err)
	}
	w := Work{images: d, name: n, manifest: m}
	return w.Finish(nil)
}
