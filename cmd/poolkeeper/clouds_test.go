package main

import (
	"errors"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

func TestOpenProvider(t *testing.T) {
	open := openProvider(hclog.NewNullLogger())
	for driver, cfg := range map[string]configs.Provider{
		configs.DriverFake:  {Name: "cloud", Driver: configs.DriverFake, Fake: &configs.FakeDriver{}},
		configs.DriverLocal: {Name: "cloud", Driver: configs.DriverLocal, Local: &configs.LocalDriver{Dir: t.TempDir()}},
	} {
		p, err := open(cfg)
		if err != nil {
			t.Errorf("%s: %v", driver, err)
			continue
		}
		if p.Name() != "cloud" {
			t.Errorf("%s: name %q", driver, p.Name())
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: close: %v", driver, err)
		}
	}
	if _, err := open(configs.Provider{Name: "cloud", Driver: "punch-cards"}); !errors.Is(err, providers.ErrNotSupported) {
		t.Errorf("a driver that there is not: %v", err)
	}
}
