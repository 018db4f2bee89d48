package zkmodel

import (
	"context"
	"slices"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel/recipe"
)

// Part names a part of the tree that a Mirror follows.
type Part uint8

// The parts; they combine with |.
const (
	PartImages Part = 1 << iota
	PartNodes
	PartRequests
	PartComponents
)

// Mirror follows parts of the tree in memory, over all sessions of a client. It
// hands out records that others see too: they must not be changed. Who wants
// to write locks the record and reads it again through a Store.
type Mirror struct {
	images, nodes, requests, components *recipe.Tree // nil when not followed
	verdicts, pauses, pausedBy          *recipe.Tree // with images
	trials                              *onDemand    // with images, once wanted
	canaries                            *onDemand    // with images, once wanted

	buildCache     cache[*Build]
	uploadCache    cache[*Upload]
	nodeCache      cache[*Node]
	requestCache   cache[*Request]
	componentCache cache[*Component]
	componentLists lists[*Component]
}

// NewMirror makes a Mirror of some parts; it follows them while Run runs.
func NewMirror(client *recipe.Client, parts Part, log hclog.Logger) *Mirror {
	tree := func(part Part, root string, opts recipe.TreeOptions) *recipe.Tree {
		if parts&part == 0 {
			return nil
		}
		opts.Logger = log
		return recipe.NewTree(client, root, opts)
	}
	m := &Mirror{
		verdicts:   tree(PartImages, VerdictsRoot, recipe.TreeOptions{Filter: verdictInterest}),
		pauses:     tree(PartImages, PausesRoot, recipe.TreeOptions{Filter: pauseInterest}),
		pausedBy:   tree(PartImages, PausesPath, recipe.TreeOptions{Filter: ownDataInterest}),
		images:     tree(PartImages, ImagesRoot, recipe.TreeOptions{Filter: imageInterest, Known: knownBelowImage}),
		nodes:      tree(PartNodes, NodesRoot, recipe.TreeOptions{Filter: nodeInterest, Known: knownBelowNode}),
		requests:   tree(PartRequests, RequestsRoot, recipe.TreeOptions{Filter: requestInterest}),
		components: tree(PartComponents, ComponentsRoot, recipe.TreeOptions{Filter: componentInterest}),
	}
	if t := tree(PartImages, ValidationsRoot, recipe.TreeOptions{Filter: validationInterest}); t != nil {
		m.trials = &onDemand{tree: t, wanted: make(chan struct{})}
	}
	if t := tree(PartImages, CanariesRoot, recipe.TreeOptions{Filter: canaryInterest}); t != nil {
		m.canaries = &onDemand{tree: t, wanted: make(chan struct{})}
	}
	return m
}

// trees lists what is followed.
func (m *Mirror) trees() []*recipe.Tree {
	return slices.DeleteFunc([]*recipe.Tree{m.verdicts, m.pauses, m.pausedBy, m.images, m.nodes, m.requests, m.components},
		func(t *recipe.Tree) bool { return t == nil })
}

// followed is trees, with those of the uploads under trial and of canaries once they are.
func (m *Mirror) followed() []*recipe.Tree {
	all := m.trees()
	if m.FollowsValidations() {
		all = append(all, m.trials.tree)
	}
	if m.FollowsCanaries() {
		all = append(all, m.canaries.tree)
	}
	return all
}

// Run follows the tree until ctx ends.
func (m *Mirror) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range m.trees() {
		g.Go(func() error { return t.Run(ctx) })
	}
	if m.trials != nil {
		g.Go(func() error { return m.trials.run(ctx) })
	}
	if m.canaries != nil {
		g.Go(func() error { return m.canaries.run(ctx) })
	}
	return g.Wait()
}

// WaitSynced returns once everything has been read for the first time.
func (m *Mirror) WaitSynced(ctx context.Context) error {
	return m.each(ctx, (*recipe.Tree).WaitSynced)
}

// Barrier returns once the Mirror shows all that was committed before the call,
// by whomever.
func (m *Mirror) Barrier(ctx context.Context) error {
	return recipe.BarrierAll(ctx, m.followed()...)
}

// DeferRequest lets changes of a request show up to half a second late, until
// Resume: for a launcher that makes them itself. DeferNodes does so for nodes.
func (m *Mirror) DeferRequest(id string) { m.requests.Defer(id) }

// DeferNodes is DeferRequest for nodes.
func (m *Mirror) DeferNodes(ids ...string) { m.nodes.Defer(ids...) }

// Resume ends the deferral of requests and nodes.
func (m *Mirror) Resume(requests, nodes []string) {
	m.requests.Resume(requests...)
	m.nodes.Resume(nodes...)
}

// Settle resumes, and returns once the Mirror shows of these requests and nodes
// all that was committed before the call.
func (m *Mirror) Settle(ctx context.Context, requests, nodes []string) error {
	m.Resume(requests, nodes)
	return recipe.Settled(ctx, m.requests, m.nodes)
}

// WaitFor returns once the Mirror shows all up to a logical time of Store.Ltime,
// taken by whatever process.
func (m *Mirror) WaitFor(ctx context.Context, ltime int64) error {
	return m.each(ctx, func(t *recipe.Tree, ctx context.Context) error { return t.WaitFor(ctx, ltime) })
}

// WaitForImages is WaitFor for what says which uploads can be booted from.
func (m *Mirror) WaitForImages(ctx context.Context, ltime int64) error {
	if err := m.images.WaitFor(ctx, ltime); err != nil {
		return err
	}
	return m.verdicts.WaitFor(ctx, ltime)
}

// each runs wait on all trees at once.
func (m *Mirror) each(ctx context.Context, wait func(*recipe.Tree, context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, t := range m.followed() {
		g.Go(func() error { return wait(t, ctx) })
	}
	return g.Wait()
}

// SubscribeImages reports the names of images of which anything has changed.
func (m *Mirror) SubscribeImages() *recipe.Subscription { return subscribe(m.images, ImagesRoot) }

// SubscribeVerdicts reports the names of images of whose builds something else is said
// than before.
func (m *Mirror) SubscribeVerdicts() *recipe.Subscription { return subscribe(m.verdicts, VerdictsRoot) }

// SubscribePausedBy reports that something else is said of who paused images than before.
func (m *Mirror) SubscribePausedBy() *recipe.Subscription { return subscribe(m.pausedBy, PausesPath) }

// SubscribeCanaries reports the providers where anything of the canaries has changed.
func (m *Mirror) SubscribeCanaries() *recipe.Subscription {
	return subscribe(m.canaries.tree, CanariesRoot)
}

// SubscribeNodes reports the ids of nodes whose record or lock has changed.
func (m *Mirror) SubscribeNodes() *recipe.Subscription { return subscribe(m.nodes, NodesRoot) }

// SubscribeRequests reports the ids of node requests that have changed.
func (m *Mirror) SubscribeRequests() *recipe.Subscription {
	return subscribe(m.requests, RequestsRoot)
}

// SubscribeComponents reports the kinds of components of which one came, went or
// changed.
func (m *Mirror) SubscribeComponents() *recipe.Subscription {
	return subscribe(m.components, ComponentsRoot)
}

// Folder is the name that a subscription reports when the folder of all records
// itself has changed: whether it can be read, and with it whether what is not seen
// is not there. No record can have this name.
const Folder = "."

// subscribe reports the name right below root for each change, or Folder.
func subscribe(t *recipe.Tree, root string) *recipe.Subscription {
	return t.Subscribe(func(p string) string {
		if p == root {
			return Folder
		}
		if names := below(root, p); len(names) > 0 {
			return names[0]
		}
		return ""
	})
}
