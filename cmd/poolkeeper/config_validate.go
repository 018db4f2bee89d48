package main

import (
	"fmt"

	"poolkeeper/configs"
)

// configValidateCmd checks the configuration and nothing else.
type configValidateCmd struct{}

// Run is the command.
func (configValidateCmd) Run(a *app) error {
	cfg, err := configs.Load(a.flags.Config, configs.Options{SecurePath: a.flags.Secure, Strict: true})
	if err != nil {
		return err
	}
	for _, warning := range cfg.Warnings {
		fmt.Fprintln(a.stderr, "poolkeeper: warning:", warning)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: ok: %d images, %d providers, %d labels\n",
		cfg.Path, len(cfg.DiskImages), len(cfg.Providers), len(cfg.Labels))
	return err
}
