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

// A token that ends before a hold locks out who holds the node.
func TestTokensOutliveHolds(t *testing.T) {
	for hold, least := range map[time.Duration]time.Duration{0: 365 * day, 48 * time.Hour: 72 * time.Hour} {
		p := Provider{Settings: &KubernetesDriver{}}
		setTokenLifetime(&Config{MaxHoldAge: hold}, &p)
		if got := SettingsOf[KubernetesDriver](&p).TokenLifetime; got < least {
			t.Errorf("max-hold-age %s: tokens for %s", hold, got)
		}
	}
}
