package effective

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
)

// every visits a value and all below it.
func every(v *Value, visit func(*Value)) {
	visit(v)
	for _, f := range v.Fields {
		every(f, visit)
	}
	for _, i := range v.Items {
		every(i, visit)
	}
}

// keysOf are the keys of a shape by the mapping that they are in; old ones are none.
func keysOf(s *configs.Shape, found map[string]*configs.Shape) map[string]*configs.Shape {
	for key, f := range s.Fields {
		if f.Deprecated == "" {
			found[strings.TrimSpace(s.Kind+" "+s.Driver)+": "+key] = f
		}
		keysOf(f, found)
	}
	for _, i := range s.Items {
		keysOf(i, found)
	}
	return found
}

// Each key that a file may have is shown with the line at which it stands: catches a key that is
// lost on the way, and one whose line is another's.
func TestEveryKeyHasItsOrigin(t *testing.T) {
	seen := map[string]bool{}
	look := func(tree *Tree, file string, source Source) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(content), "\n")
		every(tree.Root, func(v *Value) {
			if v.shape == nil {
				return
			}
			for _, f := range v.Fields {
				name := string(source) + " " + strings.TrimSpace(v.shape.Kind+" "+v.shape.Driver) + ": " + f.Key
				every(f, func(below *Value) { seen[name] = seen[name] || below.Origin.File == file })
				if f.Origin.File != file {
					continue
				}
				if line := lines[f.Origin.Line-1]; !strings.Contains(line, f.Key+":") || f.Origin.Source != source {
					t.Errorf("%s is said to be of %s, which is %q", f.Key, f.Origin, line)
				}
			}
		})
	}
	env := environment(map[string]string{"NODEPOOL_ZK_PASSWORD": "word"})
	for _, file := range []string{"../openstack.yaml", "../poolkeeper.yaml", "../kubernetes.yaml", "../metastatic.yaml", "../aws.yaml", "../loadtest.yaml"} {
		_, tree := read(t, file, configs.Options{Env: env}, 0)
		look(tree, file, File)
	}
	_, tree := read(t, "../openstack.yaml", configs.Options{Env: env, SecurePath: "../secure.yaml"}, 0)
	look(tree, "../secure.yaml", Secure)
	_, tree = read(t, "../openstack.yaml", configs.Options{Env: env, HostPath: "../host.yaml"}, 0)
	look(tree, "../host.yaml", Host)

	shapes := configs.Describe()
	for key := range keysOf(shapes.Main, map[string]*configs.Shape{}) {
		like := strings.NewReplacer(" fake: ", " openstack: ", " local: ", " openstack: ", " static: ", " openstack: ", " kubernetes: ", " openstack: ", " openshiftpods: ", " openstack: ", " metastatic: ", " openstack: ", " aws: ", " openstack: ").Replace(key)
		switch {
		case seen["file "+key], strings.HasPrefix(key, "provider ") && seen["file "+like]:
		case key == "disk image: parent", key == "disk image: abstract": // what they do is shown instead
		case key == "fake: network": // no sample has it
		default:
			t.Errorf("%s is never shown", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(shapes.Host.Fields)) {
		if !seen["host configuration: "+key] {
			t.Errorf("%s of the host file is never shown", key)
		}
	}
	ofSecure := map[string]bool{}
	for name, there := range seen {
		if kind, key, ok := strings.Cut(name, ": "); ok && there && strings.HasPrefix(kind, "secure ") {
			ofSecure[key] = true
		}
	}
	for name := range keysOf(shapes.Secure, map[string]*configs.Shape{}) {
		_, key, _ := strings.Cut(name, ": ")
		switch {
		case ofSecure[key], key == "name": // which says whose secret it is
		case strings.HasPrefix(name, "zookeeper"): // what no sample says of ZooKeeper there, it says in the main file
		default:
			t.Errorf("%s of the secure file is never shown", name)
		}
	}
}

// least has one of each mapping, with what it must have and nothing else.
const least = `
zookeeper-servers: [{host: localhost}]
zookeeper-tls: {cert: /c, key: /k, ca: /a}
zookeeper-auth: {user: u, password: p}
webapp: {history: {dir: history}}
events: {sinks: [{name: a, file: /f}]}
waves: [{name: w, schedule: '@daily', match: '*'}]
hooks: [{name: h, match: '*'}]
sources: [{name: s, command: [x], match: '*'}]
tenant-resource-limits: [{tenant-name: t}]
diskimages: [{name: debian, canary: {}, validate: {resources: {label: small}, checks: [{command: true}], key: /k}}]
labels: [{name: small}, {name: bare}]
providers:
- name: one
  cloud: one
  diskimages: [{name: debian}]
  cloud-images: [{name: c}]
  pools: [{name: main, labels: [{name: small, diskimage: debian, flavor-name: f}]}]
- name: two
  driver: fake
  diskimages: [{name: debian}]
  cloud-images: [{name: c}]
  pools: [{name: main, labels: [{name: small, diskimage: debian, flavor-name: f}]}]
- name: three
  driver: local
  diskimages: [{name: debian}]
  pools: [{name: main, labels: [{name: small, diskimage: debian}]}]
- name: four
  driver: static
  pools: [{name: main, nodes: [{name: m1, labels: bare}]}]
- name: five
  driver: kubernetes
  pools: [{name: main, labels: [{name: small, type: pod, image: i}]}]
- name: six
  driver: openshiftpods
  context: c
  pools: [{name: main, labels: [{name: small, image: i}]}]
- name: seven
  driver: metastatic
  pools: [{name: main, labels: [{name: small, backing-label: large}]}]
- name: eight
  driver: aws
  region-name: r
  object-storage: {bucket-name: b}
  diskimages: [{name: debian}]
  cloud-images: [{name: c, image-id: ami-1, username: u}]
  pools: [{name: main, labels: [{name: small, diskimage: debian, instance-type: t, key-name: k}]}]
`

// Each key with a default has it where no file says it: catches a mapping whose defaults are
// forgotten, and a default that is told although a file says otherwise.
func TestEveryDefaultIsShown(t *testing.T) {
	_, tree := read(t, write(t, t.TempDir(), "least.yaml", least), configs.Options{}, 0)
	seen := map[string]bool{}
	derived := []string{"dir", "priority", "rebuild-age", "driver"}
	every(tree.Root, func(v *Value) {
		if v.shape == nil {
			return
		}
		for key, s := range v.shape.Fields {
			if s.Default == nil {
				continue
			}
			f := v.field(key)
			if f == nil {
				t.Errorf("%s of %s is not shown", key, v.shape.Kind)
				continue
			}
			seen[strings.TrimSpace(v.shape.Kind+" "+v.shape.Driver)+": "+key] = true
			want := fmt.Sprint(s.Default)
			got := fmt.Sprint(f.Scalar)
			if f.Kind == yaml.SequenceNode {
				var list []string
				for _, i := range f.Items {
					list = append(list, i.text())
				}
				got = fmt.Sprint(list)
			}
			if !slices.Contains(derived, key) && (got != want || !f.Default || f.Origin.String() != "default") {
				t.Errorf("%s of %s is %s from %s, want %s", key, v.shape.Kind, got, f.Origin, want)
			}
		}
	})
	for key, s := range keysOf(configs.Describe().Main, map[string]*configs.Shape{}) {
		if s.Default != nil && !seen[key] {
			t.Errorf("%s is never shown", key)
		}
	}
	if rows := tree.Rows(false); slices.ContainsFunc(rows, func(r Row) bool { return r.Default }) {
		t.Error("defaults are shown that nobody has asked for")
	}
}

// Of a value that is set in two places the one that wins is shown, and the place of the other.
// Catches an order of files, parents or spellings that is not the loader's.
func TestWhoWins(t *testing.T) {
	dir := t.TempDir()
	main := write(t, dir, "nodepool.yaml", `zookeeper-servers: [{host: here.example.org}]
images-dir: /main
build-env-allow: [FROM_MAIN]
webapp: {port: 1, listen_address: 127.0.0.1}
defaults: &defaults
  release: merged
  username: merged
diskimages:
- name: base
  abstract: true
  elements: [vm]
  env-vars: {ONE: base, TWO: base, THREE: base}
  pause: true
- name: debian
  <<: *defaults
  parent: base
  username: own
  pause: false
  elements: ["debian grub"]
  env-vars: {TWO: debian}
- name: child
  parent: debian
  release: '%(NODEPOOL_RELEASE)-%(NODEPOOL_POINT)'
labels: [{name: small, min-ready: 1}, {name: small, min-ready: 2}]
providers:
- name: cloud-1
  driver: fake
  priority: 7
  image-format: raw
  diskimages: [{name: debian, connection-type: winrm}]
  pools:
  - name: main
    networks: [ci]
    labels: [{name: small, diskimage: debian, min-ram: 1}]
`)
	secure := write(t, dir, "secure.conf", `diskimages:
- name: base
  env-vars: {THREE: hidden-word}
- name: debian
  env-vars: {FOUR: hidden-word}
`)
	host := write(t, dir, "host.yaml", `zookeeper-servers: [{host: there.example.org}]
images-dir: /host
build-env-allow: [FROM_HOST]
webapp: {port: 2}
`)
	env := environment(map[string]string{"NODEPOOL_RELEASE": "trixie", "NODEPOOL_POINT": "1"})
	show := func(opts configs.Options, fleet int) map[string]string {
		_, tree := read(t, main, opts, fleet)
		found := map[string]string{}
		for _, r := range tree.Rows(true) {
			found[r.Path] = strings.ReplaceAll(fmt.Sprintf("%v: %s", r.Value, r.Origin), dir+"/", "")
		}
		return found
	}
	check := func(got, want map[string]string) {
		t.Helper()
		for path, text := range want {
			if got[path] != text {
				t.Errorf("%s = %q, want %q", path, got[path], text)
			}
		}
	}
	check(show(configs.Options{Env: env, SecurePath: secure}, 0), map[string]string{
		"images-dir":                                                     "/main: nodepool.yaml:2",
		"diskimages[debian].release":                                     "merged: nodepool.yaml:6",
		"diskimages[debian].username":                                    "own: nodepool.yaml:17",
		"diskimages[debian].pause":                                       "false: nodepool.yaml:18, wins over nodepool.yaml:13",
		"diskimages[debian].elements[0]":                                 "vm: nodepool.yaml:11, inherited from diskimages[base]",
		"diskimages[debian].elements[2]":                                 "grub: nodepool.yaml:19",
		"diskimages[debian].env-vars.ONE":                                "base: nodepool.yaml:12, inherited from diskimages[base]",
		"diskimages[debian].env-vars.TWO":                                "debian: nodepool.yaml:20, wins over nodepool.yaml:12",
		"diskimages[debian].env-vars.THREE":                              "********: secure.conf:3, inherited from diskimages[base], wins over nodepool.yaml:12",
		"diskimages[debian].env-vars.FOUR":                               "********: secure.conf:5",
		"diskimages[debian].formats[0]":                                  "raw: providers[cloud-1] takes it",
		"diskimages[debian].rebuild-age":                                 "86400: default",
		"diskimages[child].release":                                      "trixie-1: nodepool.yaml:23, environment variable NODEPOOL_POINT, NODEPOOL_RELEASE, wins over nodepool.yaml:6",
		"diskimages[child].username":                                     "own: nodepool.yaml:17, inherited from diskimages[debian]",
		"diskimages[child].env-vars.THREE":                               "********: secure.conf:3, inherited from diskimages[base], wins over nodepool.yaml:12",
		"diskimages[child].env-vars.FOUR":                                "",
		"diskimages[base].pause":                                         "",
		"labels[small].min-ready":                                        "2: nodepool.yaml:24",
		"providers[cloud-1].pools[main].priority":                        "7: nodepool.yaml:28, inherited from providers[cloud-1].priority",
		"providers[cloud-1].pools[main].labels[small].networks[0]":       "ci: nodepool.yaml:33, inherited from providers[cloud-1].pools[main].networks",
		"providers[cloud-1].pools[main].labels[small].host-key-checking": "true: default, inherited from providers[cloud-1].pools[main].host-key-checking",
		"providers[cloud-1].diskimages[debian].connection-port":          "5986: of connection-type winrm",
	})
	check(show(configs.Options{Env: env, SecurePath: secure, HostPath: host}, 12), map[string]string{
		"zookeeper-servers[0].host": "there.example.org: host.yaml:1",
		"images-dir":                "/host: host.yaml:2, wins over version 12 in the tree, line 2",
		"webapp.port":               "2: host.yaml:4, wins over version 12 in the tree, line 4",
		"webapp.listen_address":     "127.0.0.1: version 12 in the tree, line 4",
		"build-env-allow[0]":        "FROM_MAIN: version 12 in the tree, line 3",
		"build-env-allow[1]":        "FROM_HOST: host.yaml:3",
		"fleet-dir":                 "/var/lib/poolkeeper: default",
	})
}

// What an image and its parent have of one anchor stands in one place: catches one that wins over itself.
func TestAnchorWinsOverNothing(t *testing.T) {
	file := write(t, t.TempDir(), "nodepool.yaml", `zookeeper-servers: [{host: localhost}]
common: &common {release: noble}
diskimages: [{name: base, <<: *common}, {name: web, parent: base, <<: *common}]
labels: [{name: small}]
`)
	_, tree := read(t, file, configs.Options{}, 0)
	if got, want := tree.Root.field("diskimages").item("web").field("release").Origin.String(), file+":2"; got != want {
		t.Errorf("the release of web is of %s, want %s", got, want)
	}
}
