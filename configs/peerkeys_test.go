package configs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// peerKeys are the keys that Nodepool's drivers have, each with a value. A line is the place below the provider, the
// keys, and after a minus those that they stand in place of. Each line is tried alone in a file that has no other
// optional key.
var peerKeys = map[string]string{
	DriverAWS: `
 region-name: eu-west-1
 profile-name: ci
 rate: 2
 boot-timeout: 180
 launch-timeout: 3600
 launch-retries: 3
 use-internal-ip: true
 host-key-checking: false
 public-ipv4: false
 public-ipv6: true
 object-storage: {bucket-name: images}
 image-format: ova
 image-format: vhd
 image-format: vhdx
 image-format: vmdk
 image-format: raw
 image-import-timeout: 600
 post-upload-hook: /bin/true
 max-servers: 1
 max-cores: 1
 max-ram: 1
 max-resources: {L-1216C47A: 40}
 max-concurrency: 4
 priority: 5
cloud-images username: admin
cloud-images image-id: ami-1
cloud-images image-filters: [{name: name, values: [a]}] -image-id
cloud-images connection-type: winrm
cloud-images connection-port: 5986
cloud-images python-path: /usr/bin/python3
cloud-images shell-type: cmd
diskimages username: zuul
diskimages pause: true
diskimages connection-type: winrm
diskimages connection-port: 5986
diskimages python-path: auto
diskimages shell-type: cmd
diskimages architecture: arm64
diskimages ena-support: false
diskimages volume-size: 40
diskimages volume-type: gp2
diskimages import-method: snapshot
diskimages import-method: ebs-direct
diskimages import-method: image
diskimages imds-support: v2.0
diskimages iops: 3000
diskimages throughput: 200
diskimages tags: {a: b}
pools security-group-id: sg-1
pools subnet-id: subnet-1
pools public-ip-address: true
pools public-ipv4: true
pools public-ipv6: true
pools use-internal-ip: true
pools host-key-checking: true
pools availability-zone: us-east-1a
pools max-servers: 1
pools max-cores: 1
pools max-ram: 1
pools max-resources: {L-34B43A08: 8}
pools node-attributes: {a: b}
pools priority: 5
pools/labels cloud-image: image
pools/labels diskimage: debian -cloud-image
pools/labels instance-type: t3.small
pools/labels fleet: {instance-types: [a, b], allocation-strategy: prioritized} -instance-type
pools/labels fleet: {instance-types: [a, b], allocation-strategy: price-capacity-optimized} -instance-type
pools/labels fleet: {instance-types: [a, b], allocation-strategy: capacity-optimized} -instance-type
pools/labels fleet: {instance-types: [a, b], allocation-strategy: diversified} -instance-type
pools/labels fleet: {instance-types: [a, b], allocation-strategy: lowest-price} -instance-type
pools/labels key-name: zuul
pools/labels ebs-optimized: true
pools/labels volume-type: gp3
pools/labels volume-size: 80
pools/labels iops: 3000
pools/labels throughput: 200
pools/labels userdata: "#cloud-config"
pools/labels iam-instance-profile: {name: node}
pools/labels iam-instance-profile: {arn: "arn:aws:iam::1:instance-profile/x"}
pools/labels tags: {a: b}
pools/labels dynamic-tags: {tenant: "{request.tenant_name}"}
pools/labels use-spot: true
pools/labels imdsv2: required
pools/labels imdsv2: optional
pools/labels dedicated-host: true
`,
	DriverKubernetes: clusterPeerKeys + podPeerKeys + `
 max-servers: 1
pools/labels type: pod
pools/labels type: namespace -image
`,
	DriverOpenShiftPods: clusterPeerKeys + podPeerKeys + `
 max-servers: 1
 max-pods: 1
 max-projects: 1
pools/labels image-pull-secrets: [{name: registry}]
`,
	DriverMetastatic: `
 boot-timeout: 120
 launch-timeout: 3600
 launch-retries: 3
 max-concurrency: 4
 priority: 5
pools max-servers: 1
pools host-key-checking: true
pools node-attributes: {a: b}
pools priority: 5
pools/labels backing-label: large
pools/labels max-parallel-jobs: 4
pools/labels grace-time: 60
pools/labels min-retention-time: 600
pools/labels max-age: 600
pools/labels host-key-checking: true
`,
	DriverStatic: `
 max-concurrency: 4
 priority: 5
pools max-servers: 1
pools node-attributes: {a: b}
pools priority: 5
pools/nodes labels: [work]
pools/nodes labels: work
pools/nodes username: root
pools/nodes timeout: 7
pools/nodes host-key-checking: false
pools/nodes host-key: ssh-ed25519 AAAA
pools/nodes host-key: [ssh-ed25519 AAAA]
pools/nodes connection-port: 2222
pools/nodes connection-type: winrm
pools/nodes shell-type: cmd
pools/nodes max-parallel-jobs: 4
pools/nodes python-path: /usr/bin/python3
`,
	DriverOpenStack: openStackPeerKeys,
	DriverFake:      openStackPeerKeys,
}

const clusterPeerKeys = `
 context: admin
 launch-retries: 3
 max-cores: 1
 max-ram: 1
 max-resources: {nvidia.com/gpu: 1}
 max-concurrency: 4
 priority: 5
pools max-servers: 1
pools max-cores: 1
pools max-ram: 1
pools max-resources: {nvidia.com/gpu: 1}
pools node-attributes: {a: b}
pools priority: 5
pools default-label-cpu: 1
pools default-label-memory: 1
pools default-label-storage: 1
pools default-label-cpu-limit: 1
pools default-label-memory-limit: 1
pools default-label-storage-limit: 1
pools default-label-extra-resources: {a: 1}
`

const podPeerKeys = `
pools/labels image: docker.io/fedora
pools/labels image-pull: IfNotPresent
pools/labels image-pull: Always
pools/labels image-pull: Never
pools/labels cpu: 2
pools/labels cpu-limit: 2
pools/labels memory: 512
pools/labels memory-limit: 512
pools/labels storage: 10
pools/labels storage-limit: 10
pools/labels gpu: 0.5
pools/labels gpu-resource: nvidia.com/gpu
pools/labels python-path: auto
pools/labels shell-type: cmd
pools/labels env: [{name: A, value: b}]
pools/labels node-selector: {a: b}
pools/labels privileged: true
pools/labels scheduler-name: other
pools/labels volumes: [{name: v, hostPath: {path: /v}}]
pools/labels volume-mounts: [{name: v, mountPath: /v}]
pools/labels labels: {a: b}
pools/labels dynamic-labels: {id: "{request.id}"}
pools/labels annotations: {a: b}
pools/labels extra-resources: {a: 1}
pools/labels spec: {containers: [{name: c, image: i}]} -image
`

const openStackPeerKeys = `
 cloud: other
 region-name: north
 rate: 0.5
 boot-timeout: 60
 launch-timeout: 3600
 launch-retries: 3
 image-upload-timeout: 3600
 image-name-format: "{image_name}-{upload_id}"
 post-upload-hook: /bin/true
 clean-floating-ips: true
 port-cleanup-interval: 0
 nodepool-id: one
 max-concurrency: 4
 priority: 5
cloud-images image-id: one
cloud-images image-name: one -image-id
cloud-images config-drive: true
cloud-images username: admin
cloud-images python-path: auto
cloud-images shell-type: cmd
cloud-images connection-type: winrm
cloud-images connection-port: 5986
diskimages pause: true
diskimages config-drive: true
diskimages connection-type: winrm
diskimages connection-port: 5986
diskimages meta: {a: b}
pools max-servers: 1
pools max-cores: 1
pools max-ram: 1
pools max-volumes: 1
pools max-volume-gb: 1
pools ignore-provider-quota: true
pools availability-zones: [a]
pools networks: [a]
pools security-groups: [a]
pools auto-floating-ip: false
pools host-key-checking: false
pools node-attributes: {a: b}
pools priority: 5
pools/labels diskimage: debian -cloud-image
pools/labels cloud-image: image
pools/labels flavor-name: small
pools/labels min-ram: 1024
pools/labels min-ram: 1024 -flavor-name
pools/labels key-name: zuul
pools/labels console-log: true
pools/labels boot-from-volume: true
pools/labels volume-size: 50
pools/labels instance-properties: {a: b}
pools/labels dynamic-instance-properties: {id: "{request.id}"}
pools/labels userdata: "#cloud-config"
pools/labels networks: [a]
pools/labels host-key-checking: false
`

// bareProviders are files without optional keys.
var bareProviders = map[string]string{
	DriverAWS: `{name: p, driver: aws, region-name: r, cloud-images: [{name: image, image-id: i, username: u}], diskimages: [{name: debian}],
 pools: [{name: main, labels: [{name: work, cloud-image: image, instance-type: t, key-name: k}]}]}`,
	DriverKubernetes:    `{name: p, driver: kubernetes, pools: [{name: main, labels: [{name: work, type: pod, image: i}]}]}`,
	DriverOpenShiftPods: `{name: p, driver: openshiftpods, context: c, pools: [{name: main, labels: [{name: work, image: i}]}]}`,
	DriverMetastatic:    `{name: p, driver: metastatic, pools: [{name: main, labels: [{name: work, backing-label: big}]}]}`,
	DriverStatic:        `{name: p, driver: static, pools: [{name: main, nodes: [{name: host, labels: work}]}]}`,
	DriverOpenStack: `{name: p, driver: openstack, cloud: c, cloud-images: [{name: image, image-id: i}], diskimages: [{name: debian}],
 pools: [{name: main, labels: [{name: work, cloud-image: image, flavor-name: f}]}]}`,
	DriverFake: `{name: p, driver: fake, cloud: c, cloud-images: [{name: image, image-id: i}], diskimages: [{name: debian}],
 pools: [{name: main, labels: [{name: work, cloud-image: image, flavor-name: f}]}]}`,
}

// A site whose file has one key that is refused cannot move. A validator that takes it and a daemon that leaves the
// provider out would be no better.
func TestEveryKeyOfNodepoolsDriversIsTaken(t *testing.T) {
	tried := 0
	for driver, lines := range peerKeys {
		for line := range strings.SplitSeq(lines, "\n") {
			if strings.TrimSpace(line) == "" {
				continue
			}
			tried++
			file := filepath.Join(t.TempDir(), "nodepool.yaml")
			text := withKey(t, bareProviders[driver], line)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := Load(file, Options{Env: alone(), Validate: true}); err != nil {
				t.Errorf("%s, %s: %v", driver, line, err)
			}
			config, err := Load(file, Options{Env: alone()})
			if err != nil || len(config.Frozen) > 0 || len(config.Providers) != 1 || len(config.Foreign) > 0 {
				t.Errorf("%s, %s: a daemon: %v", driver, line, err)
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d keys were tried", tried)
	}
}

// withKey is a file with one provider, and in that one key more.
func withKey(t *testing.T, bare, line string) string {
	t.Helper()
	place, key, _ := strings.Cut(line, " ")
	key, instead, _ := strings.Cut(key, " -")
	var provider, more map[string]any
	for text, into := range map[string]*map[string]any{bare: &provider, key: &more} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	at := provider
	for _, step := range strings.FieldsFunc(place, func(r rune) bool { return r == '/' }) {
		at = at[step].([]any)[0].(map[string]any)
	}
	delete(at, instead)
	maps.Copy(at, more)
	if key == "dedicated-host: true" { // is launched in a zone that has to be said
		provider["pools"].([]any)[0].(map[string]any)["availability-zone"] = "a"
	}
	file, err := yaml.Marshal(map[string]any{
		"zookeeper-servers": []any{map[string]any{"host": "localhost"}}, "images-dir": "/images",
		"labels": []any{map[string]any{"name": "work"}}, "diskimages": []any{map[string]any{"name": "debian", "elements": []string{"debian"}}},
		"providers": []any{provider},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(file)
}

// foreignProviders have each key of drivers that only Nodepool has.
var foreignProviders = map[string]string{
	"gce": `{project: p, region: r, zone: z, rate-limit: 1, boot-timeout: 60, cloud-images: [{name: a, image-id: i, username: u, key: k},
 {name: b, image-project: p, image-family: f}], pools: [{name: main, labels: [{name: work, cloud-image: a, instance-type: t, volume-type: pd-standard, volume-size: 10}]}]}`,
	"azure": `{location: l, resource-group: g, resource-group-location: l, auth-path: /a, subnet-id: s, network: n, ipv4: true, ipv6: true, public-ipv4: true,
 public-ipv6: true, use-internal-ip: true, host-key-checking: true, rate: 1, boot-timeout: 120, launch-timeout: 3600, launch-retries: 3, post-upload-hook: /h,
 cloud-images: [{name: a, username: u, key: k, password: p, generate-password: true, image-reference: {sku: s}}, {name: b, image-filter: {name: n}},
 {name: c, image-id: i}, {name: d, shared-gallery-image: {gallery-name: g}}, {name: e, community-gallery-image: {gallery-name: g}}],
 diskimages: [{name: debian, username: u, key: k, tags: {a: b}}],
 pools: [{name: main, labels: [{name: work, diskimage: debian, hardware-profile: {vm-size: v}, tags: {a: b}, dynamic-tags: {a: b}, user-data: u, custom-data: c, volume-size: 1}]}]}`,
	"ibmvpc": `{vpc: v, region: r, zone: z, subnet: s, image-format: qcow2, quota: {instances: 1, cores: 1, ram: 1}, object-storage: {bucket-name: b},
 diskimages: [{name: debian}], pools: [{name: main, labels: [{name: work, diskimage: debian, profile: p, user-data: u}]}]}`,
	"openshift": `{context: c, launch-retries: 3, max-projects: 2, max-pods: 2, max-cores: 1, max-ram: 1, max-resources: {a: 1},
 pools: [{name: main, labels: [{name: work, type: project}, {name: pod, type: pod, image: i, image-pull-secrets: [{name: n}]}]}]}`,
	"runc": `{pools: [{name: main, host: h, labels: [{name: work, username: zuul, python-path: auto}]}]}`,
}

// A provider of a driver that is not there is named, and harms no other one.
func TestDriversThatOnlyNodepoolHasAreNamed(t *testing.T) {
	for _, driver := range slices.Sorted(maps.Keys(foreignProviders)) {
		file := filepath.Join(t.TempDir(), "nodepool.yaml")
		provider := strings.Replace(foreignProviders[driver], "{", "{name: other, driver: "+driver+", ", 1)
		text := fmt.Sprintf("zookeeper-servers: [{host: localhost}]\nlabels: [{name: work}, {name: pod}]\ndiskimages: [{name: debian, elements: [debian]}]\nproviders:\n  - %s\n  - %s\n",
			provider, bareProviders[DriverStatic])
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, opts := range []Options{{Env: alone(), Validate: true}, {Env: alone()}} {
			config, err := Load(file, opts)
			if err != nil {
				t.Errorf("%s: %v", driver, err)
				continue
			}
			told := strings.Join(config.Warnings, "\n")
			if !strings.Contains(told, fmt.Sprintf("providers[other]: the driver %q is not supported yet, the provider is skipped", driver)) {
				t.Errorf("%s is not named in:\n%s", driver, told)
			}
			if len(config.Providers) != 1 || config.Providers[0].Driver != DriverStatic || len(config.Frozen) > 0 ||
				len(config.Foreign) != 1 || config.Foreign[0].Name != "other" {
				t.Errorf("%s: providers %v, foreign %v, left out %v", driver, config.Providers, config.Foreign, config.Frozen)
			}
		}
	}
}
