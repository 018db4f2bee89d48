package admin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/configs/effective"
	"poolkeeper/zkmodel/listing"
)

// ConfigShowCmd shows what the configuration comes to on this host.
type ConfigShowCmd struct {
	Path     string `arg:"" optional:"" placeholder:"PATH" help:"Only what is there: labels, providers.cloud-1, diskimages.debian-12.formats."`
	Defaults bool   `help:"Also what no file says, with its default."`
	Nodepool bool   `help:"Leave out keys that Poolkeeper has added to Nodepool's format, and providers whose driver Nodepool lacks. With -o yaml the output is a file for Nodepool."`
	Origin   bool   `help:"With -o yaml, say behind each value where it comes from; the other forms always do."`
	Output   string `short:"o" enum:"table,json,json-v1,yaml" default:"table" placeholder:"FORM" help:"How to print: table; json or json-v1, a document of version v1; yaml, as a configuration (${default})."`
}

// Help is what the command's help adds.
func (ConfigShowCmd) Help() string {
	return "What counts is shown: with what images inherit, the secure file, the host's own file, variables of the environment and defaults; " +
		"and where each value comes from. Secrets are masked. Nothing is written. What config-validate refuses and a daemon leaves out or goes on with is told " +
		"on stderr, with exit code 1; a configuration that no daemon can use is not shown."
}

// Run is the command.
func (c ConfigShowCmd) Run(ctx context.Context, a *app.App) error {
	file, version, opts := a.Flags.Config, 0, configs.Options{SecurePath: a.Flags.Secure, Keyless: true}
	if a.OfFleet() {
		k, err := a.OfferedVersion(ctx)
		if err != nil {
			return err
		}
		file, version, opts.Text, opts.HostPath = k.Version.Name(), int(k.Version.Number), k.Text, a.Flags.HostConfig
	}
	cfg, err := a.KeepSecret(configs.Load(file, opts))
	if err != nil {
		return err
	}
	files, err := configs.ReadWritten(file, opts)
	if err != nil {
		return err
	}
	tree := effective.Of(cfg, files, version)
	if c.Nodepool {
		tree.ForNodepool()
	}
	if err := tree.Select(c.Path); err != nil {
		return err
	}
	if err := c.show(a, tree); err != nil {
		return err
	}
	opts.Validate = true
	_, warnings, err := configs.Check(file, opts)
	for _, warning := range warnings {
		fmt.Fprintln(a.Stderr, "poolkeeper: warning:", a.Secrets.Text(listing.Visible(warning)))
	}
	return err
}

// show prints a configuration as it was asked for.
func (c ConfigShowCmd) show(a *app.App, tree *effective.Tree) error {
	table := listing.Configuration(tree.Rows(c.Defaults))
	switch c.Output {
	case "yaml":
		var text strings.Builder
		if err := tree.WriteYAML(&text, effective.YAML{Defaults: c.Defaults, Origins: c.Origin}); err != nil {
			return err
		}
		_, err := fmt.Fprint(a.Stdout, text.String())
		return err
	case "json", "json-v1":
		return table.WriteDocument(a.Stdout, time.Now())
	}
	return view.Flags{Forms: view.Forms{Output: "table"}}.Show(a, table)
}
