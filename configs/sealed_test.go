package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"poolkeeper/configs/sealed"
)

// sealedSite writes a site whose files say $PATH|VALUE$ where a value is sealed for a path.
type sealedSite struct {
	t    *testing.T
	dir  string
	keys *sealed.Keys
	env  map[string]string
}

func newSealedSite(t *testing.T) *sealedSite {
	t.Helper()
	s := &sealedSite{t: t, dir: t.TempDir()}
	s.env = map[string]string{"OS_CLIENT_CONFIG_FILE": s.path("clouds.yaml"), "OS_CLIENT_VENDOR_FILE": s.path("clouds-public.yaml")}
	var err error
	if s.keys, err = sealed.New(s.path("fleet.key")); err != nil {
		t.Fatal(err)
	}
	s.file("fleet.key", string(s.keys.Bytes()))
	return s
}

func (s *sealedSite) path(name string) string { return filepath.Join(s.dir, name) }

// file writes a file.
func (s *sealedSite) file(name, text string) {
	s.t.Helper()
	parts := strings.Split(text, "$")
	for i := 1; i < len(parts); i += 2 {
		place, value, _ := strings.Cut(parts[i], "|")
		text, err := sealed.Seal(s.keys.Recipients()[0], place, value)
		if err != nil {
			s.t.Fatal(err)
		}
		parts[i] = text
	}
	if err := os.WriteFile(s.path(name), []byte(strings.Join(parts, "")), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *sealedSite) options() Options {
	return Options{SecurePath: s.path("secure.yaml"), Env: environment(s.env)}
}

// load reads the site as a daemon does.
func (s *sealedSite) load() *Config {
	s.t.Helper()
	c, err := Load(s.path("nodepool.yaml"), s.options())
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// frozen are the items that are left out.
func frozen(c *Config) []string {
	var list []string
	for _, f := range c.Frozen {
		text, _, _ := strings.Cut(f.String(), ": ")
		list = append(list, text)
	}
	slices.Sort(list)
	return list
}

const twoClouds = `
clouds:
  north: {auth: {auth_url: "http://north", username: ci, password: $clouds.north.auth.password|northern word$}}
  south: {auth: {auth_url: "http://south", username: ci, password: clear}}
`

// write two images, three providers, and all that the secure file may hold.
func (s *sealedSite) write() {
	s.t.Helper()
	s.file("clouds.yaml", twoClouds)
	s.file("secure.yaml", `
secret-key: `+s.path("fleet.key")+`
zookeeper-auth: {user: me, password: $zookeeper-auth.password|zookeeper word$}
webapp: {token: $webapp.token|0123456789abcdef token$}
diskimages:
  - {name: base, env-vars: {MIRROR: $diskimages[base].env-vars.MIRROR|mirror word$}}
  - {name: debian, env-vars: {TOKEN: $diskimages[debian].env-vars.TOKEN|token of debian$}}
`)
	s.file("nodepool.yaml", `
zookeeper-servers: [{host: localhost}]
images-dir: /images
labels: [{name: small}, {name: large}]
diskimages:
  - {name: base, abstract: true}
  - name: debian
    parent: base
    env-vars: {PLAIN: words, BOTH: %(NODEPOOL_FILLED)}
  - name: ubuntu
    parent: base
    release: $diskimages[ubuntu].release|0140$
    env-vars:
      "A.B": "$diskimages[ubuntu].env-vars."A.B"|dotted word$"
      FOLDED: >-
        $diskimages[ubuntu].env-vars.FOLDED|folded word$
providers:
  - name: north
    cloud: north
    diskimages: [{name: debian}, {name: ubuntu}]
    pools: [{name: main, labels: [{name: small, diskimage: debian, flavor-name: f}], node-attributes: {a: [{b: $providers[north].pools[main].node-attributes.a[0].b|12 34$}]}}]
  - name: south
    cloud: south
    diskimages: [{name: debian}]
    pools: [{name: main, labels: [{name: large, diskimage: debian, flavor-name: f}]}]
`)
	s.env["NODEPOOL_FILLED"] = "filled"
}

// Sealed values are read wherever a value stands, and count as secrets from then on.
func TestSealedValues(t *testing.T) {
	s := newSealedSite(t)
	s.write()
	c := s.load()
	if len(c.Frozen) > 0 || len(c.Warnings) > 1 { // plain text to ZooKeeper is none here
		t.Errorf("left out: %v; warnings %q", c.Frozen, c.Warnings)
	}
	debian, ubuntu := image(t, c, "debian"), image(t, c, "ubuntu")
	for name, pair := range map[string][2]string{
		"zookeeper": {c.ZooKeeper.Auth.Password, "zookeeper word"}, "token": {c.WebApp.Token, "0123456789abcdef token"},
		"inherited": {debian.EnvVars["MIRROR"], "mirror word"}, "own": {debian.EnvVars["TOKEN"], "token of debian"},
		"filled": {debian.EnvVars["BOTH"], "filled"}, "plain": {debian.EnvVars["PLAIN"], "words"},
		"also": {ubuntu.EnvVars["MIRROR"], "mirror word"}, "dotted": {ubuntu.EnvVars["A.B"], "dotted word"},
		"folded": {ubuntu.EnvVars["FOLDED"], "folded word"}, "a text, no number": {ubuntu.Release, "0140"},
		"attribute":  {fmt.Sprint(provider(t, c, "north").Pools[0].NodeAttributes["a"]), "[map[b:12 34]]"},
		"key":        {provider(t, c, "north").SecretKey, s.path("fleet.key")},
		"key's name": {c.SecretKey, s.path("fleet.key")},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %q, want %q", name, pair[0], pair[1])
		}
	}
	for _, secret := range []string{"zookeeper word", "0123456789abcdef token", "mirror word", "token of debian", "dotted word", "folded word", "12 34", "northern word"} {
		if !slices.Contains(c.Secrets(), secret) {
			t.Errorf("%q is no secret", secret)
		}
	}
	if want := []string{"MIRROR", "TOKEN"}; !slices.Equal(debian.SecretEnvVars, want) {
		t.Errorf("masked in debian's log: %q, want %q", debian.SecretEnvVars, want)
	}
	if want := []string{"A.B", "FOLDED", "MIRROR"}; !slices.Equal(ubuntu.SecretEnvVars, want) {
		t.Errorf("masked in ubuntu's log: %q, want %q", ubuntu.SecretEnvVars, want)
	}
}

// A host without the key says which values it cannot read, leaves out what needs them, and
// goes on with the rest. What is left out is frozen: nothing of it counts as gone.
func TestWithoutTheKey(t *testing.T) {
	s := newSealedSite(t)
	s.write()
	if err := os.Remove(s.path("fleet.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(s.path("nodepool.yaml"), s.options()); err == nil || !strings.Contains(err.Error(), "secure.yaml:3: zookeeper-auth.password: the sealed value cannot be read") {
		t.Errorf("without ZooKeeper's password: %v", err)
	}
	s.file("secure.yaml", `
secret-key: `+s.path("fleet.key")+`
webapp: {token: $webapp.token|0123456789abcdef token$}
diskimages:
  - {name: debian, env-vars: {TOKEN: $diskimages[debian].env-vars.TOKEN|token of debian$}}
`)
	c := s.load()
	want := []string{"image debian", "image ubuntu", "pool main of provider north", "provider north"}
	if got := frozen(c); !slices.Equal(got, want) {
		t.Errorf("left out are %q, want %q", got, want)
	}
	for _, f := range c.Frozen {
		if !strings.Contains(f.Why, Unopened) {
			t.Errorf("%s does not say that its secret cannot be read", f)
		}
	}
	if c.FrozenProvider("south") != "" || c.FrozenPool("south", "main") != "" || c.FrozenProvider("north") == "" || len(c.Missed()) > 0 {
		t.Errorf("the wrong things are left out: %v, missed %v", c.Frozen, c.Missed())
	}
	if c.WebApp.Token != "" {
		t.Errorf("pages open with %q", c.WebApp.Token)
	}
	warnings := strings.Join(c.Warnings, "\n")
	for _, value := range []string{
		"secure.yaml:3: webapp.token: ", "secure.yaml:5: diskimages[debian].env-vars.TOKEN: ", "nodepool.yaml:12: diskimages[ubuntu].release: ",
		"nodepool.yaml:14: diskimages[ubuntu].env-vars.A.B: ", "nodepool.yaml:15: diskimages[ubuntu].env-vars.FOLDED: ",
		"nodepool.yaml:21: providers[north].pools[main].node-attributes.a[0].b: ",
		"clouds.yaml: a sealed value cannot be read: line 3: clouds.north.auth.password: read key file " + s.path("fleet.key") + ": file does not exist",
	} {
		if !strings.Contains(warnings, value) {
			t.Errorf("no warning of %s in\n%s", value, warnings)
		}
	}
	if _, err := Load(s.path("nodepool.yaml"), Options{SecurePath: s.path("secure.yaml"), Env: environment(s.env), Validate: true}); err == nil {
		t.Error("config-validate takes it")
	}
	// The key comes: there is something to reload.
	if c.Digest() != c.DigestNow() {
		t.Error("the files have changed by themselves")
	}
	s.file("fleet.key", string(s.keys.Bytes()))
	if c.Digest() == c.DigestNow() {
		t.Error("nobody sees that the key has come")
	}
	if c := s.load(); len(c.Frozen) > 0 {
		t.Errorf("with the key, left out are %v", c.Frozen)
	}
}

// Without the secret of an image that is never built its children are not built; without
// that of one that is built, they are.
func TestUnreadSecretsOfParents(t *testing.T) {
	s := newSealedSite(t)
	s.file("nodepool.yaml", publicSite+"  - {name: other}\n")
	for name, want := range map[string][]string{"base": {"image child", "image debian"}, "debian": {"image debian"}, "other": {"image other"}} {
		s.file("secure.yaml", "diskimages: [{name: "+name+", env-vars: {A: $elsewhere|word$}}]")
		if got := frozen(s.load()); !slices.Equal(got, want) {
			t.Errorf("left out are %q, want %q", got, want)
		}
	}
}

// Who may change files, and has no key, gets no secret into a place where it is shown: not by
// copying the text, nor by an anchor, a merge, or another name for the place.
func TestSealedElsewhere(t *testing.T) {
	for name, change := range map[string]string{
		"copied":  `{name: evil, env-vars: {LEAK: $clouds.north.auth.password|northern word$}}`,
		"renamed": `{name: evil, env-vars: {TOKEN: $diskimages[debian].env-vars.TOKEN|northern word$}}`,
		"alias":   `{name: debian, env-vars: {TOKEN: &x $diskimages[debian].env-vars.TOKEN|northern word$}}, {name: evil, env-vars: {TOKEN: *x}}`,
		"merge":   `{name: debian, env-vars: &x {TOKEN: $diskimages[debian].env-vars.TOKEN|northern word$}}, {name: evil, env-vars: {<<: *x}}`,
		"whole":   `&x {name: debian, env-vars: {TOKEN: $diskimages[debian].env-vars.TOKEN|northern word$}}, {<<: *x, name: evil}`,
		"quoted":  `{name: evil, env-vars: {"x.LEAK": $diskimages[evil].env-vars.x.LEAK|northern word$}}`,
		"long":    `{name: evil, env-vars: {` + strings.Repeat("L", 90) + `: $diskimages[evil].env-vars.` + strings.Repeat("L", 80) + `…|northern word$}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSealedSite(t)
			s.file("secure.yaml", "secret-key: "+s.path("fleet.key"))
			s.file("nodepool.yaml", "zookeeper-servers: [{host: localhost}]\nimages-dir: /images\ndiskimages: [{name: good}, "+change+"]\n")
			c := s.load()
			if got := frozen(c); !slices.Equal(got, []string{"image evil"}) {
				t.Errorf("left out are %q", got)
			}
			evil := image(t, c, "evil")
			for _, text := range append(slices.Clone(c.Warnings), evil.EnvVars["LEAK"], evil.EnvVars["TOKEN"], evil.EnvVars["x.LEAK"]) {
				if strings.Contains(text, "northern word") {
					t.Errorf("it shows: %s", text)
				}
			}
			if !strings.Contains(strings.Join(c.Warnings, "\n"), "sealed for another place") {
				t.Errorf("warnings: %q", c.Warnings)
			}
		})
	}
}

// A cloud's entry is refused as a whole where one value of it was sealed for another cloud:
// in clouds.yaml, in the secrets beside it, in what it merges, in its public cloud.
func TestSealedClouds(t *testing.T) {
	for name, files := range map[string][3]string{
		"another cloud's": {"clouds: {north: {auth: {password: $clouds.south.auth.password|w$}}, south: {}}"},
		"merged":          {"clouds: {x: &x {auth: {password: $clouds.x.auth.password|w$}}, north: {<<: *x}, south: {}}"},
		"beside":          {"clouds: {north: {}, south: {}}", "clouds: {north: {auth: {password: $clouds.south.auth.password|w$}}}"},
		"public":          {"clouds: {north: {profile: vendor}, south: {}}", "", "public-clouds: {vendor: {auth: {token: $elsewhere|w$}}}"},
		"damaged":         {"clouds: {north: {auth: {password: \"sealed:v1:\"}}, south: {}}"},
		"a later version": {"clouds: {north: {auth: {password: \"sealed:v9:x\"}}, south: {}}"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSealedSite(t)
			s.write()
			s.file("clouds.yaml", files[0])
			s.file("secure.yaml", files[1])
			s.file("clouds-public.yaml", files[2])
			s.file("keys.yaml", "secret-key: "+s.path("fleet.key"))
			s.file("nodepool.yaml", strings.ReplaceAll(`
zookeeper-servers: [{host: localhost}]
labels: [{name: small}]
diskimages: []
providers:
  - {name: north, cloud: north, pools: []}
  - {name: south, cloud: south, pools: []}
  - {name: again, cloud: north, pools: []}
`, "\t", ""))
			opts := s.options()
			opts.SecurePath = s.path("keys.yaml")
			c, err := Load(s.path("nodepool.yaml"), opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := frozen(c); !slices.Equal(got, []string{"provider again", "provider north"}) {
				t.Errorf("left out are %q", got)
			}
		})
	}
}

// A key file that others may read is refused by name and mode, and used once it is closed.
func TestOpenKeyFile(t *testing.T) {
	s := newSealedSite(t)
	s.write()
	s.file("secure.yaml", "# one\nsecret-key: "+s.path("fleet.key"))
	s.file("nodepool.yaml", "zookeeper-servers: [{host: localhost}]\nimages-dir: /images\ndiskimages: [{name: good}]\n")
	if err := os.Chmod(s.path("fleet.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := s.load()
	if want := "secure.yaml:2: secret-key: unusable key file: " + s.path("fleet.key") + " has mode 0644"; !strings.Contains(strings.Join(c.Warnings, "\n"), want) {
		t.Errorf("warnings %q, want %q", c.Warnings, want)
	}
	if c.Digest() != c.DigestNow() {
		t.Error("the files have changed by themselves")
	}
	if err := os.Chmod(s.path("fleet.key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c.Digest() == c.DigestNow() {
		t.Error("nobody sees that the file is closed now")
	}
}

// What is wrong with a value that was sealed does not show it.
func TestFindingsShowNoSealedValue(t *testing.T) {
	s := newSealedSite(t)
	s.file("secure.yaml", "secret-key: "+s.path("fleet.key"))
	s.file("nodepool.yaml", `
zookeeper-servers: [{host: localhost}]
images-dir: /images
diskimages:
  - {name: a, formats: [$diskimages[a].formats[0]|Hunter 2!$], rebuild-age: $diskimages[a].rebuild-age|Hunter 3!$, dib-cmd: $diskimages[a].dib-cmd|"Hunter 4!$}
  - {name: b, elements: [$diskimages[b].elements[0]|-Hunter5$], pause: $diskimages[b].pause|Hunter 6!$, rebuild-timezone: $diskimages[b].rebuild-timezone|Hunter 7!$}
  - {name: c, rebuild-schedule: $diskimages[c].rebuild-schedule|1 2 hunter8 4 5$}
labels: [{name: l}]
providers:
  - {name: p, driver: fake, pools: [{name: main, labels: [{name: l, diskimage: $providers[p].pools[main].labels[l].diskimage|hunter9$}]}]}
`)
	c := s.load()
	if len(c.Warnings) < 5 {
		t.Errorf("warnings %q", c.Warnings)
	}
	for _, text := range c.Warnings {
		if strings.Contains(text, "unter") {
			t.Errorf("it shows: %s", text)
		}
	}
}

// A site without keys depends on no more files than before, and has no key.
func TestNothingSealed(t *testing.T) {
	s := newSealedSite(t)
	s.write()
	s.file("clouds.yaml", "clouds: {north: {auth: {password: clear}}, south: {}}")
	s.file("secure.yml", "clouds: {north: {auth: {password: clear}}}")
	s.file("plain.yaml", "providers: [{name: north, cloud: north, image-format: raw, pools: []}]\nimages-dir: /images\nzookeeper-servers: [{host: localhost}]\n")
	c, err := Load(s.path("plain.yaml"), Options{Env: environment(s.env)})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Files(); !slices.Equal(got, []string{s.path("plain.yaml")}) || c.SecretKey != "" || provider(t, c, "north").SecretKey != "" {
		t.Errorf("it depends on %q", got)
	}
}
