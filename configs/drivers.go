package configs

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// fakeDriver decodes what is special about a fake provider.
func fakeDriver(f *FakeDriver) decodeFunc {
	return func(v value) {
		v.decode("fake", fields{
			"dir":           text(&f.Dir),
			"max-instances": number(&f.MaxInstances, 0, unlimited),
			"boot-delay":    seconds(&f.BootDelay, 0),
			"upload-delay":  seconds(&f.UploadDelay, 0),
			"delete-delay":  seconds(&f.DeleteDelay, 0),
			"fail-every":    failEvery(&f.FailEvery),
		})
	}
}

func failEvery(out *map[string]int) decodeFunc {
	operations := []string{"upload", "create", "wait", "delete-node", "delete-image", "list"}
	return func(v value) {
		counts := make([]int, len(operations))
		keys := fields{}
		for i, name := range operations {
			keys[name] = number(&counts[i], 1, unlimited)
		}
		v.decode("fail-every", keys)
		*out = map[string]int{}
		for i, name := range operations {
			if counts[i] > 0 {
				(*out)[name] = counts[i]
			}
		}
	}
}

// localKeys is the schema of the embedded provider.
func (l *loader) localKeys(p *Provider) fields {
	keys := l.cloudKeys(p)
	maps.Copy(keys, fields{
		"dir":             l.directory(&p.Local.Dir),
		"accel":           text(&p.Local.Accel),
		"authorized-keys": l.authorizedKeys(&p.Local.AuthorizedKeys),
		"max-servers":     number(&p.Local.MaxGuests, 0, unlimited),
		"memory":          number(&p.Local.Memory, 16, unlimited),
		"cores":           number(&p.Local.Cores, 1, 1024),
		"pools":           named(&p.Pools, poolName, l.localPool(p)),
	})
	p.Local.Dir = filepath.Join("/var/lib/poolkeeper", filepath.Base(p.Name))
	return keys
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
		v.require(v.decode("local pool", keys), "name")
		return pool
	}
}

func (l *loader) localLabel(p *Provider) func(value) PoolLabel {
	return func(v value) PoolLabel {
		var label PoolLabel
		have := v.decode("local label", fields{
			"name":              l.labelName(&label.Name),
			"diskimage":         text(&label.DiskImage),
			"min-ram":           number(&label.MinRAM, 0, unlimited),
			"cores":             number(&label.Cores, 0, 1024),
			"console-log":       flag(&label.ConsoleLog),
			"host-key-checking": optionalFlag(&label.HostKeyChecking),
		})
		v.require(have, "name", "diskimage")
		l.checkLabelImage(v, p.Name, label)
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
	kind, rest, _ := strings.Cut(line, " ")
	if !strings.HasPrefix(kind, "ssh-") && !strings.HasPrefix(kind, "ecdsa-") && !strings.HasPrefix(kind, "sk-") || rest == "" {
		v.fail(`expected a public key (as "ssh-ed25519 AAAA… me@host"), or the path of a file with public keys`)
		return
	}
	*out = append(*out, line)
}

// staticPool decodes one pool of machines that exist already.
func (l *loader) staticPool(p *Provider) func(value) Pool {
	seen := map[string]bool{} // over all pools of the provider
	return func(v value) Pool {
		pool := defaultPool(p)
		keys := l.poolKeys(&pool)
		keys["nodes"] = list(&pool.Nodes, func(v value) StaticNode { return l.staticNode(v, seen) })
		v.require(v.decode("static pool", keys), "name")
		return pool
	}
}

func (l *loader) staticNode(v value, seen map[string]bool) StaticNode {
	n := defaultStaticNode()
	keys := fields{
		"name":              text(&n.Name),
		"labels":            l.labelNames(&n.Labels),
		"username":          text(&n.Username),
		"timeout":           wholeSeconds(&n.Timeout, 0),
		"host-key-checking": flag(&n.HostKeyChecking),
		"host-key":          textOrTexts(&n.HostKeys),
		"connection-port":   port(&n.ConnectionPort),
		"connection-type":   text(&n.ConnectionType),
		"shell-type":        text(&n.ShellType),
		"python-path":       text(&n.PythonPath),
		"max-parallel-jobs": number(&n.MaxParallelJobs, 1, unlimited),
		"ssh-port":          renamed("connection-port", port(&n.ConnectionPort)),
	}
	v.require(v.decode("static node", keys), "name", "labels")
	if n.ConnectionPort == 0 {
		n.ConnectionPort = connectionPort(n.ConnectionType)
	}
	identity := fmt.Sprintf("%s %s %d", n.Name, n.Username, n.ConnectionPort)
	if seen[identity] {
		v.fail("another node of the provider has the same name, username and port")
	}
	seen[identity] = true
	return n
}
