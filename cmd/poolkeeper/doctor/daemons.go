package doctor

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/recipe"
)

// daemons looks whether daemons do their work: those that the configuration has work for run,
// can use their providers, and have the fleet's configuration; and one of the kind that this host
// is to run is registered from here.
func (d *doctor) daemons(ctx context.Context, s *recipe.Session, cfg *configs.Config) {
	tree, err := overview.ReadDaemons(ctx, zkmodel.NewStore(s, d.now), d.now())
	if err != nil {
		d.fault("daemons", "look at the log of the ZooKeeper servers", "%v", err)
		return
	}
	for _, u := range tree.Unread {
		d.fault("daemons", "set zookeeper-auth to the user who owns the tree", "what the tree has of %s cannot be read: %v", u.Part, u.Err)
	}
	if len(tree.Unread) > 0 {
		return // who runs is not known
	}
	well := true
	for _, m := range overview.New(tree, cfg).Attention {
		if d.host != "any" && (m.Kind == attention.NoBuilder && d.host == builder || m.Kind == attention.NoLauncher && d.host == launcher) {
			continue // told below, of this host
		}
		well = false
		d.fault("daemons", m.Do, "%s", strings.TrimSuffix(m.What+": "+m.Why, ": "))
	}
	switch here, err := d.runsHere(ctx, tree.Daemons); {
	case err != nil:
		d.warn("daemons", "give this host a name", "the name of this host cannot be told: %v", err)
	case !here:
		d.fault("daemons", "systemctl start poolkeeper-"+d.host+"; its log says why it does not run", "no %s on this host is registered", d.host)
	case well:
		d.good("daemons", "%d run, and can do their work", len(tree.Daemons))
	}
}

// runsHere reports whether a daemon of the kind that this host is to run is registered from it.
func (d *doctor) runsHere(ctx context.Context, daemons []zkmodel.Daemon) (bool, error) {
	if d.host == "any" {
		return true, nil
	}
	short, full, err := app.Hostnames(ctx)
	return slices.ContainsFunc(daemons, func(one zkmodel.Daemon) bool {
		host := cmp.Or(one.Hostname, one.Name)
		return one.Kind == d.host && (host == short || host == full)
	}), err
}
