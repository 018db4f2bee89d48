package configs

import (
	"net/netip"
	"time"
)

// FakeDriver configures the pretended cloud for tests and load.
type FakeDriver struct {
	Dir          string // "" keeps the state in memory; else several processes share it
	MaxInstances int    // 20 by default, as Nodepool's
	BootDelay    time.Duration
	UploadDelay  time.Duration
	DeleteDelay  time.Duration
	// Network gives each machine an address of its own, whose SSH server is asked for its
	// host keys as that of a real one; the zero value gives all the word "fake".
	Network netip.Prefix
	// FailEvery makes an operation fail now and then: its name (upload,
	// create, wait, delete-node, delete-image, list) to every how many calls.
	FailEvery map[string]int
}

// fakeDriver is the entry of the table of drivers: OpenStack's keys, and its own.
func fakeDriver() driver {
	return driver{
		name: DriverFake,
		defaults: func(p *Provider) {
			defaultOpenStack(p)
			p.Settings = &FakeDriver{
				MaxInstances: 20, BootDelay: 100 * time.Millisecond, FailEvery: map[string]int{},
			}
		},
		keys: func(l *loader, p *Provider) fields {
			keys := l.openStackKeys(p)
			keys["fake"] = fakeSection(SettingsOf[FakeDriver](p))
			return keys
		},
		check: func(_ *loader, v value, p *Provider, _ present) { checkImport(v, p) },
	}
}

func (f *FakeDriver) copied() any {
	one := *f
	return &one
}

func (f *FakeDriver) limits(section string) []Limit {
	return []Limit{limitOf(section+".fake", "max-instances", &f.MaxInstances, none)}
}

// fakeSection decodes what is special about a fake provider.
func fakeSection(f *FakeDriver) decodeFunc {
	return func(v value) {
		v.decode("fake", fields{
			"dir":           text(&f.Dir),
			"max-instances": number(&f.MaxInstances, 0, unlimited),
			"boot-delay":    seconds(&f.BootDelay, 0),
			"upload-delay":  seconds(&f.UploadDelay, 0),
			"delete-delay":  seconds(&f.DeleteDelay, 0),
			"network":       network(&f.Network),
			"fail-every":    failEvery(&f.FailEvery),
		})
	}
}

// network decodes addresses of this host: pretended machines are nowhere else.
func network(out *netip.Prefix) decodeFunc {
	return func(v value) {
		s, ok := v.text()
		if !ok {
			return
		}
		p, err := netip.ParsePrefix(s)
		if err != nil || p != p.Masked() || !p.Addr().IsLoopback() || p.Bits() > 30 {
			v.fail("expected loopback addresses, as 127.1.0.0/24, got %s", v.describe())
			return
		}
		*out = p
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
