package configs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs/redact"
	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// sealedValues are those that one Load meets. Package sealed opens them.
type sealedValues struct {
	keys   *sealed.Keys // nil when the secure file names none
	file   string       // with the keys; "" is none
	opened map[sealedAt]*yaml.Node
	values []string // that were opened
	// secrets mask them in findings.
	secrets redact.Secrets
}

// sealedAt is a node of a file at a place: an alias may use it at another.
type sealedAt struct {
	node  *yaml.Node
	place string
}

// readKeys reads the key file that the secure file names. A host that does not have it
// goes on: each value that is sealed says so.
func (l *loader) readKeys(secure value) {
	file := secure.peek("secret-key")
	if file == "" {
		return
	}
	l.cfg.SecretKey = file
	keys, err := sealed.Read(file)
	l.sealed.keys = keys
	if _, unread := l.read(file); unread == nil {
		l.inputs[file] += closedness(file)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	entries, _ := secure.written()
	for _, e := range entries {
		if e.key == "secret-key" {
			e.report(refused, "%v", err)
		}
	}
}

// closedness is what the digest of a key file has besides its content: whether it may be
// used at all.
func closedness(file string) string {
	if info, err := os.Stat(file); err == nil && sealed.Open(info.Mode()) {
		return " open"
	}
	return ""
}

// opened is v with its text in clear where it is sealed. One that cannot be opened leaves
// out the item that it is in.
func (v value) opened() value {
	if v.node.Kind != yaml.ScalarNode || !sealed.Is(v.node.Value) {
		return v
	}
	v.secret = true
	s := &v.src.load.sealed
	at := sealedAt{v.node, v.at.path().String()}
	if node := s.opened[at]; node != nil {
		v.node, v.unsealed = node, true
		return v
	}
	text, err := s.keys.Open(v.node.Value, at.place)
	if err != nil {
		v.unread = true
		if v.src.load.passedOver(err) {
			return v
		}
		v.item = cmp.Or(v.item, v.secureItem())
		v.fail("the sealed value cannot be read: %v", err)
		return v
	}
	s.remember(text)
	node := *v.node
	node.Value, node.Tag, node.Style = text, "!!str", yaml.DoubleQuotedStyle
	s.opened[at] = &node
	v.node, v.unsealed = &node, true
	return v
}

// passedOver tells an error that is none where keys are not expected.
func (l *loader) passedOver(err error) bool {
	return l.opts.Keyless && (errors.Is(err, sealed.ErrNoKey) || errors.Is(err, fs.ErrNotExist))
}

// remember notes values that were opened.
func (s *sealedValues) remember(values ...string) {
	s.values = append(s.values, values...)
	s.secrets.Add(values...)
}

// secureItem is what of the secure file can be left out without the rest: an image's
// variables, what opens pages, and what signs events and what hooks are told. Without the others there is no ZooKeeper.
func (v value) secureItem() *step {
	path := v.at.path()
	if !v.src.secret || len(path) < 2 || path[0].Name != "diskimages" && path[0].Name != "webapp" && path[0].Name != "events" && path[0].Name != "hooks" {
		return nil
	}
	at := v.at
	for range len(path) - 2 {
		at = at.up
	}
	return at
}

// sealedVars are the variables whose values were sealed, wherever they come from.
func (s *sealedValues) vars(vars EnvVars) EnvVars {
	found := EnvVars{}
	for name, value := range vars {
		for _, opened := range s.values {
			if value == opened {
				found[name] = value
			}
		}
	}
	return found
}

// checkSealedClouds leaves out the providers whose clouds' entries hold sealed values that
// cannot be opened: nobody can log in there.
func (l *loader) checkSealedClouds() {
	for i := range l.cfg.Providers {
		p := &l.cfg.Providers[i]
		if driver, _ := driverNamed(p.Driver); !driver.cloudsYAML || p.Cloud == "" || p.Cloud == "envvars" {
			continue
		}
		p.SecretKey = l.sealed.file
		for _, f := range l.cloudEntries(p.Cloud) {
			if err := l.openEntry(f); err != nil && !l.passedOver(err) {
				l.clouds[p.Name].fail("%s: a sealed value cannot be read: %v", f.path, err)
				break
			}
		}
	}
}

// cloudEntry is what one file says of a cloud.
type cloudEntry struct {
	path  string // of the file
	at    yamltext.Path
	entry yaml.Node
}

// openEntry opens what is sealed in an entry.
func (l *loader) openEntry(f cloudEntry) error {
	_, values, err := l.sealed.keys.Tree(&f.entry, f.at)
	l.sealed.remember(values...)
	return err
}

// cloudEntries are the entries of a cloud with anything sealed in the file: those of
// clouds.yaml, of the secrets beside it, and of its public cloud.
func (l *loader) cloudEntries(name string) []cloudEntry {
	var list []cloudEntry
	main := l.firstSealed(l.searchPath("OS_CLIENT_CONFIG_FILE", "clouds"))
	if main.path == "" {
		return nil
	}
	add := func(f sealedFile, list []cloudEntry, section, key string) []cloudEntry {
		entry, ok := f.sections[section][key]
		if !ok || !f.sealed {
			return list
		}
		if _, known := l.inputs[f.path]; !known {
			l.inputs[f.path] = f.digest
		}
		return append(list, cloudEntry{f.path, yamltext.Path{}.Key(section).Key(key), entry})
	}
	list = add(main, list, "clouds", name)
	list = add(l.firstSealed(l.secretsFor(main.path)), list, "clouds", name)
	entry := main.sections["clouds"][name]
	vendor := cmp.Or(yamltext.Text(&entry, "profile"), yamltext.Text(&entry, "cloud"))
	if vendor == "" {
		return list
	}
	return add(l.firstSealed(l.searchPath("OS_CLIENT_VENDOR_FILE", "clouds-public")), list, "public-clouds", vendor)
}

// sealedFile is a file of the OpenStack tools.
type sealedFile struct {
	path     string // "" when there is none
	sections map[string]map[string]yaml.Node
	sealed   bool // it has sealed values
	digest   string
}

// firstSealed reads the first file that there is. What is no YAML is the driver's to tell.
// A site without sealed values does not depend on more files than before.
func (l *loader) firstSealed(paths []string) sealedFile {
	for _, path := range paths {
		content, err := readFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		f := sealedFile{path: path, digest: digest(content), sealed: bytes.Contains(content, []byte("sealed:v"))}
		if err == nil {
			_ = yaml.Unmarshal(content, &f.sections)
		}
		return f
	}
	return sealedFile{}
}

// secretsFor is where the secrets for a clouds.yaml are looked for: what the environment names, beside it,
// in the folders of the search path.
func (l *loader) secretsFor(path string) []string {
	paths := l.searchPath("OS_CLIENT_SECURE_FILE", "secure")
	base := filepath.Join(filepath.Dir(path), "secure")
	at := 0
	if named, ok := l.env("OS_CLIENT_SECURE_FILE"); ok && named != "" {
		at = 1
	}
	return slices.Insert(paths, at, base+".yaml", base+".yml", base+".json")
}

// SecretKey is the key file that a secure file names; "" when it names none.
//
// Errors: those of the file, or a *Finding.
func SecretKey(secure string) (string, error) {
	l := newLoader(Options{})
	content, err := l.read(secure)
	if err != nil {
		return "", fmt.Errorf("read secure file: %w", err)
	}
	root, ok := (&source{load: l, file: secure, secret: true}).parse(content)
	if !ok {
		return "", l.found.err()
	}
	return root.peek("secret-key"), nil
}
