package configs

import (
	"maps"
	"reflect"
	"slices"
)

// atStart are the keys that are only looked at when a daemon starts, and whether two
// configurations say the same there.
var atStart = map[string]func(a, b *Config) bool{
	"webapp.port": func(a, b *Config) bool { return a.WebApp.Port == b.WebApp.Port },
	"webapp.listen_address": func(a, b *Config) bool {
		return a.WebApp.ListenAddress == b.WebApp.ListenAddress && a.WebApp.AddressWritten == b.WebApp.AddressWritten
	},
	"webapp.history":             func(a, b *Config) bool { return a.WebApp.History == b.WebApp.History },
	"webapp.token":               func(a, b *Config) bool { return a.WebApp.Token == b.WebApp.Token },
	"zookeeper-servers[].chroot": func(a, b *Config) bool { return a.ZooKeeper.Chroot == b.ZooKeeper.Chroot },
	"zookeeper-timeout":          func(a, b *Config) bool { return a.ZooKeeper.Timeout == b.ZooKeeper.Timeout },
	"zookeeper-tls":              func(a, b *Config) bool { return reflect.DeepEqual(a.ZooKeeper.TLS, b.ZooKeeper.TLS) },
	"zookeeper-auth":             func(a, b *Config) bool { return reflect.DeepEqual(a.ZooKeeper.Auth, b.ZooKeeper.Auth) },
}

// NeedRestart names the keys that have changed from one configuration to the other and take
// effect at a daemon's next start, sorted.
func NeedRestart(before, after *Config) []string {
	var keys []string
	for _, key := range KeysAtStart() {
		if !atStart[key](before, after) {
			keys = append(keys, key)
		}
	}
	return keys
}

// KeysAtStart are all keys that NeedRestart may name, with all below them. images-dir is none of
// them: a builder refuses a file that changes it, and goes on with the one that it has.
func KeysAtStart() []string { return slices.Sorted(maps.Keys(atStart)) }
