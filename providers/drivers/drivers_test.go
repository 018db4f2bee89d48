package drivers

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
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
// says whose clouds config-validate may ask. One that it has not is never asked, whatever its driver could tell.
func TestOnlyDriversThatCheckAreAsked(t *testing.T) {
	kubeconfig, clouds := filepath.Join(t.TempDir(), "config"), filepath.Join(t.TempDir(), "clouds.yaml")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}],
users: [{name: u, user: {token: t}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`
	for file, text := range map[string]string{
		kubeconfig: text, clouds: `clouds: {cloud: {auth: {auth_url: "http://127.0.0.1:1", username: u, password: p, project_name: p}}}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("KUBECONFIG", kubeconfig)
	t.Setenv("OS_CLIENT_CONFIG_FILE", clouds)
	for name, settings := range map[string]any{
		configs.DriverOpenStack: nil, configs.DriverStatic: nil, configs.DriverFake: &configs.FakeDriver{},
		configs.DriverLocal: &configs.LocalDriver{Dir: t.TempDir()}, configs.DriverKubernetes: &configs.KubernetesDriver{},
		configs.DriverOpenShiftPods: &configs.KubernetesDriver{}, configs.DriverMetastatic: nil, configs.DriverAWS: &configs.AWSDriver{Rate: 1},
	} {
		cfg := configs.Provider{Name: "cloud", Driver: name, Cloud: "cloud", Region: "north", Settings: settings}
		p, err := table()[name].open(cfg, quiet())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, checker := p.(providers.Checker); checker != Checks(name) {
			t.Errorf("%s is a Checker: %t", name, checker)
		}
		_ = p.Close()
	}
	if !Checks(configs.DriverOpenStack) || !Checks(configs.DriverKubernetes) || !Checks(configs.DriverOpenShiftPods) {
		t.Error("clouds that can be asked are not")
	}
}
