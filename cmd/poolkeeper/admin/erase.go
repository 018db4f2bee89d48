package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// EraseCmd forgets the records of a provider that nobody serves any more.
type EraseCmd struct {
	Force    bool   `help:"Do not ask."`
	Provider string `arg:"" help:"The provider, as list and image-list show it."`
}

// Help is what the command's own help says.
func (*EraseCmd) Help() string {
	return "Forgets the uploads and nodes of a provider that has left all configurations. Nothing is deleted in its " +
		"cloud: the command says what stays there. It refuses while a launcher or builder serves the provider, or may, " +
		"and while a node of it is locked, in use, held or given to a request, also with --force."
}

// Run is the command.
func (c *EraseCmd) Run(ctx context.Context, a *app.App) error {
	if err := configs.CheckName("provider", c.Provider); err != nil {
		return err
	}
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		holdings, err := store.Holdings(ctx, c.Provider)
		if err != nil {
			return err
		}
		if holdings.Empty() {
			return unheard(ctx, cfg, store, c.Provider)
		}
		serving, err := store.Serving(ctx, c.Provider)
		if err != nil {
			return err
		}
		if len(serving) > 0 { // asking would be vain
			return fmt.Errorf("provider %s is served by %s; no data erased", c.Provider, strings.Join(serving, ", and by "))
		}
		if err := showHoldings(a, holdings); err != nil {
			return err
		}
		if !c.Force && !a.Confirmed(ctx, fmt.Sprintf("Erase the records of provider %s? [N/y] ", c.Provider)) {
			return errors.New("Aborting. No data erased.") //nolint:revive,staticcheck // Nodepool's words
		}
		if err := store.Erase(ctx, holdings); err != nil {
			return err
		}
		_, err = fmt.Fprintf(a.Stdout, "Erased the records of %d uploads and %d nodes of %s\n",
			len(holdings.Uploads()), len(holdings.Nodes), c.Provider)
		return err
	})
}

// unheard says that nothing is there to erase, and what there is.
func unheard(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, provider string) error {
	images, err := store.Images(ctx)
	if err != nil {
		return err
	}
	nodes, err := store.Nodes(ctx)
	if err != nil {
		return err
	}
	known := slices.DeleteFunc(providersOf(cfg, images, nodes), func(name string) bool { return name == provider })
	return fmt.Errorf("there are no records of provider %s%s", provider, configs.Similar(provider, known))
}

// showHoldings prints the records of a provider, and what stays in its cloud when they
// are gone.
func showHoldings(a *app.App, h *zkmodel.Holdings) error {
	now := time.Now()
	err := listing.Uploads(h.Images, now).WriteText(a.Stdout, false)
	if err == nil {
		err = listing.Nodes(h.Nodes, now).WriteText(a.Stdout, false)
	}
	if err != nil {
		return err
	}
	out := terminal.Visible(a.Stdout)
	for _, n := range h.Backing {
		fmt.Fprintf(out, "Node %s of %s, which is kept for slots of %s, is given back: a launcher of %s deletes it.\n", n.ID, n.Provider, h.Provider, n.Provider)
	}
	leaks := append(imageLeaks(h), machineLeaks(h)...)
	if len(leaks) == 0 {
		_, err = fmt.Fprintf(out, "Nothing of these is known to be in the cloud of %s.\n", h.Provider)
		return err
	}
	fmt.Fprintf(out, "Nobody will delete in the cloud of %s:\n", h.Provider)
	for _, leak := range leaks {
		if _, err = io.WriteString(out, "  "+leak+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// imageLeaks says which images a cloud has, or may have, by the records of uploads.
func imageLeaks(h *zkmodel.Holdings) []string {
	var list []string
	for _, u := range h.Uploads() {
		of := fmt.Sprintf("of build %s-%s, upload %s", u.Image, u.Build, u.ID)
		switch id := u.ExternalID.Text(); {
		case u.Broken != nil:
			list = append(list, fmt.Sprintf("perhaps an image %s, whose record cannot be decoded", of))
		case id != "":
			list = append(list, fmt.Sprintf("image %s %s %s", id, u.ExternalName, of))
		default:
			list = append(list, fmt.Sprintf("perhaps an image %s %s, which is %s", u.ExternalName, of, u.State))
		}
	}
	return list
}

// machineLeaks does so for machines, by the records of nodes.
func machineLeaks(h *zkmodel.Holdings) []string {
	var list []string
	for _, n := range h.Nodes {
		if _, slot := n.OnSlot(); slot {
			continue // its machine is the backing node's
		}
		id, of := n.ExternalID.Text(), fmt.Sprintf("of node %s, which is %s", n.ID, n.State)
		switch {
		case id != "":
			list = append(list, fmt.Sprintf("machine %s %s %s", id, cmp.Or(n.InterfaceIP, n.PublicIPv4, n.PublicIPv6), of))
		case n.State != zkmodel.NodeInit && n.State != zkmodel.NodeAborted && n.State != zkmodel.NodeDeleted:
			list = append(list, "perhaps a machine "+of)
		}
	}
	return list
}
