package nodes

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/terminal"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// RequestCmd asks for nodes, as Zuul does.
type RequestCmd struct {
	Labels   []string   `arg:"" name:"label" help:"The nodes' labels; all nodes come from one provider."`
	Block    bool       `name:"wait" help:"Wait for the nodes, and keep them in use until Ctrl-C gives them back."`
	Hold     bool       `help:"Wait for the nodes and hold them; node-delete gives them back."`
	For      app.Length `name:"for" placeholder:"TIME" help:"With --hold, how long nodes are held at most, such as 8h; unlimited by default."`
	Reason   string     `help:"With --hold, why; list --detail shows it."`
	Provider string     `placeholder:"NAME" help:"Only nodes of this provider, if it has them."`
	Priority string     `enum:"100,200,300" default:"200" placeholder:"100|200|300" help:"How urgent it is; 100 is most (${default})."`
	Force    bool       `help:"Also for labels that neither the configuration nor a running launcher has."`
	Fresh    bool       `help:"Only nodes that are launched for this request."`
}

// takenNode is a node in our hands.
type takenNode struct {
	lock *recipe.Held
	node *zkmodel.Node
}

// move changes a node's state as a requestor does, and saves it.
func (n takenNode) move(ctx context.Context, store *zkmodel.Store, to zkmodel.NodeState) error {
	if err := zkmodel.Move(n.node, to, zkmodel.ByRequestor, zkmodel.EpochOf(time.Now())); err != nil {
		return err
	}
	return store.SaveNode(ctx, n.lock, n.node)
}

// Run is the command.
func (c RequestCmd) Run(ctx context.Context, a *app.App) error {
	for _, label := range c.Labels {
		if err := configs.CheckName("label", label); err != nil {
			return err
		}
	}
	return a.WithClient(ctx, func(ctx context.Context, cfg *configs.Config, client *recipe.Client, store *zkmodel.Store) error {
		if c.Provider != "" {
			if err := action.KnownProvider(ctx, cfg, store, c.Provider); err != nil {
				return err
			}
		}
		if err := unknownLabels(ctx, cfg, store, c.Labels); err != nil && !c.Force {
			return fmt.Errorf("nothing is requested (--force requests it anyway): %w", err)
		} else if err != nil {
			fmt.Fprintln(a.Stderr, "poolkeeper: warning:", err)
		}
		r := &zkmodel.Request{
			NodeTypes: c.Labels, Requestor: app.Requestor(), Provider: c.Provider, Reuse: !c.Fresh,
			CreatedTime: zkmodel.EpochOf(time.Now()),
		}
		if !c.Block && !c.Hold {
			if err := store.CreateRequest(ctx, c.Priority, r); err != nil {
				return err
			}
			tellUnserved(ctx, a, store, r)
			_, err := fmt.Fprintln(a.Stdout, r.ID)
			return err
		}
		w := follow(ctx, a, cfg, client)
		defer w.stop()
		if err := w.images(ctx, c.Labels, c.Provider); err != nil {
			return err
		}
		if err := store.CreateBoundRequest(ctx, c.Priority, r); err != nil {
			return err
		}
		err := w.request(ctx, r)
		w.stop()
		if err == nil {
			err = c.take(ctx, a, store, r.ID)
		}
		// The request goes in any case: with it, nodes that we did not take are others'.
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), operate.LockWait)
		defer cancel()
		return errors.Join(err, store.DeleteRequest(ending, r.ID))
	})
}

// take takes over the nodes of a request that has come to its end.
func (c RequestCmd) take(ctx context.Context, a *app.App, store *zkmodel.Store, id string) error {
	r, err := store.Request(ctx, id)
	if err != nil {
		return err
	}
	if r.State == zkmodel.RequestFailed {
		return fmt.Errorf("request %s failed: %s", id, r.Reason)
	}
	var nodes []takenNode
	for _, node := range r.Nodes {
		lock, n, err := app.Operator(store).LockNode(ctx, node)
		if err != nil {
			return action.NotThere(ctx, store, err, node)
		}
		if n.AllocatedTo != id {
			return fmt.Errorf("node %s was given to %q, not to us", node, n.AllocatedTo)
		}
		nodes = append(nodes, takenNode{lock, n})
	}
	if c.Hold {
		for _, n := range nodes {
			if err := app.Operator(store).HoldLocked(ctx, n.lock, n.node, c.Reason, c.For.Duration()); err != nil {
				return err
			}
		}
		return showNodes(a, nodes)
	}
	return useNodes(ctx, a, store, nodes)
}

// useNodes marks nodes as used by us until ctx ends, and gives them back.
func useNodes(ctx context.Context, a *app.App, store *zkmodel.Store, nodes []takenNode) error {
	for _, n := range nodes {
		if err := n.move(ctx, store, zkmodel.NodeInUse); err != nil {
			return err
		}
	}
	if err := showNodes(a, nodes); err != nil {
		return err
	}
	fmt.Fprintln(a.Stderr, "poolkeeper: Ctrl-C gives the nodes back")
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), operate.LockWait)
	defer cancel()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.move(ending, store, zkmodel.NodeUsed), n.lock.Release(ending))
	}
	return errors.Join(errs...)
}

// showNodes prints how nodes are reached.
func showNodes(a *app.App, nodes []takenNode) error {
	table := tabwriter.NewWriter(terminal.Visible(a.Stdout), 0, 0, 2, ' ', 0)
	for _, n := range nodes {
		port, _ := n.node.ConnectionPort.Int()
		fmt.Fprintf(table, "%s\t%s\t%s@%s\tport %d\n", n.node.ID, n.node.Type[0], n.node.Username, n.node.InterfaceIP, port)
	}
	return table.Flush()
}
