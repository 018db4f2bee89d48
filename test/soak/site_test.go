package soak

import (
	"fmt"
	"strings"
	"time"

	"poolkeeper/providers"
)

const (
	// sessionTimeout is the launchers'.
	sessionTimeout = 2 * time.Second
	// stockOfShelf is the min-ready of the label shelf, stockOfSmall that of small.
	stockOfShelf, stockOfSmall = 2, 1
	// heldFor is how long requestors hold nodes.
	heldFor = 2 * time.Second
	// limitedTenant may have no more than tenantServers nodes, on every second seed.
	limitedTenant, tenantServers = "tenant-two", 5
	// slots is how many jobs the static machines run side by side.
	slots = 3
)

// configuration has two clouds with limits of every kind and failures now and
// then, and two machines that exist already. Label shelf is only ever asked for
// by patient requestors, so that its stock can be counted exactly.
const configuration = `
zookeeper-timeout: %d
zookeeper-servers: [%s]
%s
labels: [{name: small, min-ready: %d, max-ready-age: 20}, {name: large, max-ready-age: 5}, {name: shelf, min-ready: %d}, {name: rack}]
providers:
  - name: east
    driver: fake
    cloud: fake
    launch-retries: 5
    fake: {dir: %s, max-instances: 100, boot-delay: 0.2, fail-every: {wait: 11, delete-node: 13}}
    cloud-images: [{name: image, username: root}]
    pools:
      - {name: main, max-servers: 4, labels: [` + small + large + shelf + `]}
      - {name: spare, max-cores: 8, labels: [` + small + large + `]}
  - name: west
    driver: fake
    cloud: fake
    launch-retries: 5
    fake: {dir: %[6]s, max-instances: 5, boot-delay: 0.4}
    cloud-images: [{name: image, username: root}]
    pools:
      - {name: main, max-ram: 32768, availability-zones: [w1, w2], labels: [` + small + large + `]}
      - {name: rest, max-servers: 3, availability-zones: [w1, w2], labels: [` + small + `]}
  - name: racks
    driver: static
    pools:
      - name: main
        nodes:
          - {name: rack1.example.org, labels: rack, host-key-checking: false, max-parallel-jobs: 2}
          - {name: rack2.example.org, labels: rack, host-key-checking: false}
`

// The labels of the fake clouds' pools.
const (
	small = `{name: small, cloud-image: image, min-ram: 1024}, `
	large = `{name: large, cloud-image: image, min-ram: 1024}, `
	shelf = `{name: shelf, cloud-image: image, min-ram: 1024}, `
)

// tenantLimits is the part of the configuration that every second seed has. With
// it one quota lock serves all providers, without it each has its own.
const tenantLimits = `tenant-resource-limits: [{tenant-name: %s, max-servers: %d}]`

// configure is the launchers' configuration.
func configure(addrs []string, clouds string, limited bool) string {
	var servers []string
	for _, addr := range addrs {
		host, port, _ := strings.Cut(addr, ":")
		servers = append(servers, fmt.Sprintf("{host: %s, port: %s}", host, port))
	}
	tenants := ""
	if limited {
		tenants = fmt.Sprintf(tenantLimits, limitedTenant, tenantServers)
	}
	return fmt.Sprintf(configuration, int(sessionTimeout.Seconds()), strings.Join(servers, ", "), tenants,
		stockOfSmall, stockOfShelf, clouds)
}

// quotas are the limits of the configuration and of the clouds, by "provider" or
// "provider/pool".
func quotas() map[string]providers.Resources {
	return map[string]providers.Resources{
		"east/main":  {providers.Instances: 4},
		"east/spare": {providers.Cores: 8},
		"west":       {providers.Instances: 5},
		"west/main":  {providers.RAM: 32768},
		"west/rest":  {providers.Instances: 3},
		"racks":      {providers.Instances: slots},
	}
}

// nodeSize is what one node of the fake clouds takes.
func nodeSize() providers.Resources {
	return providers.Resources{providers.Instances: 1, providers.Cores: 4, providers.RAM: 8192}
}
