package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// InfoCmd shows what the tree has of a provider.
type InfoCmd struct {
	view.Forms
	Provider string `arg:"" help:"The provider, as list and image-list show it."`
}

// Run is the command.
func (c InfoCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("provider", c.Provider); err != nil {
		return err
	}
	return a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		all, err := store.Images(ctx)
		if err != nil {
			return err
		}
		machines, err := store.Nodes(ctx)
		if err != nil {
			return err
		}
		if known := providersOf(cfg, all, machines); !slices.Contains(known, c.Provider) {
			return fmt.Errorf("provider %q is not in %s, and the tree has no records of it%s",
				c.Provider, cfg.Path, configs.Similar(c.Provider, known))
		}
		images, nodes := listing.ProviderImages(all, c.Provider), listing.ProviderNodes(machines, c.Provider, time.Now())
		return c.print(a, images, nodes)
	})
}

// print prints the two tables, or one object that holds both.
func (c InfoCmd) print(a *app.App, images, nodes *listing.Table) error {
	name, err := json.Marshal(c.Provider)
	if err != nil {
		return err
	}
	v1 := struct {
		view.Head
		Provider string `json:"provider"`
	}{view.HeadOf("provider"), c.Provider}
	const title = "ZooKeeper data for provider %s\n\nImage data:\n" // Nodepool's words, as are the others
	return c.Parts(a, `{"provider": `+string(name)+`}`, v1,
		view.Part{Key: "images", Title: fmt.Sprintf(title, listing.Visible(c.Provider)), Table: images},
		view.Part{Key: "nodes", Title: "\nNodes:\n", Table: nodes})
}

// providersOf are the providers that are configured, also those of drivers that we do not
// have or that a mistake leaves out, and those that some records name.
func providersOf(cfg *configs.Config, images []*zkmodel.Image, nodes []*zkmodel.Node) []string {
	names, _ := cfg.ProviderNames()
	for _, p := range cfg.Skipped {
		names = append(names, p.Name)
	}
	for _, image := range images {
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				names = append(names, u.Provider)
			}
		}
	}
	for _, n := range nodes {
		names = append(names, n.Provider)
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}
