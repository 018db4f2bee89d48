package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Build is what lies on this host of one build.
type Build struct {
	Name
	Formats []string        // of the image files that are there, sorted
	Ours    bool            // a manifest says that we made it
	Running bool            // its command has not ended, or died with a builder
	Files   map[string]File // by format, of those that were read in full
}

// parseFile splits "<image>-<id>.<format>". Other files may be called alike, so
// that name alone gives no right to anything.
func parseFile(file string) (n Name, format string, ok bool) {
	name, format, dotted := cutLast(file, '.')
	image, id, dashed := cutLast(name, '-')
	hex := strings.Trim(id, "0123456789abcdef") == ""
	return Name{image, id}, format, dotted && dashed && hex
}

// cutLast cuts at the last sep, if something is on both sides.
func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i <= 0 || i == len(s)-1 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// Scan reads the folder anew. What we do ourselves is known without it.
func (d *Images) Scan() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[Name]Build{}
	entries, err := os.ReadDir(filepath.Join(d.dir, ownDir))
	if err != nil {
		return fmt.Errorf("scan images-dir: %w", err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		m, err := readManifest(filepath.Join(d.dir, ownDir, entry.Name()))
		if err != nil {
			continue // an operator's; see tidy for what a crash leaves
		}
		known[Name{m.Image, m.ID}] = m.build()
	}
	if entries, err = os.ReadDir(d.dir); err != nil {
		return fmt.Errorf("scan images-dir: %w", err)
	}
	for _, entry := range entries {
		n, format, ok := parseFile(entry.Name())
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		b := known[n]
		b.Name = n
		b.Formats = append(b.Formats, format)
		known[n] = b
	}
	for n, b := range known {
		slices.Sort(b.Formats)
		known[n] = b
	}
	d.known = known
	return nil
}

// Builds lists what is known of an image's builds, by id.
func (d *Images) Builds(image string) []Build {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Build
	for n, b := range d.known {
		if n.Image == image {
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b Build) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Build tells what is known of one build.
func (d *Images) Build(n Name) (Build, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.known[n]
	return b, ok
}

// Names lists the images of which anything of ours is here.
func (d *Images) Names() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	images := map[string]bool{}
	for n, b := range d.known {
		if b.Ours {
			images[n.Image] = true
		}
	}
	return slices.Sorted(maps.Keys(images))
}

// build is what a manifest tells; the formats are those that are there.
func (m manifest) build() Build {
	return Build{Name: Name{m.Image, m.ID}, Ours: true, Running: !m.Done, Files: m.Files}
}

// remember takes over what a manifest says and looks for the build's files.
func (d *Images) remember(m manifest) {
	b := m.build()
	d.mu.Lock()
	defer d.mu.Unlock()
	there := slices.Concat(slices.Collect(maps.Keys(m.Files)), d.known[b.Name].Formats)
	slices.Sort(there)
	for _, format := range slices.Compact(there) {
		if info, err := os.Lstat(d.File(b.Name, format)); err == nil && info.Mode().IsRegular() {
			b.Formats = append(b.Formats, format)
		}
	}
	d.known[b.Name] = b
}

// forget drops a build, or one of its formats if format is not "".
func (d *Images) forget(n Name, format string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b, ok := d.known[n]
	if !ok || format == "" {
		delete(d.known, n)
		return
	}
	b.Formats = slices.DeleteFunc(slices.Clone(b.Formats), func(f string) bool { return f == format })
	d.known[n] = b
}

// gone turns "no such file" into success.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
