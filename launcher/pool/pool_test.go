package pool

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// A label boots from its own image, and is reached as its provider says: settings taken
// from another image, or from the wrong section, reach a machine at the wrong port.
func TestImageConfigOfALabel(t *testing.T) {
	cfg := &configs.Config{DiskImages: []configs.DiskImage{{Name: "debian", Username: "zuul", PythonPath: "auto"}}}
	provider := configs.Provider{
		DiskImages:  []configs.ProviderImage{{Name: "debian", ConnectionType: "winrm", ConnectionPort: 5986}},
		CloudImages: []configs.CloudImage{{Name: "stock", Username: "cloud", ConnectionType: "ssh", ConnectionPort: 2222}},
	}
	p := New("host", provider, configs.Pool{Name: "main", Labels: []configs.PoolLabel{
		{Name: "a", DiskImage: "debian"}, {Name: "b", CloudImage: "stock"}, {Name: "c", DiskImage: "gone"},
	}})
	for label, want := range map[string]Image{
		"a": {DiskImage: "debian", Username: "zuul", PythonPath: "auto", Connection: "winrm", Port: 5986},
		"b": {CloudImage: "stock", Username: "cloud", Connection: "ssh", Port: 2222},
	} {
		if got, err := p.Image(cfg, label); err != nil || got != want {
			t.Errorf("label %s: %+v (%v), want %+v", label, got, err, want)
		}
	}
	for _, label := range []string{"c", "unknown"} {
		if _, err := p.Image(cfg, label); !errors.Is(err, ErrNoImage) {
			t.Errorf("label %s: %v, want ErrNoImage", label, err)
		}
	}
}

// A label's own word on host keys counts more than its pool's.
func TestHostKeyCheckingOfALabel(t *testing.T) {
	yes, no := true, false
	for _, tc := range []struct {
		pool  bool
		label *bool
		want  bool
	}{{true, nil, true}, {false, nil, false}, {false, &yes, true}, {true, &no, false}} {
		p := New("host", configs.Provider{}, configs.Pool{
			HostKeyChecking: tc.pool, Labels: []configs.PoolLabel{{Name: "a", HostKeyChecking: tc.label}},
		})
		if got := p.ChecksHostKeys("a"); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}

// A request can be served by a pool that has all its labels, not some: one that counts
// requests with any of them would show a queue that it can never serve.
func TestAddressableRequestsHaveAllLabelsHere(t *testing.T) {
	p := New("host", configs.Provider{}, configs.Pool{Labels: []configs.PoolLabel{{Name: "a"}, {Name: "b"}}})
	requests := []*zkmodel.Request{
		{State: zkmodel.RequestRequested, NodeTypes: []string{"a"}},
		{State: zkmodel.RequestRequested, NodeTypes: []string{"a", "b", "a"}},
		{State: zkmodel.RequestRequested, NodeTypes: []string{"a", "c"}},
		{State: zkmodel.RequestRequested}, // asks for nothing: nobody's
		{State: zkmodel.RequestPending, NodeTypes: []string{"a"}},
	}
	if got := p.Addressable(requests); got != 2 {
		t.Errorf("%d addressable, want 2", got)
	}
}

// What the configuration does not limit is missing from the limits: a limit of -1 would
// be one that nothing fits in, and 0 is a limit.
func TestLimitsOfAPool(t *testing.T) {
	p := New("host", configs.Provider{}, configs.Pool{MaxServers: 0, MaxCores: -1, MaxRAM: 1024, MaxVolumes: -1, MaxVolumeGB: 9})
	want := providers.Resources{providers.Instances: 0, providers.RAM: 1024, providers.VolumeGB: 9}
	if got := p.Limits(); !maps.Equal(got, want) {
		t.Errorf("limits %v, want %v", got, want)
	}
}

// The pool's own priority counts before its provider's: with the order turned round, a
// spare pool would be taken first.
func TestPriorityOfAPool(t *testing.T) {
	for _, tc := range []struct{ pool, provider, want int }{
		{1, 2, 1}, {0, 2, 2}, {0, 0, schedule.DefaultPriority},
	} {
		p := New("host", configs.Provider{Priority: tc.provider}, configs.Pool{Priority: tc.pool})
		if got := p.Priority(); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}

// Two pools of one name, as before and after a reload, have ids of their own: with one id
// the request that the first declined would be taken for declined by the second.
func TestIDsArePerPool(t *testing.T) {
	id := func() string { return New("host", configs.Provider{Name: "cloud"}, configs.Pool{Name: "main"}).ID }
	one, other := id(), id()
	if one == other || !strings.HasPrefix(one, "host-PoolWorker.cloud-main-") {
		t.Errorf("ids %q and %q", one, other)
	}
}

// A mistake in a label leaves out that label, where it stands and where it is offered, and
// no other; a pool that may have labels which nobody can read says so. Without it a request
// for such a label would be declined for good because of a typing error.
func TestWhatIsLeftOutOfThePool(t *testing.T) {
	section := configs.Pool{Name: "main", Labels: []configs.PoolLabel{{Name: "a"}, {Name: "b"}}}
	cfg := &configs.Config{
		Labels:    []configs.Label{{Name: "a"}, {Name: "b"}},
		Providers: []configs.Provider{{Name: "north", Pools: []configs.Pool{section}}},
		Frozen: []configs.Frozen{
			{Kind: "pool label", Provider: "north", Pool: "main", Name: "a", Why: "its image is wrong"},
			{Kind: "pool label", Provider: "south", Pool: "main", Name: "b", Why: "another pool's"},
			{Kind: "pool label", Provider: "south", Pool: "main", Name: "c", Why: "min-ram is no number"},
			{Kind: "pool label", Provider: "north", Pool: "main", Why: "a label without a name"},
		},
	}
	p := New("host", cfg.Providers[0], section)
	p.Freeze(cfg)
	want := map[string]string{"a": "its image is wrong", "c": "min-ram is no number"}
	if !maps.Equal(p.Frozen, want) || p.Rest != "a label without a name" {
		t.Errorf("left out: %v, rest %q", p.Frozen, p.Rest)
	}
}

// Limits are those of the tenant that they are set for.
func TestLimitsOfTenants(t *testing.T) {
	cfg := &configs.Config{TenantLimits: []configs.TenantLimit{
		{Tenant: "one", Limits: providers.Resources{providers.Cores: 8}},
		{Tenant: "two", Limits: providers.Resources{providers.Instances: 2}},
	}}
	got := TenantLimits(cfg)
	if len(got) != 2 || got["one"][providers.Cores] != 8 || got["two"][providers.Instances] != 2 {
		t.Errorf("limits: %v", got)
	}
}
