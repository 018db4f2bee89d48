package openstack

import (
	"errors"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

func TestFlavors(t *testing.T) {
	s := newStub(t)
	for _, c := range []struct {
		name  string
		ram   int
		cores int // 0 expects ErrInvalid
		words string
	}{
		{name: "ci.small", cores: 1},
		{name: "3", cores: 8}, // an id
		{ram: 1, cores: 1},
		{ram: 1025, cores: 1}, // gpu.small, 2048 MiB
		{ram: 1025, name: "ci.", cores: 2},
		{ram: 8192, cores: 8},
		{name: "ci", words: `flavor-name: the cloud has no flavor "ci", it has ci.small, gpu.small, ci.medium, ci.large`},
		{ram: 1, name: "tpu", words: `flavor-name: no flavor's name contains "tpu"`},
		{ram: 8193, words: "min-ram: 8193 MiB do not fit, the largest flavor ci.large has 8192"},
		{ram: 3000, name: "gpu", words: "min-ram: 3000 MiB do not fit, the largest flavor gpu.small has 2048"},
	} {
		cfg := section()
		cfg.Pools[0].Labels[0].FlavorName, cfg.Pools[0].Labels[0].MinRAM = c.name, c.ram
		need, err := s.open(t, cfg).NodeResources(t.Context(), "main", "small")
		switch {
		case c.cores == 0:
			if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "provider north: pool main, label small") ||
				!strings.Contains(err.Error(), c.words) {
				t.Errorf("%s/%d: %v, want %q", c.name, c.ram, err, c.words)
			}
		case err != nil || need[providers.Cores] != c.cores || need[providers.Instances] != 1:
			t.Errorf("%s/%d: %v, %v, want %d cores", c.name, c.ram, need, err, c.cores)
		}
	}
}

// The limits are the project's, less what servers of others take.
func TestLimits(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	for _, owner := range []string{"north", "south", ""} {
		meta := map[string]any{}
		if owner != "" {
			meta[providers.MetaProvider] = owner
		}
		s.addServer(map[string]any{"name": owner, "flavorRef": "3", "metadata": meta})
	}
	got, err := p.Limits(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, limited := got[providers.Cores]; limited || got[providers.Instances] != 3 || got[providers.RAM] != 1<<20-2*8192 {
		t.Errorf("Limits gave %v", got)
	}
	s.quota = 1
	if got, err := p.Limits(t.Context(), nil); err != nil || got[providers.Instances] != 0 {
		t.Errorf("Limits of a project that others have filled gave %v, %v", got, err)
	}
}

func TestNetworks(t *testing.T) {
	s := newStub(t)
	s.networks = append(s.networks,
		map[string]any{"id": netPrivate, "name": "twice"}, map[string]any{"id": netOutside, "name": "twice"})
	for name, want := range map[string]string{
		"public": "", netPrivate: "",
		"twice":   `networks: 2 networks are called "twice", write the id of one: ` + netPrivate + ", " + netOutside,
		"publick": `networks: the cloud has no network "publick", it has public, twice, twice`,
	} {
		cfg := section()
		cfg.Pools[0].Labels[0].Networks = []string{name}
		p := s.open(t, cfg)
		o, err := p.offer("main", "small")
		if err != nil {
			t.Fatal(err)
		}
		attached, err := p.attachments(t.Context(), o)
		if want == "" && (err != nil || len(attached) != 1) {
			t.Errorf("%s: %v, %v", name, attached, err)
		}
		if want != "" && (!errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	// Where the cloud has no Neutron, an id is taken as it is.
	o := offer{pool: &configs.Pool{}, label: &configs.PoolLabel{}}
	if id, err := networkID(o, netPublic, nil); id != netPublic || err != nil {
		t.Errorf("without a list, the id gave %q, %v", id, err)
	}
}
