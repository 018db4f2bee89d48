package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDigestFollowsEveryInput(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(in(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("main", strings.Replace(offers, "driver: local", "driver: local, authorized-keys: [~/key.pub]", 1))
	put("secure", "")
	put("key.pub", "ssh-ed25519 AAAA one\n# remark\n\nssh-ed25519 BBBB two\n")
	opts := Options{SecurePath: in("secure"), Env: environment(map[string]string{
		"HOME": dir, "OS_CLIENT_CONFIG_FILE": in("clouds"),
	})}
	read := func() *Config {
		t.Helper()
		c, err := Load(in("main"), opts)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := read()
	if keys := SettingsOf[LocalDriver](provider(t, c, "here")).AuthorizedKeys; len(keys) != 2 || keys[1] != "ssh-ed25519 BBBB two" {
		t.Errorf("keys %q, want the two of the file", keys)
	}
	if c.DigestNow() != c.Digest() || read().Digest() != c.Digest() {
		t.Error("the digest changes without a reason")
	}
	for _, change := range []struct{ name, text string }{
		{"main", offers},
		{"secure", "zookeeper-servers: []"},
		{"clouds", "clouds: {}"}, // appears
		{"clouds", "clouds: {x: {}}"},
	} {
		before := c.Digest()
		put(change.name, change.text)
		if c.DigestNow() == before {
			t.Errorf("a change of %s was not seen", change.name)
		}
		if c = read(); c.DigestNow() != c.Digest() {
			t.Errorf("after reading the change of %s again, there still is one", change.name)
		}
	}
	if err := os.Remove(in("main")); err != nil {
		t.Fatal(err)
	}
	if c.DigestNow() == c.Digest() {
		t.Error("a file that went away was not seen")
	}
}
