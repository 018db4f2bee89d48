package configs

import (
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
