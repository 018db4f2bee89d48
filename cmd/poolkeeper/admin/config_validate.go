package admin

import (
	"context"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
)

// ConfigValidateCmd checks the configuration, and whether this host has the elements
// that it names.
type ConfigValidateCmd struct {
	Strict  bool `help:"Fail also for what Nodepool accepts and what is surely not meant: keys and names given twice, labels that can never be launched, drivers that are not supported."`
	Keyless bool `help:"Pass over sealed values that no key on this host opens; what is damaged is told all the same."`
	Clouds  bool `help:"Ask each cloud (OpenStack, Kubernetes, Amazon) for what the configuration names: flavors, images, networks, key pairs, security groups, zones, rights. Fails for what is not there, and for a cloud that cannot be asked."`
}

// Run is the command.
func (c ConfigValidateCmd) Run(ctx context.Context, a *app.App) error {
	file, opts := a.Flags.Config, configs.Options{SecurePath: a.Flags.Secure, Validate: true, Strict: c.Strict, Keyless: c.Keyless, Places: c.Clouds}
	if a.OfFleet() {
		k, err := a.OfferedVersion(ctx)
		if err != nil {
			return err
		}
		file, opts.Text, opts.HostPath = k.Version.Name(), k.Text, a.Flags.HostConfig
	}
	cfg, warnings, err := configs.Check(file, opts)
	for _, warning := range warnings {
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", warning)
	}
	if err != nil {
		return err
	}
	a.Secrets.Add(cfg.Secrets()...)
	for _, warning := range app.ElementWarnings(cfg) {
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", warning)
	}
	asked := ""
	if c.Clouds {
		clouds, _, err := app.CheckClouds(ctx, cfg, a.Logger(hclog.Error), &a.Secrets)
		if err != nil {
			return err
		}
		asked = fmt.Sprintf(", %d clouds have all that is named", clouds)
	}
	_, err = fmt.Fprintf(a.Stdout, "%s: ok: %d images, %d providers, %d labels%s\n",
		cfg.Path, len(cfg.DiskImages), len(cfg.Providers), len(cfg.Labels), asked)
	return err
}
