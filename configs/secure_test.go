package configs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
)

const publicSite = `
zookeeper-servers: [{host: main, chroot: /main}]
diskimages:
  - {name: base, abstract: true, env-vars: {ONE: main, TWO: main}}
  - {name: debian, parent: base, env-vars: {TWO: child}}
  - {name: child, parent: debian}
`

func loadSecure(t *testing.T, secure string) (*Config, error) {
	t.Helper()
	return Load(write(t, "nodepool.yaml", publicSite),
		Options{Env: alone(), SecurePath: write(t, "secure.yaml", secure)})
}

func TestSecureFile(t *testing.T) {
	c, err := loadSecure(t, `
zookeeper-servers: [{host: secret, port: 1}]
zookeeper-tls: {cert: c, key: k, ca: a}
zookeeper-auth: {user: me, password: hunter2, owner-only: true}
diskimages:
  - {name: base, env-vars: {ONE: hunter2}}
  - {name: debian, env-vars: {TWO: hunter3, THREE: 3}}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := ZooKeeper{
		Servers: []string{"secret:1"}, Timeout: c.ZooKeeper.Timeout,
		TLS:  &ZooKeeperTLS{Cert: "c", Key: "k", CA: "a"},
		Auth: &ZooKeeperAuth{User: "me", Password: "hunter2", OwnerOnly: true},
	}
	if diff := cmp.Diff(want, c.ZooKeeper); diff != "" {
		t.Errorf("zookeeper (-want +got):\n%s", diff)
	}
	debian, child := image(t, c, "debian"), image(t, c, "child")
	if want := (EnvVars{"ONE": "hunter2", "TWO": "hunter3", "THREE": "3"}); !cmp.Equal(want, debian.EnvVars) {
		t.Errorf("debian has %v", map[string]string(debian.EnvVars))
	}
	if want := []string{"ONE", "THREE", "TWO"}; !cmp.Equal(want, debian.SecretEnvVars) {
		t.Errorf("debian's secrets are %v, want %v", debian.SecretEnvVars, want)
	}
	// As in Nodepool, what is for one image that is built is for it alone.
	if want := (EnvVars{"ONE": "hunter2", "TWO": "child"}); !cmp.Equal(want, child.EnvVars) {
		t.Errorf("child has %v", map[string]string(child.EnvVars))
	}
}

func TestEmptySecureFile(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "~\n"} {
		c, err := loadSecure(t, text)
		if err != nil {
			t.Errorf("Load with secure file %q: %v", text, err)
			continue
		}
		if c.ZooKeeper.Chroot != "/main" {
			t.Errorf("chroot %q, want the configuration's", c.ZooKeeper.Chroot)
		}
	}
}

func TestSecureFileIsChecked(t *testing.T) {
	for secure, want := range map[string]string{
		"diskimages: [{name: nobody}]":           ":1: diskimages[nobody]: the configuration has no disk image \"nobody\"",
		"diskimages: [{env-vars: {A: hunter2}}]": ":1: diskimages[0]: the key \"name\" is missing",
		"diskimages: [hunter2]":                  ":1: diskimages[0]: expected a mapping, got something else",
		"zookeeper-servers: hunter2":             ":1: zookeeper-servers: expected a list, got something else",
		"zookeeper-auth: {user: a}":              ":1: zookeeper-auth: the key \"password\" is missing",
		"zookeeper-servers: *hunter2":            ":1: the anchor is not defined; text that begins with * needs quotes",
		"zookeeper-auth: {password: !hunter2 }":  ":1: the tag has no meaning here; text that begins with ! needs quotes",
	} {
		_, err := loadSecure(t, secure)
		if err == nil || !strings.Contains(err.Error(), "secure.yaml"+want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("with %q, Load = %v, want %q", secure, err, want)
		}
	}
	c, err := loadSecure(t, "providers: []")
	if err != nil || !strings.Contains(strings.Join(c.Warnings, "\n"), "secure.yaml:1: providers: unknown key") {
		t.Errorf("Load with an unknown key = %v, want a warning", err)
	}
}

// Whatever prints a configuration must not print its secrets.
func TestSecretsAreMasked(t *testing.T) {
	c, err := loadSecure(t, `
zookeeper-auth: {user: me, password: hunter2}
diskimages: [{name: debian, env-vars: {TOKEN: hunter2}}]
`)
	if err != nil {
		t.Fatal(err)
	}
	var dumps []string
	for _, v := range []any{c, *c, c.ZooKeeper, *c.ZooKeeper.Auth, c.ZooKeeper.Auth, c.DiskImages, c.DiskImages[0].EnvVars} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			dumps = append(dumps, fmt.Sprintf(verb, v))
		}
		asJSON, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		asYAML, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, string(asJSON), string(asYAML))
	}
	for _, dump := range dumps {
		if strings.Contains(dump, "hunter2") {
			t.Errorf("a secret is shown in %s", dump)
		}
	}
	if dump := fmt.Sprint(c.DiskImages[0].EnvVars); !strings.Contains(dump, "TOKEN=***") {
		t.Errorf("env-vars print as %s", dump)
	}
}
