package node

import (
	"context"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Lister lists the machines of a cloud.
type Lister interface {
	ListNodes(ctx context.Context) ([]providers.NodeInfo, error)
}

// Finder finds machines of nodes whose records do not tell which they are.
type Finder struct {
	// Site is the installation, which our machines carry.
	Site string
	// LaunchOf is the id of a node's launch, "" when it has none.
	LaunchOf func(ctx context.Context, n *zkmodel.Node) (string, error)
	// Now is ZooKeeper's clock, as the times in records of asking are.
	Now func() time.Time
}

// MachinesOf finds the machines that carry a node's id, and none of another launch.
func (f Finder) MachinesOf(ctx context.Context, p Lister, n *zkmodel.Node) ([]string, error) {
	list, err := p.ListNodes(ctx)
	if err != nil {
		return nil, err
	}
	launch, err := f.LaunchOf(ctx, n)
	if err != nil {
		return nil, err
	}
	mark := map[string]string{providers.MetaLaunch: launch}
	var ids []string
	for _, m := range list {
		if !m.Part && m.Metadata[providers.MetaNode] == n.ID && providers.OfSite(m.Metadata, n.Provider, f.Site) && providers.SameLaunch(m.Metadata, mark) {
			ids = append(ids, m.ExternalID)
		}
	}
	return ids, nil
}

// Left is for how long yet a cloud may make a machine that it was asked for and has not
// told of; 0 or less is none. most is how long it takes at most to do so.
func (f Finder) Left(n *zkmodel.Node, most time.Duration) time.Duration {
	if !n.Unanswered() {
		return 0
	}
	return min(most, n.Asked.Time().Add(most).Sub(f.Now())) // its writer may have been early
}

// Search looks for the machines of a node until there is one, or none can come any
// more. What moved, most and tell are, Search and Left say.
func (f Finder) Search(ctx context.Context, p Lister, n *zkmodel.Node, most time.Duration, moved <-chan struct{}, tell func(left time.Duration) error) ([]string, error) {
	return Search{
		Node: n.ID, Moved: moved, Tell: tell,
		Left: func() time.Duration { return f.Left(n, most) },
		List: func(ctx context.Context) ([]string, error) { return f.MachinesOf(ctx, p, n) },
	}.Run(ctx)
}
