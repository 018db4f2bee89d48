package launcher

import (
	"errors"
	"testing"

	"poolkeeper/configs"
)

func TestImageConfigOfALabel(t *testing.T) {
	cfg := &configs.Config{DiskImages: []configs.DiskImage{{Name: "debian", Username: "zuul", PythonPath: "auto"}}}
	provider := configs.Provider{
		DiskImages:  []configs.ProviderImage{{Name: "debian", ConnectionType: "winrm", ConnectionPort: 5986}},
		CloudImages: []configs.CloudImage{{Name: "stock", Username: "cloud", ConnectionType: "ssh", ConnectionPort: 2222}},
	}
	p := newPool("host", provider, configs.Pool{Name: "main", Labels: []configs.PoolLabel{
		{Name: "a", DiskImage: "debian"}, {Name: "b", CloudImage: "stock"}, {Name: "c", DiskImage: "gone"},
	}})
	for label, want := range map[string]imageConfig{
		"a": {diskImage: "debian", username: "zuul", pythonPath: "auto", connection: "winrm", port: 5986},
		"b": {cloudImage: "stock", username: "cloud", connection: "ssh", port: 2222},
	} {
		if got, err := p.image(cfg, label); err != nil || got != want {
			t.Errorf("label %s: %+v (%v), want %+v", label, got, err, want)
		}
	}
	for _, label := range []string{"c", "unknown"} {
		if _, err := p.image(cfg, label); !errors.Is(err, ErrNoImage) {
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
		p := newPool("host", configs.Provider{}, configs.Pool{
			HostKeyChecking: tc.pool, Labels: []configs.PoolLabel{{Name: "a", HostKeyChecking: tc.label}},
		})
		if got := p.checksHostKeys("a"); got != tc.want {
			t.Errorf("%+v: %t", tc, got)
		}
	}
}
