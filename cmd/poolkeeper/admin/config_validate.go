package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
)

// ConfigValidateCmd checks the configuration, and whether this host has the elements
// that it names.
type ConfigValidateCmd struct {
	Strict  bool   `help:"Fail also for what Nodepool accepts and what is surely not meant: keys and names given twice, labels that can never be launched or that no pool has, images that no provider lists, variables that are not set, no ZooKeeper server, drivers that are not supported, and what this host lacks."`
	Host    string `name:"for" enum:"any,builder,launcher" default:"any" placeholder:"KIND" help:"What this host is to run: builder or launcher; fails if the host lacks what that daemon needs. By default, that is a warning."`
	Keyless bool   `help:"Pass over sealed values that no key on this host opens; what is damaged is told all the same."`
	Clouds  bool   `help:"Ask each cloud (OpenStack, Kubernetes, Amazon) for what the configuration names: flavors, images, networks, key pairs, security groups, zones, rights. Fails for what is not there, and for a cloud that cannot be asked."`
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
	if err := c.checkHost(a, cfg); err != nil {
		return err
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

// checkHost prints what this host lacks for a configuration. It is an error with --strict, and with --for if that
// daemon needs it.
func (c ConfigValidateCmd) checkHost(a *app.App, cfg *configs.Config) error {
	var failed error
	for _, fact := range app.HostFacts(cfg) {
		if c.Strict || c.Host != "any" && (fact.Kind == "" || fact.Kind == c.Host) {
			failed = errors.Join(failed, errors.New(fact.Text))
			continue
		}
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", fact.Text)
	}
	return failed
}
