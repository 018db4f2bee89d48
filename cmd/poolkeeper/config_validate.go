package main

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
)

// configValidateCmd checks the configuration, and whether this host has the elements
// that it names.
type configValidateCmd struct {
	Strict  bool `help:"Fail also for what Nodepool accepts and what is surely not meant: keys and names given twice, labels that can never be launched, drivers that are not supported."`
	Keyless bool `help:"Pass over sealed values that no key on this host opens; what is damaged is told all the same."`
	Clouds  bool `help:"Ask each OpenStack cloud for what the configuration names: flavors, images, networks, key pairs, security groups, zones. Fails for what is not there, and for a cloud that cannot be asked."`
}

// Run is the command.
func (c configValidateCmd) Run(ctx context.Context, a *app) error {
	file, opts := a.flags.Config, configs.Options{SecurePath: a.flags.Secure, Validate: true, Strict: c.Strict, Keyless: c.Keyless, Places: c.Clouds}
	if a.ofFleet() {
		k, err := a.offeredVersion(ctx)
		if err != nil {
			return err
		}
		file, opts.Text, opts.HostPath = k.Version.Name(), k.Text, a.flags.HostConfig
	}
	cfg, warnings, err := configs.Check(file, opts)
	for _, warning := range warnings {
		fmt.Fprintln(a.stderr, "poolkeeper: warning:", warning)
	}
	if err != nil {
		return err
	}
	a.secrets.Add(cfg.Secrets()...)
	for _, warning := range elementWarnings(cfg) {
		fmt.Fprintln(a.stderr, "poolkeeper: warning:", warning)
	}
	asked := ""
	if c.Clouds {
		clouds, err := checkClouds(ctx, cfg, a.logger(hclog.Error), &a.secrets)
		if err != nil {
			return err
		}
		asked = fmt.Sprintf(", %d clouds have all that is named", clouds)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok: %d images, %d providers, %d labels%s\n",
		cfg.Path, len(cfg.DiskImages), len(cfg.Providers), len(cfg.Labels), asked)
	return err
}
