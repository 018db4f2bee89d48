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
	"poolkeeper/zkmodel"
)

// Remove removes all files of a build, its manifest last, so that what a crash
// leaves of it is removed the next time. The caller knows that the build is
// ours or that its record said so; the proof is that of the record. What a build has
// left mounted among its files is taken off, and what that shows stays.
func (d *Images) Remove(ctx context.Context, n Name, proof zkmodel.Proof) error {
	if err := proof.Of(zkmodel.BuildPath(n.Image, n.ID)); err != nil {
		return err
	}
	if err := d.reclaim(ctx, n); err != nil { // what still runs writes files
		return err
	}
	entries, err := os.ReadDir(d.real)
	if err != nil {
		return fmt.Errorf("remove files of %s: %w", n, err)
	}
	for _, entry := range entries {
		// Also what diskimage-builder had not finished: <base>.qcow2-new.
		if !strings.HasPrefix(entry.Name(), n.String()+".") {
			continue
		}
		if err := removeAll(ctx, filepath.Join(d.real, entry.Name())); err != nil {
			return fmt.Errorf("remove files of %s: %w", n, err)
		}
	}
	if err := d.removeOwn(ctx, n); err != nil {
		return fmt.Errorf("remove files of %s: %w", n, err)
	}
	d.forget(n, "")
	return nil
}

// removeOwn removes our own folder of a build. The manifest goes when all else is
// gone.
func (d *Images) removeOwn(ctx context.Context, n Name) error {
	own := filepath.Join(d.real, ownDir, n.String())
	entries, err := os.ReadDir(own)
	if err != nil {
		return gone(err)
	}
	for _, entry := range entries {
		if entry.Name() == manifestFile {
			continue
		}
		if err := removeAll(ctx, filepath.Join(own, entry.Name())); err != nil {
			return err
		}
	}
	return dib.RemoveTree(ctx, own)
}

// removeAll removes a file or a folder, and takes off what is mounted there.
func removeAll(ctx context.Context, path string) error {
	if err := dib.Unmount(ctx, path); err != nil {
		return err
	}
	return dib.RemoveTree(ctx, path)
}

// RemoveFormat removes a build's file of one format and its checksum files, with a
// proof as Remove takes it.
func (d *Images) RemoveFormat(n Name, format string, proof zkmodel.Proof) error {
	err := proof.Of(zkmodel.BuildPath(n.Image, n.ID))
	if err != nil {
		return err
	}
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
	legacy := m.Token == ""
	if _, err := os.Lstat(m.Dir); m.Done && (legacy || errors.Is(err, fs.ErrNotExist)) {
		return nil
	}
	scratch := m.Scratch
	switch {
	case legacy:
		scratch = dib.LegacyScratch(m.Dir, d.Base(n))
	case m.Home != d.real: // copied or moved: what it names is gone, or another's
		scratch, m.Processes = dib.Scratch{}, dib.Processes{}
	}
	err = d.host.Reclaim(ctx, m.Processes, scratch)
	if err == nil || legacy { // what an earlier release left is swept once
		w := Work{images: d, name: n, manifest: m}
		err = errors.Join(err, w.Finish(nil))
	}
	if err != nil {
		return fmt.Errorf("reclaim build %s: %w", n, err)
	}
	return nil
}
