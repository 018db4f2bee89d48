package configs

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// onlyTheHost are the keys that a configuration of the fleet leaves to its hosts: who
// reads it has reached ZooKeeper already.
var onlyTheHost = []string{"zookeeper-servers", "zookeeper-tls", "zookeeper-auth", "zookeeper-timeout"}

// hostKeys are the keys of the file with what is the host's own.
func (l *loader) hostKeys() fields {
	c := l.cfg
	keys := fields{
		"fleet-dir":           notEmpty(&c.FleetDir),
		"images-dir":          text(&c.ImagesDir),
		"build-log-dir":       text(&c.BuildLogDir),
		"build-log-retention": l.buildLogRetention,
		"build-disk-reserve":  size(&c.BuildDiskReserve),
		"elements-dir":        text(&c.ElementsDir),
		"build-env-allow":     envAllow(&c.BuildEnvAllow),
		"hook-env-allow":      envAllow(&c.HookEnvAllow),
		"webapp":              l.webApp,
		"only":                l.only,
		"host-labels":         hostLabels(&c.HostLabels),
		"zookeeper-timeout": func(v value) {
			seconds(&c.ZooKeeper.Timeout, minSession)(v)
			v.sane(c.ZooKeeper.Timeout, time.Hour)
		},
	}
	maps.Copy(keys, l.zooKeeperKeys(&c.ZooKeeper))
	return keys
}

// decodeHost lets the host's own file win over the configuration.
func (l *loader) decodeHost(file string, content []byte) {
	root, ok := (&source{load: l, file: file}).parse(content)
	if !ok {
		if l.found.err() == nil { // an empty one names no ZooKeeper either
			l.found.add(fault, Finding{File: file, Message: "the file says nothing; it has to name zookeeper-servers"})
		}
		return
	}
	root.decode("host file", l.hostKeys())
	if l.cfg.FleetDir == "" {
		l.cfg.FleetDir = StateDir(l.env)
	}
	if len(l.cfg.ZooKeeper.Servers) == 0 && len(l.secure.zk.Servers) == 0 {
		l.found.add(fault, Finding{File: file, Key: "zookeeper-servers", Message: "there is no server; a pushed configuration cannot say where it is to be found"})
	}
}

// only decodes the selection of images that are built on this host.
func (l *loader) only(v value) {
	texts(&l.cfg.Only)(v)
	if len(l.cfg.Only) == 0 {
		v.fail("it names no image; without the key all are built here")
	}
	for _, pattern := range l.cfg.Only {
		if !checkPattern(v, pattern) {
			continue
		}
		v.later(func() {
			if !slices.ContainsFunc(l.cfg.DiskImages, func(i DiskImage) bool { return matches(pattern, i.Name) }) {
				v.report(notice, "no image is called %q", pattern)
			}
		})
	}
}

// checkPattern tells what is wrong with a pattern, and reports whether it can be used.
func checkPattern(v value, pattern string) bool {
	_, err := path.Match(pattern, "")
	if err != nil {
		v.fail("%q is no pattern: %v", pattern, err)
	}
	return err == nil
}

// matches tells whether a name is one that a pattern stands for.
func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// hostLabels decodes words that hosts are called.
func hostLabels(out *[]string) decodeFunc {
	return func(v value) {
		texts(out)(v)
		for _, label := range *out {
			if !plainLabel.MatchString(label) {
				v.fail("%q is no label of a host: letters, digits, '.', '_' and '-'", label)
			}
		}
	}
}

// plainLabel is a word that a host is called.
var plainLabel = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

// Unselected says why a builder of this host does not build an image, as far as the host's own
// file and the image's labels say; "" where it does. Such an image is another builder's, and
// configured all the same.
func (c *Config) Unselected(image string) string {
	if c.Only != nil && !slices.ContainsFunc(c.Only, func(pattern string) bool { return matches(pattern, image) }) {
		return "`only` of this host does not select it"
	}
	var lacks []string
	if one, ok := c.DiskImage(image); ok {
		lacks = slices.DeleteFunc(slices.Clone(one.HostLabels), func(label string) bool { return slices.Contains(c.HostLabels, label) })
	}
	if len(lacks) > 0 {
		return "it is for hosts with host-labels " + strings.Join(lacks, ", ") + ", which this one does not have"
	}
	return ""
}

// Selects tells whether a builder of this host builds an image: see Unselected.
func (c *Config) Selects(image string) bool { return c.Unselected(image) == "" }

// leaveToHost takes the keys out of a schema that the host's own file has.
func (l *loader) leaveToHost(keys fields) {
	for _, key := range onlyTheHost {
		keys[key] = func(v value) { v.report(notice, "this is for each host's own file to say; it has no effect here") }
	}
}

// LoadHost reads what must be known before there is a configuration: where ZooKeeper is,
// who may push, and where what was pushed is kept. All else has its defaults.
//
// Errors: those of Load.
func LoadHost(opts Options) (*Config, error) {
	l := newLoader(opts)
	l.cfg.Path, l.cfg.SecurePath, l.cfg.HostPath = opts.HostPath, opts.SecurePath, opts.HostPath
	content, err := l.read(opts.HostPath)
	if err != nil {
		return nil, fmt.Errorf("read host file: %w", err)
	}
	if opts.SecurePath != "" {
		secure, err := l.read(opts.SecurePath)
		if err != nil {
			return nil, fmt.Errorf("read secure file: %w", err)
		}
		l.decodeSecure(opts.SecurePath, secure)
	}
	l.decodeHost(opts.HostPath, content)
	l.overlaySecure()
	if err := l.found.err(); err != nil {
		return nil, err
	}
	l.cfg.Warnings, l.cfg.inputs, l.cfg.opened = l.found.warningTexts(), l.inputs, l.sealed.values
	return l.cfg, nil
}
