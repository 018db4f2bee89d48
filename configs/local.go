package configs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// LocalDriver configures the embedded provider: files for images, QEMU for
// nodes, on the launcher's own host.
type LocalDriver struct {
	Dir            string   // images and guests live below it
	Accel          string   // "auto" takes what is faster; else what QEMU's -accel takes: tcg, kvm …
	AuthorizedKeys []string // public keys that a node's user gets
	MaxGuests      int      // the provider's limit of instances
	Memory         int      // MiB a guest, unless the label says min-ram
	Cores          int      // a guest, unless the label says cores
	Snapshots      bool     // guests are resumed from a saved boot of their image, where that allows it
}

// localDriver is the entry of the table of drivers.
func localDriver() driver {
	return driver{
		name: DriverLocal,
		defaults: func(p *Provider) {
			defaultCloud(p)
			p.BootTimeout = 3 * time.Minute // emulation without KVM is slow
			p.ImageFormat = defaultImageFormat
			p.Settings = &LocalDriver{Accel: "auto", MaxGuests: 2, Memory: 1024, Cores: 1}
		},
		keys:  (*loader).localKeys,
		check: (*loader).checkLocal,
	}
}

func (d *LocalDriver) copied() any {
	one := *d
	return &one
}

func (d *LocalDriver) limits(section string) []Limit {
	return []Limit{limitOf(section, "max-servers", &d.MaxGuests, none)}
}

// localKeys is the schema of the embedded provider.
func (l *loader) localKeys(p *Provider) fields {
	local := SettingsOf[LocalDriver](p)
	local.Dir = filepath.Join("/var/lib/poolkeeper", filepath.Base(p.Name))
	keys := l.cloudKeys(p)
	maps.Copy(keys, fields{
		"dir":             l.directory(&local.Dir),
		"accel":           text(&local.Accel),
		"authorized-keys": l.authorizedKeys(&local.AuthorizedKeys),
		"max-servers":     number(&local.MaxGuests, 0, unlimited),
		"memory":          number(&local.Memory, 16, unlimited),
		"cores":           number(&local.Cores, 1, 1024),
		"snapshots":       flag(&local.Snapshots),
		"pools":           named(&p.Pools, poolName, l.localPool(p)),
	})
	return keys
}

// checkLocal reports what a whole embedded provider lacks.
func (l *loader) checkLocal(v value, p *Provider, _ present) {
	local := SettingsOf[LocalDriver](p)
	if other, taken := l.localDirs[local.Dir]; taken {
		v.fail("the directory %s belongs to the provider %q already", local.Dir, other)
	}
	l.localDirs[local.Dir] = p.Name
	if len(local.AuthorizedKeys) == 0 {
		v.report(notice, "without authorized-keys nobody can log in to its nodes")
	}
}

// localPool decodes one pool of the embedded provider p.
func (l *loader) localPool(p *Provider) func(value) Pool {
	return func(v value) Pool {
		pool := defaultPool(p)
		keys := l.poolKeys(&pool)
		maps.Copy(keys, fields{
			"max-cores":         number(&pool.MaxCores, 0, unlimited),
			"max-ram":           number(&pool.MaxRAM, 0, unlimited),
			"host-key-checking": flag(&pool.HostKeyChecking),
			"labels":            named(&pool.Labels, poolLabelName, l.localLabel(p)),
		})
		v.require(v.decode("pool", keys), "name")
		return pool
	}
}

func (l *loader) localLabel(p *Provider) func(value) PoolLabel {
	return func(v value) PoolLabel {
		var label PoolLabel
		have := v.decode("pool label", fields{
			"name":              l.labelName(&label.Name),
			"diskimage":         text(&label.DiskImage),
			"min-ram":           number(&label.MinRAM, 0, unlimited),
			"cores":             number(&label.Cores, 0, 1024),
			"console-log":       flag(&label.ConsoleLog),
			"host-key-checking": optionalFlag(&label.HostKeyChecking),
		})
		v.require(have, "name", "diskimage")
		l.checkLabelImage(v, p, label)
		return label
	}
}

// directory decodes a path, ~ being the home of who runs the daemon.
func (l *loader) directory(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		*out = l.expandHome(*out)
		if *out == "" {
			v.fail("the directory has no name")
		}
	}
}

func (l *loader) expandHome(path string) string {
	home, ok := l.env("HOME")
	if rest, tilde := strings.CutPrefix(path, "~/"); tilde && ok {
		return filepath.Join(home, rest)
	}
	return path
}

// authorizedKeys decodes public keys: each item is one, or the path of a file
// that holds some. A file that cannot be read is a warning, because the host
// that builds images has no need of it.
func (l *loader) authorizedKeys(out *[]string) decodeFunc {
	return func(v value) {
		for _, item := range v.items() {
			text, ok := item.text()
			if !ok {
				continue
			}
			if !strings.HasPrefix(text, "/") && !strings.HasPrefix(text, "~") {
				item.addKey(out, text)
				continue
			}
			content, err := l.read(l.expandHome(text))
			if err != nil {
				item.report(notice, "read public key: %v", err)
				continue
			}
			for line := range strings.Lines(string(content)) {
				item.addKey(out, line)
			}
		}
	}
}

// addKey adds one line of a file of public keys. The line itself is never
// shown: it might be of a private one.
func (v value) addKey(out *[]string, line string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' || slices.Contains(*out, line) {
		return
	}
	words := strings.Fields(line)
	kind := slices.IndexFunc(words, isKeyType) // options may come before it
	if kind < 0 || kind == len(words)-1 {
		v.fail(`expected a public key (as "ssh-ed25519 AAAA… me@host"), or the path of a file with public keys`)
		return
	}
	*out = append(*out, line)
}

func isKeyType(word string) bool {
	return strings.HasPrefix(word, "ssh-") || strings.HasPrefix(word, "ecdsa-") || strings.HasPrefix(word, "sk-")
}
