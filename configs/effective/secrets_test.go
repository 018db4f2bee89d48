package effective

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
)

// leaky has a secret at each place at which one may stand.
const leaky = `
zookeeper-servers: [{host: localhost}]
zookeeper-auth: {user: poolkeeper, password: planted-zk-1}
events:
  sinks: [{name: chat, webhook: 'https://chat.example.org/planted-hook-2'}, {name: other, webhook: 'https://chat.example.org?planted-hook-25'}]
hooks: [{name: elements, all: true}]
sources: [{name: git, command: [git, ls-remote, planted-word-3], all: true}]
diskimages:
- name: base
  abstract: true
  env-vars: {MIRROR_TOKEN: planted-token-4, MIRROR: 'https://me:planted-pw-5@mirror.example.org/debian', INDEX: 'https://x.example.org/?a=1&access_token=planted-query-19&b=2', SEALED: %s}
- name: debian
  parent: base
  dib-cmd: disk-image-create --token planted-secure-10
  metadata: {api-key: planted-key-6, args: 'x --admin-password "planted word-20" -v DB_TOKEN=planted-21 --token=planted-22', header: 'Authorization: Bearer planted-23', key: "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted-24\n"}
  env-vars: {REPO: 'x-%%(NODEPOOL_REPO_PASSWORD)-y'}
labels: [{name: small}]
providers:
- name: cloud-1
  driver: fake
  cloud: secret-cloud
  diskimages: [{name: debian, meta: {password: planted-meta-8}}]
  pools:
  - name: main
    node-attributes: {deep: [{token: planted-deep-9}]}
    labels:
    - {name: small, diskimage: debian, min-ram: 1, userdata: "#cloud-config\npassword: planted-user-11\n", instance-properties: {admin_pass: planted-prop-12}}
`

// No secret that is planted shows in any form: catches a place that is forgotten, in a file or on the way out.
func TestNoSecretIsShown(t *testing.T) {
	dir := t.TempDir()
	keys, err := sealed.New(dir + "/fleet.key")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "fleet.key", string(keys.Bytes()))
	text, err := sealed.Seal(keys.Recipients()[0], "diskimages[base].env-vars.SEALED", "planted-sealed-7")
	if err != nil {
		t.Fatal(err)
	}
	main := write(t, dir, "nodepool.yaml", fmt.Sprintf(leaky, text))
	secure := write(t, dir, "secure.conf", `secret-key: `+dir+`/fleet.key
zookeeper-auth: {user: poolkeeper, password: planted-zk-13}
webapp: {token: planted-token-of-pages-14}
events: {sinks: [{name: chat, key: planted-key-of-sink-15}]}
hooks: [{name: elements, secret: planted-secret-of-hook-16}]
diskimages: [{name: debian, env-vars: {PLAIN: planted-secure-10}}]
`)
	clouds := write(t, dir, "clouds.yaml", "clouds: {secret-cloud: {auth: {password: planted-cloud-17}}}\n")
	for _, opts := range []configs.Options{{SecurePath: secure}, {SecurePath: secure, Keyless: true}} {
		opts.Env = environment(map[string]string{"NODEPOOL_REPO_PASSWORD": "planted-env-18", "OS_CLIENT_CONFIG_FILE": clouds})
		cfg, tree := read(t, main, opts, 0)
		var all strings.Builder
		for _, defaults := range []bool{false, true} {
			for _, r := range tree.Rows(defaults) {
				fmt.Fprintf(&all, "%s %v %v\n", r.Path, r.Value, r.Origin)
			}
			all.WriteString(asYAML(t, tree, YAML{Defaults: defaults, Origins: true}))
		}
		if shown := all.String(); strings.Contains(shown, "planted") || strings.Contains(shown, text) {
			t.Errorf("a secret shows:\n%s", shown)
		}
		for _, want := range []string{"MIRROR: https://********@mirror.example.org/debian", "INDEX: https://x.example.org/?a=1&access_token=********&b=2", "REPO: x-", "cloud: secret-cloud", "args: x --admin-password ******** -v DB_TOKEN=******** --token=********", "header: 'Authorization: Bearer ********'", "user: poolkeeper", "# token: '********'"} {
			if strings.Contains(all.String(), want) != (want != "REPO: x-") {
				t.Errorf("%q is shown or not, and should be the other way", want)
			}
		}
		if len(cfg.Secrets()) == 0 {
			t.Error("the test plants nothing")
		}
	}
}

// Catches names with dots that are taken apart, and a path that leads to nothing in silence.
func TestSelect(t *testing.T) {
	file := write(t, t.TempDir(), "nodepool.yaml", `zookeeper-servers: [{host: localhost}]
diskimages: [{name: ubuntu-24.04, release: noble}, {name: ubuntu, release: old}]
labels: [{name: small}]
`)
	for path, want := range map[string][]string{
		"diskimages.ubuntu-24.04.release":  {"diskimages[ubuntu-24.04].release noble"},
		"diskimages[ubuntu-24.04].release": {"diskimages[ubuntu-24.04].release noble"},
		"diskimages.ubuntu.release":        {"diskimages[ubuntu].release old"},
		"diskimages.ubuntu":                {"diskimages[ubuntu].name ubuntu", "diskimages[ubuntu].release old"},
		"labels.small.min-ready":           {"labels[small].min-ready 0"},
		"webapp.port":                      {"webapp.port 8005"},
		"zookeeper-servers.0.host":         {"zookeeper-servers[0].host localhost"},
		"build-env-allow":                  nil,
		"labls":                            {`labls: not found (did you mean "labels"?)`},
		"labels.smal":                      {`labels.smal: not found (did you mean "small"?)`},
		"labels[smal]":                     {`labels[smal]: not found (did you mean "small"?)`},
		"diskimages.ubuntu.relase":         {`diskimages.ubuntu.relase: not found (did you mean "release"?)`},
		"diskimages.ubuntu.shell-type":     {`diskimages.ubuntu.shell-type: it is not set, and has no default`},
		"labels.small.name.x":              {`labels.small.name.x: not found`},
		"max-hold-age":                     {"max-hold-age 0"},
	} {
		_, tree := read(t, file, configs.Options{}, 0)
		var got []string
		if err := tree.Select(path); err != nil {
			if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrUnset) {
				t.Errorf("%s: %v is no error of a path", path, err)
			}
			got = []string{err.Error()}
		} else {
			for _, r := range tree.Rows(false) {
				got = append(got, fmt.Sprintf("%s %v", r.Path, r.Value))
			}
		}
		if want == nil {
			if len(got) < 10 {
				t.Errorf("%s: %q", path, got)
			}
			continue
		}
		if !slices.EqualFunc(got, want, func(g, w string) bool { return g == w || strings.Contains(w, ": ") && strings.HasPrefix(g, w) }) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
