package secret

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// RotateCmd changes the key of a fleet.
type RotateCmd struct {
	Files []string `arg:"" name:"file" help:"The files with sealed values; all of them, as far as they are on this host."`
}

// Help is what the command's own help says.
func (RotateCmd) Help() string {
	return "The new key is written before the others in the key file, which goes on to open what is sealed to them; then " +
		"the values of the files are sealed anew. Copy the key file to all hosts first, and the files after it. " +
		"Who has the old key can still read old copies of the files: the values to be changed are listed. When no " +
		"file is sealed to the old keys any more, secret reseal --drop-old ends the rotation."
}

// Run is the command.
func (c RotateCmd) Run(ctx context.Context, a *App, of *Cmd) error {
	keys, unlock, err := of.lockedKeys(ctx, a, c.Files...)
	if err != nil {
		return err
	}
	defer unlock()
	files, err := readFiles(c.Files)
	if err != nil {
		return err
	}
	next, err := keys.WithNew()
	if err != nil {
		return err
	}
	anew, stay := prepare(files, keys, next.Recipients()[0])
	if stay != nil && len(anew.paths) == 0 {
		return stay
	}
	a.hasPrepared()
	// The key first: from here on both open, whatever comes of the rest.
	if err := writeKeys(keys, next); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%s: the new key is %s; the old one opens as before\n", keys.File(), next.Recipients()[0])
	anew.tellChanges(a) // before anything can fail: no command after this one knows all of them
	if err := anew.write(a); err != nil {
		return errors.Join(err, staying(stay))
	}
	_, err = fmt.Fprintf(a.Stdout, "Copy %s to all hosts, and then the files.\n", keys.File())
	return errors.Join(err, staying(stay))
}

// errStay: values that cannot be opened have not been sealed anew.
var errStay = errors.New("the rest is sealed anew, and these values stay as they were")

// staying is what to say of values that stay; nil when there are none.
func staying(stay error) error {
	if stay == nil {
		return nil
	}
	return fmt.Errorf("%w:\n%w", errStay, stay)
}

// ResealCmd seals with the newest key what is sealed to an older one.
type ResealCmd struct {
	Files   []string `arg:"" name:"file" help:"Files with sealed values."`
	DropOld bool     `help:"Take the older keys out of the key file afterwards. What is still sealed to them elsewhere is lost."`
	Force   bool     `help:"With --drop-old, also where the configuration (-c) cannot be looked through. What it has sealed to older keys is lost."`
}

// Help is what the command's own help says.
func (ResealCmd) Help() string {
	return "For files that rotate was not given, such as those of a branch that was merged later. With --drop-old " +
		"it ends a rotation: it refuses while the configuration (-c: of a file, or the fleet's, zk:), the secure file (-s) or the " +
		"clouds.yaml of this host has values that are sealed to an older key, and where the configuration cannot be read " +
		"(--force passes over that); other files it knows only by their names here."
}

// Run is the command.
func (c ResealCmd) Run(ctx context.Context, a *App, of *Cmd) error {
	names := slices.Clone(c.Files)
	var used site
	if c.DropOld {
		var err error
		if used, err = a.site(ctx); err != nil && !c.Force {
			return fmt.Errorf("%w: %w", errUnknownSite, err)
		}
		names = append(names, used.files...)
	}
	keys, unlock, err := of.lockedKeys(ctx, a, names...)
	if err != nil {
		return err
	}
	defer unlock()
	files, err := readFiles(c.Files)
	if err != nil {
		return err
	}
	anew, stay := prepare(files, keys, keys.Recipients()[0])
	if stay != nil && len(anew.paths) == 0 {
		return stay
	}
	if c.DropOld {
		if err := used.noneLeft(keys, files); err != nil {
			return err
		}
	}
	a.hasPrepared()
	anew.tellChanges(a)
	if err := anew.write(a); err != nil || stay != nil || !c.DropOld { // what stays may want the older keys
		return errors.Join(err, staying(stay))
	}
	if err := writeKeys(keys, keys.Newest()); err != nil {
		return err
	}
	for _, old := range keys.Recipients()[1:] {
		fmt.Fprintf(a.Stdout, "%s: dropped %s\n", keys.File(), old)
	}
	return nil
}

// Why no key is dropped.
var (
	// errOldKey: a file is still sealed to it.
	errOldKey = errors.New("it is sealed to a key that would be dropped: name the file, too")
	// errOldFleet: the fleet's configuration still is.
	errOldFleet = errors.New("it is sealed to a key that would be dropped: " +
		"secret reseal its file without --drop-old, and config-push that first")
	// errUnknownSite: it is not known what is.
	errUnknownSite = errors.New("no key is dropped, and nothing has changed: what the configuration (-c) has sealed to them is not known; " +
		"give -c and -s as the daemons have them, or --force if all is known to be sealed anew")
)

// site is where daemons with some flags look for sealed values.
type site struct {
	files []string
	fleet *file // the fleet's configuration; nil when it is a file
}

// site is that of the flags. With an error it is what is known of it.
func (a *App) site(ctx context.Context) (s site, err error) {
	if a.Secure != "" {
		s.files = append(s.files, a.Secure)
	}
	var inputs []string
	if a.Fleet != nil {
		version, err := a.Fleet(ctx)
		if err != nil {
			return s, err
		}
		s.fleet = &file{name: version.Name, text: version.Text}
		if s.fleet.yaml, err = yamltext.Parse(version.Text); err != nil {
			return s, fmt.Errorf("%s: %w", version.Name, err)
		}
		inputs = version.Files
	} else {
		if a.Config != "" {
			s.files = append(s.files, a.Config)
		}
		cfg, err := configs.Load(a.Config, configs.Options{SecurePath: a.Secure, Keyless: true})
		if err != nil {
			return s, err
		}
		inputs = cfg.Files()
	}
	for _, name := range inputs {
		switch filepath.Ext(name) {
		case ".yaml", ".yml", ".json":
			s.files = append(s.files, name)
		}
	}
	return s, nil
}

// noneLeft refuses to drop keys while what the daemons read, and is not among files, needs them.
func (s site) noneLeft(keys *sealed.Keys, files []*file) error {
	var failed error
	look := func(f *file, why error) {
		for _, v := range f.values() {
			if slices.Contains(keys.Recipients()[1:], sealed.Recipient(v.Value)) {
				failed = errors.Join(failed, fmt.Errorf("%s:%d: %s: %w", f.name, v.Line, v.Path, why))
			}
		}
	}
	if s.fleet != nil {
		look(s.fleet, errOldFleet)
	}
	seen := map[string]bool{}
	for _, name := range s.files {
		f, err := readFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if seen[f.path] || slices.ContainsFunc(files, func(given *file) bool { return given.path == f.path }) {
			continue
		}
		seen[f.path] = true
		look(f, errOldKey)
	}
	return failed
}

// resealing are files that are to be written.
type resealing struct {
	files []*file
	texts [][]byte
	count []int    // of values that are sealed anew, by file
	paths []string // of these values, with file and line
}

// prepare seals the values of files anew. It writes nothing; the error has a line for each
// value that cannot be opened, and stays as it is.
func prepare(files []*file, keys *sealed.Keys, recipient string) (*resealing, error) {
	r := &resealing{files: files}
	var failed error
	for _, f := range files {
		text, anew, err := f.resealed(keys, recipient)
		failed = errors.Join(failed, err)
		r.texts, r.count = append(r.texts, text), append(r.count, len(anew))
		for _, s := range anew {
			r.paths = append(r.paths, fmt.Sprintf("%s:%d: %s", f.name, s.Line, s.Path))
		}
	}
	return r, failed
}

// tellChanges lists the values that are sealed anew: who has an old key can read what history
// keeps of them, until they are others.
func (r *resealing) tellChanges(a *App) {
	if len(r.paths) > 0 {
		fmt.Fprintf(a.Stdout, "To be changed at their clouds and services, and set anew, since history keeps what the old key opens (secret list shows them until then):\n%s\n",
			strings.Join(r.paths, "\n"))
	}
}

// write replaces the files that have changed, each at once.
func (r *resealing) write(a *App) error {
	for i, f := range r.files {
		if string(r.texts[i]) != string(f.text) {
			if err := f.write(r.texts[i]); err != nil {
				return err
			}
		}
		fmt.Fprintf(a.Stdout, "%s: values sealed anew: %d\n", f.name, r.count[i])
	}
	return nil
}

// writeKeys replaces the key file at once, unless it is no more what was read: else a key of
// another command would be lost, and all that is sealed to it.
func writeKeys(was, next *sealed.Keys) error {
	path, err := filepath.EvalSymlinks(was.File())
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil {
		err = replaceFile(path, was.Bytes(), next.Bytes(), info)
	}
	if err != nil {
		return fmt.Errorf("write key file %s: %w", was.File(), err)
	}
	return nil
}
