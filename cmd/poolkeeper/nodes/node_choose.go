package nodes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/listing"
)

// choosing are the flags that choose nodes instead of their ids.
type choosing struct {
	view.ByState
	view.ByProvider
	view.ByLabel
	view.ByImage
	OlderThan app.Length `placeholder:"TIME" help:"Only nodes that have been in their state for longer, such as 12h."`
	InUse     bool       `help:"Also nodes that jobs use, or are about to."`
	Limit     int        `default:"10" help:"How many of those that are chosen, at the most, the oldest first (${default})."`
	DryRun    bool       `help:"Show the nodes that are chosen, and delete nothing."`
	Yes       bool       `help:"Do not ask."`
}

// chooses reports whether any flag chooses.
func (c choosing) chooses() bool {
	return len(c.State)+len(c.Provider)+len(c.Label)+len(c.Image) > 0 || c.OlderThan > 0
}

// AfterApply is called by kong with what was typed. It refuses a filter without a value, as a
// script has it whose variable is empty: kong drops it, and more nodes would be chosen.
func (*NodeDeleteCmd) AfterApply(typed *kong.Context) error {
	for _, p := range typed.Path {
		if f := p.Flag; f != nil && f.Target.Kind() == reflect.Slice && f.Target.Len() == 0 {
			return fmt.Errorf("--%s: expected a value, got none", f.Name)
		}
	}
	return nil
}

// errNothingChosen is the error of a command without nodes and filters.
var errNothingChosen = errors.New("expected nodes, or a filter: --state, --provider, --label, --image, --older-than")

// check refuses flags that make no sense together.
func (c choosing) check(ids []string, broken bool) error {
	switch {
	case len(ids) == 0 && !c.chooses():
		return errNothingChosen
	case len(ids) > 0 && (c.chooses() || c.InUse || c.DryRun):
		return errors.New("expected either nodes or filters, not both")
	case broken && c.chooses():
		return errors.New("--broken: expected nodes, no filter: what cannot be decoded has no state, provider, label or image")
	case c.Limit < 1:
		return fmt.Errorf("--limit %d: expected at least 1", c.Limit)
	}
	return nil
}

// choice is what flags choose.
type choice struct {
	nodes  []*zkmodel.Node // the oldest first
	more   int             // than --limit
	spared map[string]int  // that match and are not chosen, by why
}

// choose finds the nodes that flags choose.
func (c choosing) choose(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, now time.Time) (*choice, error) {
	all, err := store.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.images(cfg, all); err != nil {
		return nil, err
	}
	table := listing.Nodes(all, now)
	if err := view.Pick(table, view.States(c.ByState, zkmodel.NodeStates()...), c.Providers(cfg), c.Labels(cfg)); err != nil {
		return nil, err
	}
	var names strings.Builder
	if err := table.WriteNames(&names); err != nil {
		return nil, err
	}
	ids := strings.Fields(names.String())
	var chosen []*zkmodel.Node
	spared := map[string]int{}
	for _, n := range all {
		switch why := c.spares(n, now); {
		case !slices.Contains(ids, n.ID):
		case why != "":
			spared[why]++
		default:
			chosen = append(chosen, n)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *zkmodel.Node) int {
		return listing.Changed(a.StateTime, a.Stat.Mtime).Compare(listing.Changed(b.StateTime, b.Stat.Mtime))
	})
	kept := min(c.Limit, len(chosen))
	return &choice{chosen[:kept], len(chosen) - kept, spared}, nil
}

// images refuses the name of an image that no node was booted from and that is not configured.
func (c choosing) images(cfg *configs.Config, nodes []*zkmodel.Node) error {
	var known []string
	for n := range cfg.DiskImages {
		known = append(known, cfg.DiskImages[n].Name)
	}
	for _, n := range nodes {
		if name := bootedFrom(n); name != "" {
			known = append(known, name)
		}
	}
	for _, name := range c.Image {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--image %q: there is none%s", name, configs.Similar(name, known))
		}
	}
	return nil
}

// bootedFrom is the image that a node was booted from: of ours, or the cloud's own.
func bootedFrom(n *zkmodel.Node) string {
	if key, err := zkmodel.ParseUploadPath(n.ImageID); err == nil {
		return key.Image
	}
	return n.ImageID
}

// spares says why a node that has the state, provider and label is not chosen; "" is that it is.
func (c choosing) spares(n *zkmodel.Node, now time.Time) string {
	used := n.State == zkmodel.NodeInUse || n.AllocatedTo != "" && n.State != zkmodel.NodeUsed && n.State != zkmodel.NodeHold && n.State != zkmodel.NodeFailed
	switch {
	case n.Broken != nil:
		return "its record cannot be read"
	case n.State == zkmodel.NodeDeleting || n.State == zkmodel.NodeDeleted:
		return "it is being deleted"
	case n.State == zkmodel.NodeHold && !slices.Contains(c.State, string(zkmodel.NodeHold)):
		return "it is held (--state hold chooses it)"
	case used && !c.InUse:
		return "a job uses it, or is given it (--in-use chooses it)"
	case len(c.Image) > 0 && !slices.Contains(c.Image, bootedFrom(n)):
		return "it was booted from another image"
	case now.Sub(listing.Changed(n.StateTime, n.Stat.Mtime)) < c.OlderThan.Duration():
		return "it is younger"
	}
	return ""
}

func forRequest(n *zkmodel.Node) string {
	if n.AllocatedTo == "" {
		return ""
	}
	return "for request " + n.AllocatedTo
}

// confirm shows what is chosen, and asks; it reports whether to go on.
func (c choosing) confirm(ctx context.Context, a *app.App, which *choice, now time.Time) (bool, error) {
	if len(which.nodes) == 0 {
		_, err := fmt.Fprintln(a.Stdout, "No node is chosen")
		for _, why := range slices.Sorted(maps.Keys(which.spared)) {
			fmt.Fprintf(a.Stdout, "%d that match: %s\n", which.spared[why], listing.Visible(why))
		}
		return false, err
	}
	if err := listing.Nodes(which.nodes, now).WriteText(a.Stdout, false); err != nil {
		return false, err
	}
	if which.more > 0 {
		fmt.Fprintf(a.Stdout, "%d more match; --limit %d leaves them\n", which.more, c.Limit)
	}
	if c.DryRun || c.Yes {
		return !c.DryRun, nil
	}
	if !a.Confirmed(ctx, fmt.Sprintf("Delete these nodes: %d? [y/N] ", len(which.nodes))) {
		return false, errors.New("nothing was deleted: answer y, or give --yes")
	}
	return true, nil
}

// deleteChosen deletes the nodes that flags choose, and says of each what was done.
func (c NodeDeleteCmd) deleteChosen(ctx context.Context, a *app.App) error {
	return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		now := time.Now()
		which, err := c.choose(ctx, cfg, store, now)
		if err != nil {
			return err
		}
		if on, err := c.confirm(ctx, a, which, now); err != nil || !on {
			return err
		}
		var failed error
		for _, n := range which.nodes {
			err := app.Operator(store).DeleteNodeIf(ctx, n.ID, func(now *zkmodel.Node) error { return unchanged(n, now) })
			if err != nil {
				failed = errors.Join(failed, action.NotThere(ctx, store, err, n.ID))
				continue
			}
			fmt.Fprintf(a.Stdout, "node %s of %s: deleting, was %s\n", n.ID, listing.Visible(n.Provider), n.State)
		}
		return failed
	})
}

// unchanged refuses a node that is not as it was when it was chosen.
func unchanged(seen, now *zkmodel.Node) error {
	if now.State == seen.State && now.AllocatedTo == seen.AllocatedTo {
		return nil
	}
	return fmt.Errorf("node %s is left: it is %s now, and was %s", now.ID,
		listing.Words(" ", string(now.State), forRequest(now)), listing.Words(" ", string(seen.State), forRequest(seen)))
}
