package configs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A limit that is inherited otherwise than Nodepool does gives jobs less memory than they had.
func TestPodsInheritAsNodepools(t *testing.T) {
	config, err := Load("testdata/kubernetes.good.yml", Options{Env: alone(), Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	label := func(provider, pool, name string) (*PoolLabel, *KubernetesLabel) {
		p, _ := config.Provider(provider)
		section, _ := p.Pool(pool)
		l, ok := section.Label(name)
		if !ok {
			t.Fatalf("no label %s", name)
		}
		return l, l.Settings.(*KubernetesLabel)
	}
	type amounts struct{ CPU, CPULimit, Memory, MemoryLimit, Storage, StorageLimit int }
	of := func(k *KubernetesLabel) amounts {
		return amounts{k.CPU, k.CPULimit, k.Memory, k.MemoryLimit, k.Storage, k.StorageLimit}
	}
	l, pod := label("cluster", "main", "pod")
	if got, want := of(pod), (amounts{2, 4, 512, 1024, 10, 20}); got != want || l.Connection != "kubectl" || l.ShellType != "cmd" {
		t.Errorf("own amounts %+v, want %+v; %+v", got, want, l)
	}
	if want := map[string]int{"example.com/a": 1, "example.com/b": 2}; !cmp.Equal(pod.ExtraResources, want) {
		t.Errorf("extra resources %v", pod.ExtraResources)
	}
	_, pod = label("project", "project", "pod")
	if got, want := of(pod), (amounts{1, 8, 256, 2048, 5, 50}); got != want {
		t.Errorf("the pool's amounts %+v, want %+v", got, want)
	}
	l, _ = label("cluster", "main", "namespace")
	if l.Connection != "namespace" || l.DynamicProperties["tenant"] == "" {
		t.Errorf("namespace: %+v", l)
	}
	alone := KubernetesLabel{CPU: 3, CPULimit: none, Memory: none, MemoryLimit: none, Storage: none, StorageLimit: 9}
	alone.inherit(&KubernetesLabel{CPU: 1, CPULimit: none, Memory: none, MemoryLimit: none, Storage: none, StorageLimit: none})
	if got, want := of(&alone), (amounts{3, 3, none, none, none, 9}); got != want {
		t.Errorf("a limit is what is asked for: %+v, want %+v", got, want)
	}
}

// A token that ends before a hold locks out who holds the node, which may have waited in stock before.
func TestTokensOutliveHolds(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		hold  time.Duration
		label Label
		least time.Duration
		what  string
	}{
		{0, Label{}, 365 * day, "a hold without an end"},
		{48 * hour, Label{}, 72 * hour, "a hold"},
		{48 * hour, Label{MinReady: 1, MaxReadyAge: 30 * day}, 33 * day, "stock, and a hold"},
		{48 * hour, Label{MinReady: 1}, 365 * day, "stock without an end"},
	} {
		c.label.Name = "space"
		p := Provider{Settings: &KubernetesDriver{}, Pools: []Pool{{Labels: []PoolLabel{{Name: "space"}, {Name: "unknown"}}}}}
		setTokenLifetime(&Config{MaxHoldAge: c.hold, Labels: []Label{{Name: "other", MinReady: 1}, c.label}}, &p)
		if got := SettingsOf[KubernetesDriver](&p).TokenLifetime; got < c.least || got > c.least+367*day {
			t.Errorf("%s: tokens for %s, want %s at least", c.what, got, c.least)
		}
	}
}
