package reaper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// cloud is one whose machines are a list. It only lists and removes.
type cloud struct {
	supply.Machines
	name     string
	mu       sync.Mutex // jobs that run beside each other list and remove
	machines []providers.NodeInfo
	closed   error
	listing  error
	removing func(machine string) error // asked before each is removed
	taken    map[string]string          // machines that were taken back, with why
	missing  map[string]schedule.Doubt  // machines that a list lacked
	looking  func() error               // how a look for one of these ends
}

func (c *cloud) Doubts() map[string]schedule.Doubt {
	c.mu.Lock()
	defer c.mu.Unlock()
	doubts := map[string]schedule.Doubt{}
	maps.Copy(doubts, c.missing)
	for id, why := range c.taken {
		doubts[id] = schedule.Doubt{Why: why}
	}
	return doubts
}

func (c *cloud) Found(externalID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.missing, externalID)
}

func (c *cloud) WaitNode(_ context.Context, externalID string) (providers.Instance, error) {
	return providers.Instance{ExternalID: externalID}, c.looking()
}

func (c *cloud) Use() (supply.Machines, error) { return c, c.closed }

func (c *cloud) Section() configs.Provider { return configs.Provider{Name: c.name} }

func (c *cloud) ListNodes(context.Context) ([]providers.NodeInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.machines), c.listing
}

func (c *cloud) Remove(_ context.Context, proof zkmodel.Proof, node, machine string) error {
	if err := errors.Join(proof.Of(zkmodel.NodePath(node)), c.removing(machine)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.machines = slices.DeleteFunc(c.machines, func(m providers.NodeInfo) bool { return m.ExternalID == machine })
	return nil
}

// prover says of every record that it is gone, or why that is not sure.
type prover struct{ unsure error }

func (p prover) Absent(context.Context, *recipe.Session, string) (zkmodel.Proof, error) {
	return zkmodel.Proof{}, p.unsure
}

// view shows what was written at once.
type view struct{ inflight.View }

func (view) Resume(requests, nodes []string) {}

// room is a Reaper over a tree of its own, and what it did.
type room struct {
	*Reaper
	t       *testing.T
	here    *cloud
	there   *cloud
	mu      sync.Mutex // what jobs that run beside each other note
	steps   []step.Step
	adopted []string
	deleted []string
}

// newRoom makes one. It serves two clouds, here and there; what it is given else, change
// changes.
func newRoom(t *testing.T, change ...func(*Deps)) *room {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot, zkmodel.LaunchesRoot} {
		if err := session.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	none := func(string) error { return nil }
	r := &room{t: t, here: &cloud{name: "here", removing: none}, there: &cloud{name: "there", removing: none}}
	store, log := zkmodel.NewStore(session, nil), hclog.NewNullLogger()
	jobs := inflight.NewJobs(time.Now, func() {})
	t.Cleanup(jobs.Wait)
	deps := Deps{
		Store: store, Config: &configs.Config{}, Own: inflight.NewRecords(view{}, log, func() {}), Jobs: jobs,
		Tree: prover{}, Clouds: map[string]Cloud{"here": r.here, "there": r.there}, Launch: r,
		Finder: node.Finder{Site: "site", LaunchOf: store.LaunchOf, Now: time.Now},
		Log:    log, Refused: &recipe.Throttle{}, Deleted: func(provider string) { note(r, &r.deleted, provider) },
		Step: func(at step.Step) { note(r, &r.steps, at) }, Now: time.Now,
	}
	for _, c := range change {
		c(&deps)
	}
	r.Reaper = New(deps)
	return r
}

// note adds to what a room did.
func note[T any](r *room, list *[]T, one T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, one)
}

// Adopt notes that a launch would go on.
func (r *room) Adopt(_ context.Context, _ *recipe.Held, n *zkmodel.Node) error {
	note(r, &r.adopted, n.ID)
	return nil
}

// node makes a node of cloud here in a state, unlocked; change changes its record.
func (r *room) node(state zkmodel.NodeState, change ...func(*zkmodel.Node)) *zkmodel.Node {
	r.t.Helper()
	n := &zkmodel.Node{Provider: "here", Pool: "main", Type: zkmodel.Strings{"small"}}
	lock, err := r.Store.CreateNode(r.t.Context(), n)
	if err == nil {
		n.State, n.StateTime = state, zkmodel.EpochOf(time.Now())
		for _, c := range change {
			c(n)
		}
		err = errors.Join(r.Store.SaveNode(r.t.Context(), lock, n), lock.Release(r.t.Context()))
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// request makes one in a state.
func (r *room) request(state zkmodel.RequestState) string {
	r.t.Helper()
	req := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, State: state}
	if err := r.Store.CreateRequest(r.t.Context(), "100", req); err != nil {
		r.t.Fatal(err)
	}
	return req.ID
}

// machine adds a machine of a node to the clouds; more is what it carries.
func (r *room) machine(c *cloud, id, node string, more map[string]string) {
	meta := map[string]string{providers.MetaNode: node, providers.MetaProvider: c.name, providers.MetaSite: "site"}
	maps.Copy(meta, more)
	c.machines = append(c.machines, providers.NodeInfo{ExternalID: id, Metadata: meta})
}

// left are the machines of a cloud.
func (c *cloud) left() []string {
	var ids []string
	for _, m := range c.machines {
		ids = append(ids, m.ExternalID)
	}
	return ids
}

// reap does what is due with a node.
func (r *room) reap(n *zkmodel.Node, duty reap.Duty) error {
	return r.Reap(r.t.Context(), reap.Reaping{Node: n, Duty: duty, Why: "the test says so"})
}

// outdated has a second look find that nothing is due with a node.
func (r *room) outdated(n *zkmodel.Node, duty reap.Duty) {
	r.t.Helper()
	if err := r.reap(n, duty); !errors.Is(err, inflight.ErrOutdated) {
		r.t.Errorf("%v of node %s: %v, want that there is nothing to do", duty, n.ID, err)
	}
}

// is checks the state of a node, "" for gone, and that it is unlocked.
func (r *room) is(n *zkmodel.Node, want zkmodel.NodeState) *zkmodel.Node {
	r.t.Helper()
	now, err := r.Store.Node(r.t.Context(), n.ID)
	switch {
	case errors.Is(err, zkmodel.ErrNotFound) && want == "":
		return nil
	case err != nil:
		r.t.Fatal(err)
	case now.State != want:
		r.t.Errorf("node is %q (%s), want %q", now.State, now.Reason, want)
	}
	locked, err := recipe.Locked(r.t.Context(), r.Store.Session(), zkmodel.LockPath(n.Path()))
	if err != nil || locked {
		r.t.Errorf("node is locked: %t %v", locked, err)
	}
	return now
}
