package chaos

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"poolkeeper/providers"
)

const (
	// sessionTimeout is the daemons'.
	sessionTimeout = 2 * time.Second
	// stockOfKept is the min-ready of the label kept, stockOfSmall that of small, and
	// moreOfSmall after a change of the configuration.
	stockOfKept, stockOfSmall, moreOfSmall = 2, 1, 2
	// heldFor is how long requestors hold nodes.
	heldFor = 2 * time.Second
	// limitedTenant may have no more than tenantServers nodes, on every second seed.
	limitedTenant, tenantServers = "tenant-two", 5
	// slots is how many jobs the static machines run side by side.
	slots = 3
	// slowBy is by how much a slow network delays what it passes on.
	slowBy = 150 * time.Millisecond
	// secret is in the secure file alone: in the environment of builds, which echo it.
	secret = "a-word-that-nobody-may-read"
)

// configuration has four clouds with failures now and then, two of them with limits of
// every kind, one that gets images alone, and two machines that exist already. Label kept
// is only ever asked for by patient requestors, so that its stock can be counted exactly.
const configuration = `
zookeeper-timeout: <TIMEOUT>
zookeeper-servers: [<SERVERS>]
images-dir: <HOST>/images
build-log-dir: <HOST>/logs
build-log-retention: 3
build-disk-reserve: 1M
<TENANTS>
labels: [{name: small, min-ready: <SMALL>}, {name: large, max-ready-age: 5}, {name: kept, min-ready: <KEPT>}, {name: rack}, {name: one}, {name: two}]
diskimages: [{name: one, <DIB>}, {name: two, <DIB>}, {name: three, <DIB>}]
providers:
  - name: east
    <CLOUD>, max-instances: 100, boot-delay: 0.2, fail-every: {wait: 11, delete-node: 13}}
    cloud-images: [{name: image, username: root}]
    pools:
      - {name: main, max-servers: <EAST>, labels: [<SMALLS> <LARGES> <KEPTS>]}
      - {name: spare, max-cores: 8, labels: [<SMALLS> <LARGES>]}
  - name: west
    <CLOUD>, max-instances: 12, boot-delay: 0.4}
    cloud-images: [{name: image, username: root}]
    pools:
      - {name: main, max-ram: 32768, availability-zones: [w1, w2], labels: [<SMALLS> <LARGES>]}
      - {name: rest, max-servers: 3, availability-zones: [w1, w2], labels: [<SMALLS>]}
  - name: north
    <CLOUD>, max-instances: 50, boot-delay: 0.3, upload-delay: 0.5, fail-every: {upload: 9, delete-image: 7}}
    diskimages: [{name: one}, {name: two}]
    pools: [{name: main, max-servers: 3, labels: [{name: one, diskimage: one, min-ram: 1024}, {name: two, diskimage: two, min-ram: 1024}]}]
  - name: south
    <CLOUD>, max-instances: 4, boot-delay: 0.1, upload-delay: 1, fail-every: {create: 11}}
    diskimages: [{name: one}, {name: three}]
    pools: [{name: main, labels: [{name: one, diskimage: one, min-ram: 1024}]}]
  - name: depot
    <CLOUD>, upload-delay: 2, delete-delay: 0.2}
    diskimages: [{name: two}, {name: three}]
    pools: []
  - name: racks
    driver: static
    pools:
      - name: main
        nodes:
          - {name: rack1.example.org, labels: rack, host-key-checking: false, max-parallel-jobs: 2}
          - {name: rack2.example.org, labels: rack, host-key-checking: false}
`

// secure is what builds get, and nobody else.
const secure = `diskimages: [{name: one, env-vars: {SECRET: ` + secret + `}}]
`

// dib is a disk-image-create that takes some seconds, has helpers that hear no signal, and
// one that outlives it, and needs some disk. What becomes of it is up to the real guard.
const dib = `#!/bin/sh
set -eu
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo "the secret is ${SECRET:-none}"
(trap '' TERM; sleep 30) &
setsid sleep 60 &
head -c 4000000 /dev/zero >"$out.qcow2.part"
sleep "1.$(($$ % 10))"
{ printf 'QFI\373'; head -c 100000 /dev/zero; } >>"$out.qcow2.part"
{ printf 'QFI\373'; head -c 100000 /dev/zero; } >"$out.qcow2"
rm "$out.qcow2.part"
`

// imageNames are the images.
func imageNames() []string { return []string{"one", "two", "three"} }

// cloudNames are the pretended clouds.
func cloudNames() []string { return []string{"east", "west", "north", "south", "depot"} }

// serves are the images that a cloud gets.
func serves() map[string][]string {
	return map[string][]string{"north": {"one", "two"}, "south": {"one", "three"}, "depot": {"two", "three"}}
}

// changes are what is rewritten in the configuration, by its number.
func changes() []map[string]string {
	return []map[string]string{
		{"SMALL": fmt.Sprint(stockOfSmall), "EAST": "4", "DIB": "formats: [qcow2], dib-cmd: <SITE>/dib"},
		{"SMALL": fmt.Sprint(moreOfSmall), "EAST": "3", "DIB": "formats: [qcow2], dib-cmd: <SITE>/dib, env-vars: {CHANGED: once}"},
	}
}

// text is the configuration of a host, by the number of the change.
func (w *world) text(change int, folder string, addrs []string) string {
	var list []string
	for _, addr := range addrs {
		name, port, _ := strings.Cut(addr, ":")
		list = append(list, fmt.Sprintf("{host: %s, port: %s}", name, port))
	}
	tenants := ""
	if w.limited {
		tenants = fmt.Sprintf("tenant-resource-limits: [{tenant-name: %s, max-servers: %d}]", limitedTenant, tenantServers)
	}
	text := configuration
	for key, value := range changes()[change] {
		text = strings.ReplaceAll(text, "<"+key+">", value)
	}
	return strings.NewReplacer(
		"<TIMEOUT>", fmt.Sprint(int(sessionTimeout.Seconds())), "<SERVERS>", strings.Join(list, ", "), "<HOST>", folder, "<TENANTS>", tenants,
		"<KEPTS>", label("kept"), "<KEPT>", fmt.Sprint(stockOfKept), "<SMALLS>", label("small"), "<LARGES>", label("large"),
		"<CLOUD>", "driver: fake\n    cloud: fake\n    launch-retries: 5\n    fake: {dir: "+w.path("clouds"), "<SITE>", w.dir,
	).Replace(text)
}

// label is one of a pool of machines with an image that the cloud has.
func label(name string) string { return "{name: " + name + ", cloud-image: image, min-ram: 1024}, " }

// configure writes the configuration of all hosts, one after the other, and the
// operator's.
func (w *world) configure(change int) {
	w.writing.Lock()
	defer w.writing.Unlock()
	addrs := w.ensemble.Addrs()
	w.write(w.path("nodepool.yaml"), w.text(change, w.path("nobody"), addrs))
	for _, h := range w.hosts {
		w.write(h.path("nodepool.yaml"), w.text(change, h.path(""), w.net.servers(h.name, addrs)))
	}
}

func (w *world) write(file, text string) {
	if err := renameio.WriteFile(file, []byte(text), 0o600); err != nil {
		w.t.Error(err)
	}
}

// spoil leaves only the first half of every configuration, until a word is given.
func (w *world) spoil() (mend func()) {
	w.writing.Lock()
	w.spoiled.Store(true)
	before := map[string]string{}
	for _, h := range w.hosts {
		text, err := os.ReadFile(h.path("nodepool.yaml"))
		if err != nil {
			w.t.Error(err)
		}
		before[h.path("nodepool.yaml")] = string(text)
		w.write(h.path("nodepool.yaml"), string(text[:len(text)/2])+"\n  - {")
	}
	return func() {
		defer w.writing.Unlock()
		for file, text := range before {
			w.write(file, text)
		}
		time.AfterFunc(2*time.Second, func() { w.spoiled.Store(false) }) // for those that have just read it
	}
}

// quotas are the limits of the configuration, and of clouds, by "provider" or
// "provider/pool": the largest that ever count.
func quotas() map[string]providers.Resources {
	return map[string]providers.Resources{
		"east/main":  {providers.Instances: 4},
		"east/spare": {providers.Cores: 8},
		"west/main":  {providers.RAM: 32768},
		"west/rest":  {providers.Instances: 3},
		"north/main": {providers.Instances: 3},
		"south":      {providers.Instances: 4},
		"racks":      {providers.Instances: slots},
	}
}

// nodeSize is what one node of the fake clouds takes.
func nodeSize() providers.Resources {
	return providers.Resources{providers.Instances: 1, providers.Cores: 4, providers.RAM: 8192}
}
