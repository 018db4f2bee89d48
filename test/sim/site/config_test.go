package site

import (
	"fmt"
	"sync"
	"testing"

	"poolkeeper/configs"
)

// configuration is the site's: labels that several pools and providers have, and one that a
// single pool has; limits of every kind.
const configuration = `
zookeeper-servers: [{host: 127.0.0.1}]
%s
labels: [{name: small, min-ready: 1}, {name: large, max-ready-age: 300}, {name: rare}, {name: cloudy, max-hold-age: 600}]
diskimages: [{name: debian, elements: [debian], username: tester}, {name: fedora, elements: [fedora], username: tester}]
%s`

// ofTwo are the providers of most sites: each label is one that some pools lack.
const ofTwo = `providers:
  - name: east
    driver: fake
    cloud: fake
    boot-timeout: 90
    launch-timeout: 180
    unanswered-create-timeout: 120
    launch-retries: 3
    max-concurrency: 4
    diskimages: [{name: debian}, {name: fedora}]
    cloud-images: [{name: ready-made, username: root}]
    pools:
      - name: main
        max-servers: %d
        labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: large, diskimage: fedora, min-ram: 1024}]
      - name: spare
        max-cores: 8
        labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: cloudy, cloud-image: ready-made, min-ram: 1024}]
  - name: west
    driver: fake
    cloud: fake
    boot-timeout: 90
    launch-timeout: 180
    unanswered-create-timeout: 120
    launch-retries: 2
    diskimages: [{name: debian}, {name: fedora}]
    cloud-images: [{name: ready-made, username: root}]
    pools:
      - name: main
        max-servers: 3
        labels: [{name: small, diskimage: debian, min-ram: 1024}, {name: rare, diskimage: fedora, min-ram: 1024}]
      - name: rest
        max-servers: %d
        labels: [{name: large, diskimage: fedora, min-ram: 1024}, {name: cloudy, cloud-image: ready-made, min-ram: 1024}]
`

// ofOne is that of a site with a single pool, which has all labels: where its launches fail, all pools have declined.
const ofOne = `providers:
  - name: east
    driver: fake
    cloud: fake
    boot-timeout: 90
    launch-timeout: 180
    unanswered-create-timeout: 120
    launch-retries: 1
    diskimages: [{name: debian}, {name: fedora}]
    cloud-images: [{name: ready-made, username: root}]
    pools:
      - name: main
        max-servers: %d
        labels:
          - {name: small, diskimage: debian, min-ram: 1024}
          - {name: large, diskimage: fedora, min-ram: 1024}
          - {name: rare, diskimage: fedora, min-ram: 1024}
          - {name: cloudy, cloud-image: ready-made, min-ram: 1024}
`

// isSmall reports whether the site of a seed is one of a single pool.
func isSmall(seed uint64) bool { return seed%8 == 7 }

// limitedTenant may have tenantServers nodes on every second seed.
const (
	limitedTenant = "tenant-two"
	tenantServers = 2
)

// version is one of the configurations that a site may have: they differ in limits.
type version struct {
	pools   map[string]int // instances, by provider/pool
	limited bool           // limitedTenant is
	read    func() (*configs.Config, error)
}

// versions are those of a seed, the first of which it begins with.
func versions(seed uint64) []version {
	var list []version
	limited, tenants := seed%2 == 0, ""
	if limited {
		tenants = fmt.Sprintf("tenant-resource-limits: [{tenant-name: %s, max-servers: %d}]", limitedTenant, tenantServers)
	}
	for _, most := range [][2]int{{4, 3}, {3, 2}, {5, 1}} {
		sections, pools := fmt.Sprintf(ofTwo, most[0], most[1]), map[string]int{"east/main": most[0], "east/spare": 2, "west/main": 3, "west/rest": most[1]}
		if isSmall(seed) {
			sections, pools = fmt.Sprintf(ofOne, most[0]), map[string]int{"east/main": most[0]}
		}
		text := fmt.Sprintf(configuration, tenants, sections)
		list = append(list, version{
			limited: limited, pools: pools, read: sync.OnceValues(func() (*configs.Config, error) {
				return configs.Load("site.yaml", configs.Options{Text: []byte(text), Env: func(string) (string, bool) { return "", false }})
			}),
		})
	}
	return list
}

// load reads a version as a daemon does, once for all launchers of a world: they change nothing in it.
func (v version) load(t *testing.T) *configs.Config {
	t.Helper()
	cfg, err := v.read()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// rooms is how many machines fit into the clouds' accounts, those of others among them.
var rooms = map[string]int{"east": 8, "west": 7}

// names are the clouds.
var names = []string{"east", "west"}

// someCloud is the name of one that the site has.
func (w *world) someCloud() string {
	if isSmall(w.seed.Number) {
		return names[0]
	}
	return names[w.rng.IntN(len(names))]
}
