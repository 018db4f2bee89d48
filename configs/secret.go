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

// Secrets are the values of the configuration that no text for people may have.
func (c *Config) Secrets() []string {
	secrets := append([]string{c.WebApp.Token}, c.opened...)
	if auth := c.ZooKeeper.Auth; auth != nil {
		secrets = append(secrets, auth.Password)
	}
	for i := range c.DiskImages {
		image := &c.DiskImages[i]
		for _, name := range image.SecretEnvVars {
			secrets = append(secrets, image.EnvVars[name])
		}
	}
	for i := range c.Hooks {
		secrets = append(secrets, c.Hooks[i].Secret)
	}
	if c.Events != nil {
		for _, sink := range c.Events.Sinks {
			secrets = append(secrets, sink.Key)
		}
	}
	return secrets
}

// secretWords are the parts of a variable's name that tell of a secret.
var secretWords = []string{
	"PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "SECRET", "SECRETS", "TOKEN", "TOKENS", "CREDENTIAL", "CREDENTIALS",
	"APIKEY", "API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "SECRET_KEY", "ENCRYPTION_KEY", "SIGNING_KEY",
}

// LooksSecret reports whether the name of a variable says that its value is a secret.
func LooksSecret(name string) bool {
	name = "_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_"
	return slices.ContainsFunc(secretWords, func(word string) bool { return strings.Contains(name, "_"+word+"_") })
}
