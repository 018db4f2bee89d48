package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/listing"
)

// machineTime is how long the deletion of one machine may take, as a launcher's may.
const machineTime = 10 * time.Minute

// now deletes nodes with their machines, one after the other, and lists those that are left.
func (c NodeDeleteCmd) now(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		site, err := store.SiteID(ctx)
		if err != nil {
			return err
		}
		d := &deleter{a: a, site: site, cfg: cfg, process: &drivers.Process{Logger: a.Logger(hclog.Error), Secrets: &a.Secrets}, open: map[string]providers.Provider{}}
		defer d.close()
		var failed error
		for _, id := range c.IDs {
			id = zkmodel.WholeID(id)
			err := configs.CheckName("node", id)
			if err == nil {
				err = action.NotThere(ctx, store, app.Operator(store).DeleteNodeNow(ctx, id, d.check, d.remove), id)
			}
			failed = errors.Join(failed, err)
		}
		nodes, err := store.Nodes(ctx)
		if err == nil {
			err = view.Flags{Forms: view.Forms{Output: "table"}}.Show(a, listing.Nodes(nodes, time.Now()))
		}
		return errors.Join(failed, err)
	})
}

// deleter deletes machines from here.
type deleter struct {
	a       *app.App
	site    string // our installation
	cfg     *configs.Config
	process *drivers.Process
	open    map[string]providers.Provider
}

// check refuses a node whose machine cannot be deleted from here.
func (d *deleter) check(n *zkmodel.Node) error {
	section, configured := d.cfg.Provider(n.Provider)
	if !configured {
		return fmt.Errorf("Provider %s for node %s not defined on this launcher", n.Provider, n.ID) //nolint:staticcheck // Nodepool's words
	}
	if n.ExternalID.IsNull() && n.State != zkmodel.NodeInit && n.State != zkmodel.NodeAborted && n.State != zkmodel.NodeDeleted {
		return fmt.Errorf("node %s is %s, and its machine is not known: without --now, a launcher looks for it and deletes it", n.ID, n.State)
	}
	if d.open[n.Provider] != nil {
		return nil
	}
	p, err := d.process.Open(*section)
	if err != nil {
		return fmt.Errorf("delete node %s: %w", n.ID, err)
	}
	if sited, ok := p.(providers.Sited); ok {
		sited.OfInstallation(d.site)
	}
	d.open[n.Provider] = p
	return nil
}

// remove deletes the machine of a node that check has let pass.
func (d *deleter) remove(ctx context.Context, n *zkmodel.Node) error {
	if n.ExternalID.IsNull() {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, machineTime, fmt.Errorf("deletion took longer than %s", machineTime))
	defer cancel()
	done := app.NewTeller(d.a.Stderr).During(func() string {
		return fmt.Sprintf("waiting until %s has deleted node %s", listing.Visible(n.Provider), n.ID)
	})
	defer done()
	err := d.here(ctx, n)
	if err == nil {
		err = d.open[n.Provider].DeleteNode(ctx, n.ExternalID.Text())
	}
	if err != nil {
		return fmt.Errorf("delete node %s: %w; it is marked, and the launchers of %s go on", n.ID, err, n.Provider)
	}
	return nil
}

// here refuses a machine that runs on another host than this: its provider, which looks only
// on this one, would take it for deleted.
func (d *deleter) here(ctx context.Context, n *zkmodel.Node) error {
	section, _ := d.cfg.Provider(n.Provider) // check has asked
	if _, _, guests := drivers.Guests(*section); !guests {
		return nil
	}
	machines, err := d.open[n.Provider].ListNodes(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(machines, func(m providers.NodeInfo) bool { return m.ExternalID == n.ExternalID.Text() }) {
		return errors.New("its machine is not on this host")
	}
	return nil
}

// close lets go of the providers.
func (d *deleter) close() {
	for _, p := range d.open {
		_ = p.Close() // it has nothing to say
	}
}
