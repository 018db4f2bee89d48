package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// ErrServed says that a provider's records are not to be forgotten: a daemon serves
// the provider, or uses what they stand for.
var ErrServed = errors.New("still served or in use")

// Holdings are the records of one provider.
type Holdings struct {
	Provider string
	Images   []*Image // with its uploads alone, and the builds that have some
	Nodes    []*Node
	// Backing are nodes of other providers that are kept for slots of this one. Erasing gives them
	// back, so that their providers' launchers delete them.
	Backing []*Node
	folders []UploadKey // of uploads, empty ones too; without an ID
}

// Empty reports whether there is nothing of the provider.
func (h *Holdings) Empty() bool {
	return len(h.folders) == 0 && len(h.Nodes) == 0 && len(h.Backing) == 0
}

// Uploads are those of all builds.
func (h *Holdings) Uploads() []*Upload {
	var list []*Upload
	for _, image := range h.Images {
		for _, b := range image.Builds {
			list = append(list, b.Uploads...)
		}
	}
	return list
}

// Holdings reads the records of a provider. It fails with recipe.ErrUnread where part
// of them cannot be read; of a node that cannot be, nobody knows its provider.
func (st *Store) Holdings(ctx context.Context, provider string) (*Holdings, error) {
	images, err := st.Images(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := st.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	h := &Holdings{Provider: provider}
	for _, image := range images {
		one := &Image{Name: image.Name}
		for _, gap := range image.Gaps {
			if gap.Provider == "" || gap.Provider == provider {
				return nil, fmt.Errorf("list records of %s: %w: %w", provider, recipe.ErrUnread, gap.Err)
			}
		}
		for _, b := range image.Builds {
			key := UploadKey{Image: b.Image, Build: b.ID, Provider: provider}
			if _, there, err := st.session.Exists(ctx, key.folder()); err != nil {
				return nil, fmt.Errorf("list records of %s: %w", provider, err)
			} else if there {
				h.folders = append(h.folders, key)
			}
			uploads := slices.DeleteFunc(slices.Clone(b.Uploads), func(u *Upload) bool { return u.Provider != provider })
			for _, u := range uploads {
				if errors.Is(u.Broken, recipe.ErrUnread) {
					return nil, fmt.Errorf("list records of %s: %w", provider, u.Broken)
				}
			}
			if len(uploads) > 0 {
				one.Builds = append(one.Builds, &BuildTree{Build: b.Build, Uploads: uploads})
			}
		}
		if len(one.Builds) > 0 {
			h.Images = append(h.Images, one)
		}
	}
	for _, n := range nodes {
		if n.State == NodeInUse && n.BacksFor() == provider {
			h.Backing = append(h.Backing, n)
		}
	}
	h.Nodes = slices.DeleteFunc(nodes, func(n *Node) bool { return n.Broken != nil || n.Provider != provider })
	return h, nil
}

// folder is the parent of all that there is of a build's uploads to a provider.
func (k UploadKey) folder() string { return ProvidersPath(k.Image, k.Build) + "/" + k.Provider }

// Serving names the daemons, of whatever make, that serve a provider, or may: Nodepool's
// builders do not say whom they serve.
func (st *Store) Serving(ctx context.Context, provider string) ([]string, error) {
	return st.serving(ctx, provider, KindPool, KindLauncher, KindBuilder)
}

// ServingImages is Serving for builders alone.
func (st *Store) ServingImages(ctx context.Context, provider string) ([]string, error) {
	return st.serving(ctx, provider, KindBuilder)
}

// ServingNodes is Serving for the pools of launchers alone.
func (st *Store) ServingNodes(ctx context.Context, provider string) ([]string, error) {
	return st.serving(ctx, provider, KindPool)
}

func (st *Store) serving(ctx context.Context, provider string, kinds ...string) ([]string, error) {
	var list []string
	for _, kind := range kinds {
		members, err := recipe.Members(ctx, st.session, ComponentsRoot+"/"+kind)
		if err != nil {
			return nil, fmt.Errorf("list who serves %s: %w", provider, err)
		}
		for _, m := range members {
			c := DecodeComponent(m.Name, m.Data)
			if m.Err != nil {
				c.Broken = m.Err
			}
			if who := c.serves(kind, provider); who != "" {
				list = append(list, who)
			}
		}
	}
	return list, nil
}

// serves says in words that a component of a kind serves a provider; "" that it does not.
func (c *Component) serves(kind, provider string) string {
	switch {
	case c.Broken != nil:
		return fmt.Sprintf("%s %s, of which nobody can tell what it serves (%v)", kind, c.Name, c.Broken)
	case kind == KindPool && c.ProviderName == provider:
		return fmt.Sprintf("pool %s of the launcher on %s", c.PoolName, c.Hostname)
	case kind == KindPool:
		return ""
	case c.Providers != nil && slices.Contains(*c.Providers, provider):
		return fmt.Sprintf("the %s on %s", kind, c.Hostname)
	case c.Providers == nil && kind == KindBuilder:
		return fmt.Sprintf("the builder on %s, which does not say which providers it serves", c.Hostname)
	}
	return ""
}

// Erase forgets all that the tree holds of a provider: the records of its uploads and
// nodes, and what was learned of it. Nothing is deleted in its cloud. Either all is
// free, or nothing is removed: ErrServed names the daemons that serve the provider,
// the nodes that are locked, in use, held or given to a request, and the uploads that
// are under way.
func (st *Store) Erase(ctx context.Context, h *Holdings) error {
	e := &erasure{Store: st, provider: h.Provider}
	defer e.releaseLocks(ctx)
	err := e.take(ctx, h)
	if err == nil {
		err = e.unserved(ctx) // now that nobody can take what we hold
	}
	if err == nil {
		err = e.begin(ctx, h)
	}
	if err == nil {
		err = e.remove(ctx)
	}
	if err == nil {
		err = e.giveBack(ctx, h.Backing)
	}
	if err != nil {
		return fmt.Errorf("erase records of %s: %w", h.Provider, err)
	}
	return nil
}

// erasure is what is held while the records of a provider go.
type erasure struct {
	*Store
	provider string
	nodes    []heldNode
	folders  map[string]*recipe.Held
}

type heldNode struct {
	*Node
	lock *recipe.Held
}

// unserved fails while a daemon serves the provider.
func (e *erasure) unserved(ctx context.Context) error {
	who, err := e.Serving(ctx, e.provider)
	var served error
	for _, one := range who {
		served = errors.Join(served, fmt.Errorf("%w: %s serves it", ErrServed, one))
	}
	return errors.Join(err, served)
}

// take takes the locks of everything, and says what is in the way of that.
func (e *erasure) take(ctx context.Context, h *Holdings) error {
	if err := e.unserved(ctx); err != nil {
		return err
	}
	e.folders = map[string]*recipe.Held{}
	var busy error
	for _, n := range h.Nodes {
		why, err := e.takeNode(ctx, n.ID)
		if err != nil {
			return err
		}
		if why != "" {
			busy = errors.Join(busy, fmt.Errorf("%w: node %s is %s", ErrServed, n.ID, why))
		}
	}
	for _, key := range h.folders {
		lock, err := e.LockUploads(ctx, key.Image, key.Build, key.Provider)
		switch {
		case errors.Is(err, recipe.ErrLocked):
			busy = errors.Join(busy, fmt.Errorf("%w: a builder uploads build %s-%s", ErrServed, key.Image, key.Build))
		case errors.Is(err, ErrNotFound): // the build is gone
		case err != nil:
			return err
		default:
			e.folders[key.folder()] = lock
		}
	}
	return busy
}

// takeNode locks a node that nobody needs, or says why it is needed.
func (e *erasure) takeNode(ctx context.Context, id string) (why string, err error) {
	lock, n, err := e.LockNode(ctx, id, "")
	switch {
	case errors.Is(err, recipe.ErrLocked):
		return "locked", nil
	case errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	e.nodes = append(e.nodes, heldNode{n, lock})
	switch {
	case n.Unknown() || n.Leftover() || n.Provider != e.provider:
		return "another's since", nil
	case n.State == NodeInUse || n.State == NodeHold:
		return string(n.State), nil
	case n.State == NodeReady && n.AllocatedTo != "":
		_, given, err := e.session.Exists(ctx, RequestPath(n.AllocatedTo))
		if given {
			return "given to request " + n.AllocatedTo, nil
		}
		return "", err
	}
	return "", nil
}

// remove removes all that is held.
func (e *erasure) remove(ctx context.Context) error {
	for _, n := range e.nodes {
		if err := e.deleteNode(ctx, n.lock, n.Node, ByOperator); err != nil {
			return err
		}
		if err := e.drop(ctx, LaunchPath(n.ID)); err != nil {
			return err
		}
	}
	for folder, lock := range e.folders {
		if err := lock.DeleteTree(ctx, folder); err != nil { // the lock is in it
			return fmt.Errorf("delete %s: %w", folder, err)
		}
	}
	return nil
}

// begin removes what was learned of the provider, and tells what is being erased in that
// transaction: from then on records go, whatever becomes of us. Where something that was
// learned goes meanwhile, or the answer is lost, it looks again, and tells nothing twice.
func (e *erasure) begin(ctx context.Context, h *Holdings) error {
	var told []event.Event
	var mark *recipe.Op
	for {
		ops, err := e.learned(ctx)
		if err != nil {
			return err
		}
		if e.session.Log() != nil && mark == nil {
			if mark, err = e.mark(ctx); err != nil {
				return err
			}
		}
		if mark != nil {
			ops = append(ops, *mark)
		}
		if told == nil {
			told = e.events(e.erased(h))
		}
		err = telling(ctx, e.session, told, func(also []recipe.Op) error {
			if len(ops)+len(also) == 0 {
				return nil
			}
			_, err := e.session.Multi(ctx, slices.Concat(ops, also)...)
			return err
		})
		switch {
		case mark != nil && errors.Is(err, recipe.ErrVersion):
			return nil // it was done, and the answer lost
		case !errors.Is(err, recipe.ErrNoNode) && !errors.Is(err, recipe.ErrConnectionLost):
			return err
		}
		for _, lock := range e.locks() {
			if err := lock.Lost(); err != nil {
				return err
			}
		}
		if err := e.session.Sync(ctx); err != nil {
			return err
		}
	}
}

// erased is the event of the erasure.
func (e *erasure) erased(h *Holdings) gone {
	var uploads, nodes []string
	for _, u := range h.Uploads() {
		uploads = append(uploads, u.subject())
	}
	for _, n := range e.nodes {
		nodes = append(nodes, n.ID)
	}
	return gone{event.ProviderErased, "provider/" + e.provider, event.Data{
		"provider": e.provider, "uploads": uploads, "nodes": nodes, "by": ByOperator.teller(),
	}}
}

// learned removes what was learned of the provider, as it is now.
func (e *erasure) learned(ctx context.Context) (ops []recipe.Op, err error) {
	for _, path := range []string{LimitsPath(e.provider), RefusalsPath(e.provider), FindingsPath(e.provider), LeakedMachinesPath(e.provider)} {
		_, there, err := e.session.Known(ctx, path)
		if err != nil {
			return nil, err
		}
		if there {
			ops = append(ops, recipe.OpDelete(path, recipe.AnyVersion))
		}
	}
	return ops, nil
}

// mark is a step that can be done once: it writes a lock of ours as it is, at its present
// version. It is nil without locks.
func (e *erasure) mark(ctx context.Context) (*recipe.Op, error) {
	locks := e.locks()
	if len(locks) == 0 {
		return nil, nil //nolint:nilnil // there is none
	}
	at := locks[0].Path()
	data, stat, err := e.session.Get(ctx, at)
	if errors.Is(err, recipe.ErrNoNode) {
		err = recipe.ErrFenceLost
	}
	if err != nil {
		return nil, fmt.Errorf("read lock %s: %w", at, err)
	}
	op := recipe.OpSet(at, data, stat.Version)
	return &op, nil
}

// locks are all that are held.
func (e *erasure) locks() []*recipe.Held {
	list := slices.Collect(maps.Values(e.folders))
	for _, n := range e.nodes {
		list = append(list, n.lock)
	}
	return list
}

// drop deletes a node that may be gone already.
func (e *erasure) drop(ctx context.Context, path string) error {
	err := e.session.Delete(ctx, path, recipe.AnyVersion)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil
	}
	return err
}

// releaseLocks releases what is still held.
func (e *erasure) releaseLocks(ctx context.Context) {
	for _, n := range e.nodes {
		_ = n.lock.Release(ctx) // one that is gone with its record is no error; others end with the session
	}
	for _, lock := range e.folders {
		_ = lock.Release(ctx)
	}
}
