package kubernetes_test

import (
	"encoding/base64"
	"os"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/kubernetes"
	"poolkeeper/providers/providertest"
)

func encoded(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// section is a provider as files have it.
func section(t *testing.T, text string) configs.Provider {
	t.Helper()
	path := t.TempDir() + "/nodepool.yaml"
	if err := os.WriteFile(path, []byte(`
zookeeper-servers: [{host: localhost}]
labels: [{name: work}, {name: space}]
providers:
`+text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(path, configs.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Providers[0]
}

// clusterSection has a pool of each type of label.
const clusterSection = `
- name: cluster
  driver: kubernetes
  context: kube-test
  pools:
  - name: POOL
    default-label-cpu: 1
    default-label-memory: 512
    labels:
    - {name: work, type: pod, image: docker.io/fedora:28}
    - {name: space, type: namespace, cpu: 1, memory: 512}
`

// podsSection puts pods into a namespace.
const podsSection = `
- name: shared
  driver: openshiftpods
  context: limited
  max-pods: 3
  pools:
  - name: POOL
    labels:
    - {name: work, image: docker.io/fedora:28, cpu: 1, memory: 512}
`

func open(t *testing.T, cfg configs.Provider) providers.Provider {
	t.Helper()
	make := kubernetes.New
	if cfg.Driver == configs.DriverOpenShiftPods {
		make = kubernetes.NewPods
	}
	p, err := make(cfg, kubernetes.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(pool string) func(providers.NodeSpec) string {
	return func(spec providers.NodeSpec) string { return pool + "-" + spec.NodeID }
}

func TestContractOfKubernetes(t *testing.T) {
	for _, label := range []string{"work", "space"} {
		t.Run(label, func(t *testing.T) {
			pool := "contract-" + label
			cfg := section(t, replace(clusterSection, "POOL", pool, "name: cluster", "name: "+pool))
			providertest.Run(t, providertest.Harness{
				Open: func(t *testing.T, _ string) providers.Provider {
					t.Helper()
					return open(t, cfg)
				},
				NoImages: true, Pool: pool, Label: label, Named: named(pool), Timeout: 3 * time.Minute,
			})
		})
	}
}

func TestContractOfOpenShiftPods(t *testing.T) {
	a := limited(t, "contract-pods")
	a.must("POST", "/api/v1/namespaces/contract-pods/resourcequotas",
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: room}, spec: {hard: {pods: '3'}}}")
	cfg := section(t, replace(podsSection, "POOL", "contract-pods"))
	providertest.Run(t, providertest.Harness{
		Open: func(t *testing.T, _ string) providers.Provider {
			t.Helper()
			return open(t, cfg)
		},
		NoImages: true, Pool: "contract-pods", Label: "work", Room: 3, Timeout: 3 * time.Minute,
		Named: named("work"),
	})
}
