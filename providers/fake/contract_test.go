package fake_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/providers/providertest"
)

// section is a provider of the configuration.
func section(settings *configs.FakeDriver) configs.Provider {
	return configs.Provider{
		Name: "fake-provider-1", Driver: "fake", Settings: settings,
		Pools: []configs.Pool{{
			Name:   "main",
			Labels: []configs.PoolLabel{{Name: "small", DiskImage: "debian"}, {Name: "huge", MinRAM: 1 << 20}},
		}},
	}
}

func open(tb testing.TB, settings *configs.FakeDriver) *fake.Provider {
	tb.Helper()
	p, err := fake.New(section(settings), hclog.NewNullLogger())
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func imageFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.qcow2")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func harness(settings configs.FakeDriver) providertest.Harness {
	return providertest.Harness{
		Open: func(t *testing.T, _ string) providers.Provider {
			t.Helper()
			return open(t, &settings)
		},
		Image:  imageFile,
		Format: "qcow2", Pool: "main", Label: "small", Room: settings.MaxInstances, AnyImage: true, Volatile: true,
	}
}

func TestContractInMemory(t *testing.T) {
	providertest.Run(t, harness(configs.FakeDriver{MaxInstances: 5, BootDelay: 20 * time.Millisecond}))
}

func TestContractShared(t *testing.T) {
	settings := configs.FakeDriver{
		MaxInstances: 5, BootDelay: 20 * time.Millisecond,
		UploadDelay: 10 * time.Millisecond, DeleteDelay: time.Millisecond,
	}
	h := harness(settings)
	h.Volatile = false
	h.Open = func(t *testing.T, dir string) providers.Provider {
		t.Helper()
		mine := settings
		mine.Dir = dir
		return open(t, &mine)
	}
	providertest.Run(t, h)
}

func TestContractStock(t *testing.T) {
	h := harness(configs.FakeDriver{MaxInstances: 20})
	h.Open = func(t *testing.T, _ string) providers.Provider { t.Helper(); return open(t, nil) }
	providertest.Run(t, h)
}
