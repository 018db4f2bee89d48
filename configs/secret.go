package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mask stands in for a secret.
const mask = "***"

// String lists the names, and no value.
func (e EnvVars) String() string {
	pairs := make([]string, 0, len(e))
	for _, name := range slices.Sorted(maps.Keys(e)) {
		pairs = append(pairs, name+"="+mask)
	}
	return "{" + strings.Join(pairs, " ") + "}"
}

// GoString is String, so that %#v shows no value either.
func (e EnvVars) GoString() string { return e.String() }

// MarshalText keeps the values out of JSON and YAML as well.
func (e EnvVars) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// String shows the user without the password.
func (a ZooKeeperAuth) String() string {
	return fmt.Sprintf("{User:%s Password:%s OwnerOnly:%t}", a.User, mask, a.OwnerOnly)
}

// GoString is String, so that %#v shows no password either.
func (a ZooKeeperAuth) GoString() string { return a.String() }
