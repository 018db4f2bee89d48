package disk

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"poolkeeper/builder/dib"
)

// manifestFile lies in our own folder of a build.
const manifestFile = "manifest.json"

// manifest is what we keep of each build that we began, from before its first
// byte until its last file is gone.
type manifest struct {
	Image string `json:"image"`
	ID    string `json:"build"`
	dib.Scratch
	Home      string          `json:"home,omitempty"` // the folder of images when it was written
	Processes dib.Processes   `json:"processes"`
	Done      bool            `json:"done"` // the command has ended, and TmpDir is swept
	Files     map[string]File `json:"files,omitempty"`
}

// File is what is known of an image file that was read in full.
type File struct {
	Size   int64  `json:"size"` // bytes
	MD5    string `json:"md5"`
	SHA256 string `json:"sha256"`
	Mark   Mark   `json:"mark"`
	OnDisk int64  `json:"on_disk,omitempty"` // bytes that it took on the disk as it was read: holes take none
}

// Mark changes when a file does: as long as it is the same, the file need not
// be read again to know its checksums.
type Mark struct {
	Inode    uint64    `json:"inode"`
	Modified time.Time `json:"modified"`
	Changed  time.Time `json:"changed"`
}

// Work is a build under way on this host.
type Work struct {
	images   *Images
	name     Name
	manifest manifest
}

// Begin notes a build before it starts. Its temporary folder will be below
// tmpParent, or in our own folder if that is "".
func (d *Images) Begin(n Name, tmpParent string) (*Work, error) {
	owner, err := d.BuilderID()
	if err != nil {
		return nil, fmt.Errorf("begin build %s: %w", n, err)
	}
	if err := os.MkdirAll(d.ownPath(n), 0o755); err != nil {
		return nil, fmt.Errorf("begin build %s: %w", n, err)
	}
	parent, name := d.ownPath(n), "tmp"
	if tmpParent != "" {
		parent, name = tmpParent, "poolkeeper-"+n.String()
	}
	scratch, err := dib.NewScratch(parent, name, owner)
	if err != nil {
		return nil, fmt.Errorf("begin build %s: %w", n, err)
	}
	w := &Work{images: d, name: n, manifest: manifest{Image: n.Image, ID: n.ID, Scratch: scratch, Home: d.real}}
	if err := w.save(); err != nil {
		return nil, err
	}
	return w, nil
}

// Scratch is the private folder of the build.
func (w *Work) Scratch() dib.Scratch { return w.manifest.Scratch }

// Started notes the processes of the build.
func (w *Work) Started(p dib.Processes) error {
	w.manifest.Processes = p
	return w.save()
}

// Finish notes that the command is over and which files it made.
func (w *Work) Finish(files map[string]File) error {
	w.manifest.Done, w.manifest.Files = true, files
	return w.save()
}

func (w *Work) save() error {
	data, err := json.Marshal(w.manifest)
	if err != nil {
		return fmt.Errorf("note build %s: %w", w.name, err)
	}
	if err := replaceFile(w.images.manifestPath(w.name), data); err != nil {
		return fmt.Errorf("note build %s: %w", w.name, err)
	}
	w.images.remember(w.manifest)
	return nil
}

// replaceFile writes a file in one piece. It does not wait for the disk, as that
// would wait for the image too, gigabytes that were just written: a manifest
// must survive our crash, not that of the machine, which loses the image as well.
func replaceFile(path string, data []byte) error {
	fresh := path + ".new"
	if err := os.WriteFile(fresh, data, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, path)
}

func (d *Images) ownPath(n Name) string { return filepath.Join(d.dir, ownDir, n.String()) }

func (d *Images) manifestPath(n Name) string { return filepath.Join(d.ownPath(n), manifestFile) }

// readManifest reads the manifest in a folder of ours.
func readManifest(dir string) (manifest, error) {
	var m manifest
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return m, fmt.Errorf("read manifest: %w", err)
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, fmt.Errorf("read manifest in %s: %w", dir, err)
	}
	if n := (Name{m.Image, m.ID}); filepath.Base(dir) != n.String() {
		return m, fmt.Errorf("read manifest in %s: it is that of %s", dir, n)
	}
	return m, nil
}
