package kubernetes

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// A node counts as what its label asks for, and a provider has what its keys say, whatever its clusters have.
func TestWhatANodeTakes(t *testing.T) {
	s := &server{objects: map[string]map[string]string{"/api/v1/namespaces": nil}}
	serve(t, s)
	cfg := section("main")
	cfg.Settings = &configs.KubernetesDriver{MaxServers: 5, MaxCores: 8, MaxRAM: -1, MaxResources: map[string]int{"example.org/fpga": 4}}
	cfg.Pools[0].Labels = append(cfg.Pools[0].Labels, configs.PoolLabel{Name: "large", Settings: &configs.KubernetesLabel{
		Type: configs.LabelPod, CPU: 2, Memory: 512, GPU: 0.5, GPUResource: "example.org/gpu", ExtraResources: map[string]int{"example.org/fpga": 1},
	}})
	p := opened(t, New, cfg)
	for label, want := range map[string]providers.Resources{
		"work":  {providers.Instances: 1},
		"large": {providers.Instances: 1, providers.Cores: 2, providers.RAM: 512, "example.org/gpu": 1, "example.org/fpga": 1},
	} {
		got, err := p.NodeResources(t.Context(), "main", label)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v: %s", label, err, diff)
		}
	}
	limits, err := p.Limits(t.Context(), nil)
	if diff := cmp.Diff(providers.Resources{providers.Instances: 5, providers.Cores: 8, "example.org/fpga": 4}, limits); diff != "" || err != nil {
		t.Errorf("%v: %s", err, diff)
	}
}
