package singleton

import (
	"context"
	"errors"
	"path"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// locksAtOnce is how many lock folders one transaction removes.
const locksAtOnce = 100

// CleanupView is what Cleanup sees of the tree.
type CleanupView interface {
	Requests() []*zkmodel.Request
	Request(id string) *zkmodel.Request
	Node(id string) *zkmodel.Node
	Barrier(ctx context.Context) error
}

// CleanupFolders reads what is at hand to be removed.
type CleanupFolders interface {
	// Children are the names right below a path; recipe.ErrNoNode when it is not there.
	Children(ctx context.Context, path string) ([]string, error)
	// AllAbsent proves of records that they are gone; those that are not are left out.
	AllAbsent(ctx context.Context, paths ...string) (map[string]zkmodel.Proof, error)
}

// CleanupRemover removes, behind the fence of our leadership.
type CleanupRemover interface {
	// Remove removes the nodes at some paths, all or none of them. One that is no folder
	// any more, as it has something in it, fails with recipe.ErrNotEmpty.
	Remove(ctx context.Context, paths ...string) error
	// RemoveVersion removes a record unless it was changed since it was seen.
	RemoveVersion(ctx context.Context, path string, version int32) error
}

// Cleanup removes what requests and nodes left that are gone, and requests for stock and for
// backing nodes that nobody wants any more.
type Cleanup struct {
	// Frozen says why a provider is left out of the configuration, "" when it is not: nothing
	// follows from its absence.
	Frozen func(provider string) string

	view    CleanupView
	folders CleanupFolders
	remover CleanupRemover
	unkept  map[string]bool // requests for backing nodes that nobody kept at the last pass
}

// NewCleanup makes a Cleanup.
func NewCleanup(view CleanupView, folders CleanupFolders, remover CleanupRemover) *Cleanup {
	return &Cleanup{Frozen: func(string) string { return "" }, view: view, folders: folders, remover: remover}
}

// Pass does all of it once.
func (c *Cleanup) Pass(ctx context.Context) error {
	return errors.Join(
		c.collectBelow(ctx, zkmodel.LocksRoot, zkmodel.RequestPath, func(id string) bool { return c.view.Request(id) != nil }),
		c.collectBelow(ctx, zkmodel.LaunchesRoot, zkmodel.NodePath, func(id string) bool { return c.view.Node(id) != nil }),
		c.dropStock(ctx), c.dropBacking(ctx))
}

// collectBelow removes the children of a folder that are called like records which are
// proven to be gone: locks of requests, launch ids of nodes. A lock with a contender in it
// cannot be removed, and is not.
func (c *Cleanup) collectBelow(ctx context.Context, folder string, record func(id string) string, known func(id string) bool) error {
	ids, err := c.folders.Children(ctx, folder)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil // nobody has asked for a node yet
	}
	if err != nil {
		return err
	}
	if err := c.view.Barrier(ctx); err != nil {
		return err
	}
	var missing []string
	for _, id := range ids {
		if !known(id) {
			missing = append(missing, record(id))
		}
	}
	proven, err := c.folders.AllAbsent(ctx, missing...)
	if err != nil {
		return err
	}
	var gone []string
	for at := range proven {
		gone = append(gone, path.Join(folder, path.Base(at)))
	}
	for batch := range slices.Chunk(gone, locksAtOnce) {
		if err := c.remover.Remove(ctx, batch...); err == nil {
			continue
		}
		for _, one := range batch { // one of them has a contender, or is gone
			err := c.remover.Remove(ctx, one)
			if err != nil && !errors.Is(err, recipe.ErrNotEmpty) && !errors.Is(err, recipe.ErrNoNode) {
				return err
			}
		}
	}
	return nil
}

// dropStock deletes requests for stock of labels that nobody keeps in stock any
// more: their min-ready was lowered to nothing, or they left the configuration.
// Those of a Nodepool go with its session, and are left alone.
func (c *Cleanup) dropStock(ctx context.Context) error {
	for _, r := range c.view.Requests() {
		if _, ours := isStock(r, ""); !ours || r.State == zkmodel.RequestPending {
			continue
		}
		kept, err := c.kept(ctx, zkmodel.LabelDutyPath(r.NodeTypes[0]))
		if err == nil && !kept {
			err = c.drop(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropBacking deletes requests for backing nodes of providers that no launcher of ours has any
// more: what is made for them would be kept for nobody. Where the provider comes back its
// keeper asks again. It takes two passes in a row, as a launcher that restarts has it for a moment
// not. Those of a Nodepool go with its session, and are left alone.
func (c *Cleanup) dropBacking(ctx context.Context) error {
	before := c.unkept
	c.unkept = map[string]bool{}
	for _, r := range c.view.Requests() {
		provider := zkmodel.BackingRequestor(r)
		if provider == "" || r.State == zkmodel.RequestPending || c.Frozen(provider) != "" {
			continue
		}
		kept, err := c.kept(ctx, zkmodel.ProviderDutyPath(provider))
		switch {
		case err != nil || kept:
		case before[r.ID]:
			err = c.drop(ctx, r)
		default:
			c.unkept[r.ID] = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kept reports whether a launcher takes part in a duty.
func (c *Cleanup) kept(ctx context.Context, duty string) (bool, error) {
	keepers, err := c.folders.Children(ctx, duty+"/members")
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return false, err
	}
	return len(keepers) > 0, nil
}

// drop deletes a request that is as it was seen.
func (c *Cleanup) drop(ctx context.Context, r *zkmodel.Request) error {
	err := c.remover.RemoveVersion(ctx, r.Path(), r.Stat.Version)
	if errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrVersion) {
		return nil
	}
	return err
}
