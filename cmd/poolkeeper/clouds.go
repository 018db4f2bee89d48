package main

import (
	"fmt"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/providers/local"
	"poolkeeper/providers/openstack"
	"poolkeeper/providers/static"
)

// openProvider makes the provider that a section of the configuration asks for.
func openProvider(log hclog.Logger) func(configs.Provider) (providers.Provider, error) {
	return func(cfg configs.Provider) (providers.Provider, error) {
		log := log.Named("provider")
		switch cfg.Driver {
		case configs.DriverOpenStack:
			return openstack.New(cfg, openstack.Options{Logger: log})
		case configs.DriverLocal:
			return local.New(cfg, local.Options{Logger: log})
		case configs.DriverFake:
			return fake.New(cfg, log)
		case configs.DriverStatic:
			return static.New(cfg), nil
		}
		return nil, fmt.Errorf("open provider %s: driver %q: %w", cfg.Name, cfg.Driver, providers.ErrNotSupported)
	}
}
