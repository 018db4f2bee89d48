package configs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A default that is not Nodepool's gives jobs more neighbours than they had, or backing nodes
// back sooner.
func TestSlotsMeanWhatNodepoolsMean(t *testing.T) {
	config, err := Load("testdata/metastatic.good.yml", Options{Env: alone(), Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := config.Provider("slots")
	if p.BootTimeout != 100*time.Second || p.LaunchTimeout != 1000*time.Second || p.LaunchRetries != 2 {
		t.Errorf("provider %+v", p)
	}
	main, _ := p.Pool("main")
	second, _ := p.Pool("second")
	small, _ := main.Label("small")
	bare, _ := second.Label("bare")
	if want := (&MetastaticLabel{"large", 2, 2 * time.Second, 300 * time.Second, 300 * time.Second}); !cmp.Equal(small.Settings, any(want)) {
		t.Errorf("label %+v", small.Settings)
	}
	if want := (&MetastaticLabel{"metal", 1, time.Minute, 0, 0}); !cmp.Equal(bare.Settings, any(want)) || bare.HostKeyChecking != nil || second.HostKeyChecking || !main.HostKeyChecking || *small.HostKeyChecking {
		t.Errorf("label %+v %+v", bare, bare.Settings)
	}
	if want := map[string]string{"small": "large", "other": "large", "bare": "metal"}; !cmp.Equal(p.BackingLabels(), want) {
		t.Errorf("backing labels %v", p.BackingLabels())
	}
	if cloud, _ := config.Provider("cloud"); cloud.BackingLabels() != nil {
		t.Error("a cloud has backing labels")
	}
	defaults := defaultProvider("p", DriverMetastatic)
	if defaults.BootTimeout != 2*time.Minute || defaults.LaunchTimeout != time.Hour || defaults.LaunchRetries != 3 {
		t.Errorf("defaults %+v", defaults)
	}
}

// The configuration of the page means what the page says of it, beside a provider of the backing nodes.
func TestMetastaticPage(t *testing.T) {
	page, err := os.ReadFile("../docs/metastatic.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\n")
	block, _, found := strings.Cut(block, "```")
	if !found {
		t.Fatal("the page shows no configuration")
	}
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	text := "zookeeper-servers: [{host: localhost}]\nlabels: [{name: small-node}, {name: large-node}]\n" + block +
		"  - {name: cloud, driver: static, pools: [{name: main, nodes: [{name: 127.0.0.1, labels: [large-node], host-key-checking: false}]}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := Load(file, Options{Env: alone(), Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	p, _ := config.Provider("slots")
	main, _ := p.Pool("main")
	label, _ := main.Label("small-node")
	own, _ := label.Settings.(*MetastaticLabel)
	if own == nil || own.GraceTime != 10*time.Minute || own.MaxParallelJobs != 8 || p.BackingLabels()["small-node"] != "large-node" {
		t.Errorf("label %+v %+v", label, own)
	}
}

// Mistake: labels of slots that a mistake leaves out, of themselves or with their pool, are taken for labels that are
// gone, so that their backing nodes go.
func TestSlotsThatAreLeftOut(t *testing.T) {
	slots := func(pools string) *Config {
		t.Helper()
		return load(t, `
zookeeper-servers: [{host: localhost}]
labels: [{name: small}, {name: wrong}, {name: large}]
providers:
  - {name: cloud, driver: static, pools: [{name: main, nodes: [{name: 127.0.0.1, labels: [large], host-key-checking: false}]}]}
  - {name: slots, driver: metastatic, pools: [`+pools+`]}
`)
	}
	whole := `{name: main, labels: [{name: small, backing-label: large, max-parallel-jobs: 2}]}`
	of := slots(whole)
	if why := of.FrozenSlots("slots", "small") + of.FrozenSlots("slots", "wrong") + of.FrozenSlots("slots", "gone"); why != "" {
		t.Errorf("left out without a mistake: %s", why)
	}
	of = slots(`{name: main, labels: [{name: small, backing-label: large, max-parallel-jobs: 2}, {name: wrong, backing-label: large, max-parallel-jobs: 3}]}`)
	if of.FrozenSlots("slots", "wrong") == "" || of.FrozenSlots("slots", "small") != "" || of.FrozenSlots("slots", "gone") != "" {
		t.Errorf("a label is left out: %v", of.Frozen)
	}
	of = slots(whole + `, {name: other, max-servers: many, labels: [{name: wrong, backing-label: large, max-parallel-jobs: 2}]}`)
	if of.FrozenSlots("slots", "wrong") == "" || of.FrozenSlots("slots", "small") != "" || of.FrozenSlots("cloud", "wrong") != "" {
		t.Errorf("a pool is left out: %v", of.Frozen)
	}
}
