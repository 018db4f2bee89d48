package drivers

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

func quiet() *Process { return &Process{Logger: hclog.NewNullLogger()} }

// sections are one of each driver that needs no cloud.
func sections(t *testing.T) []configs.Provider {
	t.Helper()
	return []configs.Provider{
		{Name: "cloud", Driver: configs.DriverFake, Settings: &configs.FakeDriver{}},
		{Name: "cloud", Driver: configs.DriverLocal, Settings: &configs.LocalDriver{Dir: t.TempDir()}},
		{Name: "cloud", Driver: configs.DriverStatic, Pools: []configs.Pool{{Name: "main", Nodes: []configs.StaticNode{{Name: "a"}}}}},
	}
}

// Two drivers that were mixed up in the table would open each other's sections.
func TestOpenEachDriver(t *testing.T) {
	for _, cfg := range sections(t) {
		p, err := quiet().Open(cfg)
		if err != nil {
			t.Errorf("%s: %v", cfg.Driver, err)
			continue
		}
		if p.Name() != "cloud" {
			t.Errorf("%s: name %q", cfg.Driver, p.Name())
		}
		s, slots := p.(providers.Slotter)
		if slots != (cfg.Driver == configs.DriverStatic) || slots && len(s.Slots()) != 1 {
			t.Errorf("%s: it says that its machines exist already: %t, or has not the one it has", cfg.Driver, slots)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: close: %v", cfg.Driver, err)
		}
	}
	if _, err := quiet().Open(configs.Provider{Name: "cloud", Driver: "punch-cards"}); !errors.Is(err, providers.ErrNotSupported) {
		t.Errorf("a driver that there is not: %v", err)
	}
}

// A driver that only one table has could be configured and not opened, or never be
// configured.
func TestBothTablesHaveTheSameDrivers(t *testing.T) {
	if here, there := slices.Sorted(maps.Keys(table())), configs.Drivers(); !slices.Equal(here, there) {
		t.Errorf("providers/drivers opens %v, configs knows %v", here, there)
	}
}

// Errors of opening quote what the cloud or the file system said: without the redaction
// a secret that is in them would be logged.
func TestErrorsOfOpeningShowNoSecret(t *testing.T) {
	secrets := &redact.Secrets{}
	secrets.Add("hunter2-hunter2")
	p := &Process{Logger: hclog.NewNullLogger(), Secrets: secrets}
	_, err := p.Open(configs.Provider{Name: "hunter2-hunter2", Driver: configs.DriverLocal})
	if err == nil || secrets.Has(err.Error()) || !errors.Is(err, providers.ErrInvalid) {
		t.Errorf("error %v", err)
	}
}

// Redacted forwards every check and answers for drivers that have none: only the table
// says whose clouds config-validate may ask.
func TestOnlyDriversThatCheckAreAsked(t *testing.T) {
	checked := []string{configs.DriverOpenStack, configs.DriverKubernetes, configs.DriverOpenShiftPods, configs.DriverAWS}
	for name, d := range table() {
		if d.checks != Checks(name) || d.checks != slices.Contains(checked, name) {
			t.Errorf("%s checks: %t", name, d.checks)
		}
	}
	for _, cfg := range sections(t) {
		p, err := table()[cfg.Driver].open(cfg, quiet())
		if err != nil {
			t.Fatal(err)
		}
		if _, checker := p.(providers.Checker); checker != Checks(cfg.Driver) {
			t.Errorf("%s is a Checker: %t", cfg.Driver, checker)
		}
		_ = p.Close()
	}
}
