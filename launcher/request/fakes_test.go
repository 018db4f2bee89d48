package request

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tree is what is seen of the tree. Nothing changes by itself.
type tree struct {
	inflight.View
	requests   []*zkmodel.Request
	nodes      []*zkmodel.Node
	components []*zkmodel.Component
	barrier    func() error // what happens while the view catches up
	looks      int          // at the components
	leave      int          // after so many looks all but the first have left; 0 is never
	images     map[string]*zkmodel.Image
	waitFor    func(zxid int64) error // what happens while the view catches up to a transaction
}

func (v *tree) Requests() []*zkmodel.Request    { return v.requests }
func (v *tree) Nodes() []*zkmodel.Node          { return v.nodes }
func (v *tree) DeferRequest(string)             {}
func (v *tree) DeferNodes(...string)            {}
func (v *tree) Resume(requests, nodes []string) {}

func (v *tree) Settle(context.Context, []string, []string) error { return nil }

func (v *tree) Components(string) []*zkmodel.Component {
	v.looks++
	if v.leave > 0 && v.looks > v.leave {
		return v.components[:1]
	}
	return v.components
}

func (v *tree) Barrier(context.Context) error {
	if v.barrier != nil {
		return v.barrier()
	}
	return nil
}

func (v *tree) Image(name string) *zkmodel.Image {
	if image := v.images[name]; image != nil {
		return image
	}
	return &zkmodel.Image{Name: name}
}

func (v *tree) WaitForImages(_ context.Context, zxid int64) error {
	if v.waitFor != nil {
		return v.waitFor(zxid)
	}
	return nil
}

// offers are what pools offered; some show late.
type offers struct {
	known, late []zkmodel.Offer
}

func (o *offers) Known() map[string]zkmodel.Offer {
	known := map[string]zkmodel.Offer{}
	for _, one := range o.known {
		known[one.Path()] = one
	}
	return known
}

func (o *offers) Barrier(context.Context) error {
	o.known, o.late = append(o.known, o.late...), nil
	return nil
}

// figures note how requests ended.
type figures struct {
	mu    sync.Mutex
	ended []string
}

func (f *figures) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, what)
}

func (f *figures) Fulfilled(*pool.Pool, time.Duration) { f.note("fulfilled") }
func (f *figures) Cancelled(*pool.Pool)                { f.note("cancelled") }
func (f *figures) Declined(state zkmodel.RequestState) { f.note("declined: " + string(state)) }

// launches bring nodes to ready, or to what a test says of their labels.
type launches struct {
	store   *zkmodel.Store
	fails   map[string]error // by label
	none    map[string]error // labels without an image
	busy    func(n *launch.Run)
	image   string // that was chosen for those of none
	machine string // that was made for them

	mu      sync.Mutex
	brought []string         // labels; "again" in front of those that another had begun
	alone   []bool           // whether they are the only ones of their requests
	rounds  []int            // of the clouds' lessons, as they were decided
	written map[string]int32 // of nodes whose launches have ended, the versions of their records, by label
}

func (l *launches) Begin(_ context.Context, _ *launch.Order, _ []*launch.Run, write func(also ...recipe.Op) error) error {
	return write()
}

func (l *launches) Prepare(_ *launch.Order, n *launch.Run) error {
	to := zkmodel.NodeBuilding
	if n.Err = l.none[n.Place.Label]; n.Err != nil {
		to, n.Node.ImageID = zkmodel.NodeDeleting, l.image
		if l.machine != "" {
			n.Node.ExternalID = zkmodel.TextValue(l.machine)
		}
	}
	return zkmodel.Move(n.Node, to, zkmodel.ByUs, zkmodel.EpochOf(time.Now()))
}

func (l *launches) Save(ctx context.Context, n *launch.Run) error {
	return l.store.SaveNode(ctx, n.Lock, n.Node)
}

func (l *launches) Bring(ctx context.Context, o *launch.Order, n *launch.Run) error {
	l.mu.Lock()
	l.brought = append(l.brought, map[bool]string{true: "again "}[n.Resumed]+n.Place.Label)
	l.alone = append(l.alone, o.Alone)
	l.rounds = append(l.rounds, o.Asked.Round)
	l.mu.Unlock()
	if n.Node.State != zkmodel.NodeBuilding {
		return n.Err
	}
	if l.busy != nil {
		l.busy(n)
	}
	to, failed := zkmodel.NodeReady, l.fails[n.Place.Label]
	if failed != nil {
		to = zkmodel.NodeFailed
	}
	if err := zkmodel.Move(n.Node, to, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		return err
	}
	if n.Unsaved = o.Alone && failed == nil; n.Unsaved {
		return nil
	}
	err := errors.Join(failed, l.Save(ctx, n))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.written == nil {
		l.written = map[string]int32{}
	}
	l.written[n.Place.Label] = n.Node.Stat.Version
	return err
}

// lines are what is logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), what)
}

// room is a Server over a tree of its own, with a pool in each of two clouds.
type room struct {
	*Server
	t        *testing.T
	root     string
	tree     *tree
	offers   *offers
	figures  *figures
	launches *launches
	here     *pool.Pool // of cloud "here"; the other is of "there"
	client   *recipe.Client
	log      *lines
	woken    atomic.Int64 // how often decisions were asked for by the Server itself
}

func newRoom(t *testing.T, change ...func(*configs.Config)) *room {
	t.Helper()
	root := zktest.Root(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root})
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
	cfg := &configs.Config{}
	for _, c := range change {
		c(cfg)
	}
	said := &lines{}
	log := hclog.New(&hclog.LoggerOptions{Output: io.Writer(said)})
	store, notify := zkmodel.NewStore(session, nil), func() {}
	r := &room{t: t, root: root, client: client, log: said, tree: &tree{}, offers: &offers{}, figures: &figures{}, launches: &launches{store: store}}
	jobs := inflight.NewJobs(time.Now, notify)
	t.Cleanup(jobs.Wait)
	deps := Deps{
		Store: store, Config: cfg, Own: inflight.NewRecords(r.tree, log, notify), Jobs: jobs,
		Quotas: map[string]*inflight.QuotaLock{}, Tree: r.tree, Offers: r.offers, Clouds: map[string]*supply.Provider{},
		Launches: r.launches, Log: log, Troubled: &recipe.Throttle{}, Figures: r.figures,
		Step:   func(at step.Step) { log.Info("step", "at", at) },
		Notify: func() { r.woken.Add(1) }, Now: time.Now, Ahead: func() time.Duration { return 0 },
	}
	for _, name := range []string{"here", "there"} {
		section := configs.Provider{Name: name, Pools: []configs.Pool{{Name: "main", Labels: []configs.PoolLabel{{Name: "small"}, {Name: "large"}}}}}
		p := pool.New("host", section, section.Pools[0])
		deps.Pools = append(deps.Pools, p)
		deps.Clouds[name] = supply.New(section, nil, log, time.Now, notify)
		deps.Quotas[name] = inflight.NewQuotaLock(nil, nil, jobs)
	}
	r.here = deps.Pools[0]
	r.register(r.here)
	r.Server = New(deps)
	return r
}

// register shows a pool among the components.
func (r *room) register(p *pool.Pool) {
	r.tree.components = append(r.tree.components, &zkmodel.Component{
		Hostname: "host", ID: p.ID, Kind: zkmodel.KindPool, Name: p.ID, PoolName: p.Section.Name, ProviderName: p.Provider.Name,
		SupportedLabels: zkmodel.Strings{"small", "large"},
	})
}

// request makes one that waits, for some labels; change changes its record.
func (r *room) request(labels []string, change ...func(*zkmodel.Request)) *zkmodel.Request {
	r.t.Helper()
	req := &zkmodel.Request{NodeTypes: labels, Requestor: "zuul", State: zkmodel.RequestRequested}
	for _, c := range change {
		c(req)
	}
	if err := r.Store.CreateRequest(r.t.Context(), "100", req); err != nil {
		r.t.Fatal(err)
	}
	return r.read(req.ID)
}

// node makes a node of cloud here in a state, unlocked.
func (r *room) node(state zkmodel.NodeState, label string, change ...func(*zkmodel.Node)) *zkmodel.Node {
	r.t.Helper()
	n := &zkmodel.Node{Provider: "here", Pool: "main", Type: zkmodel.Strings{label}}
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

// read is a request as the tree has it; it must be unlocked.
func (r *room) read(id string) *zkmodel.Request {
	r.t.Helper()
	req, err := r.Store.Request(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	if locked, err := recipe.Locked(r.t.Context(), r.Store.Session(), zkmodel.RequestLockPath(id)); err != nil || locked {
		r.t.Errorf("request is locked: %t %v", locked, err)
	}
	return req
}

// all are the nodes in the tree as "label state allocated", sorted; they must be unlocked.
func (r *room) all() []string {
	r.t.Helper()
	ids, err := r.Store.Session().Children(r.t.Context(), zkmodel.NodesRoot)
	if err != nil {
		r.t.Fatal(err)
	}
	var list []string
	for _, id := range ids {
		n, err := r.Store.Node(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if locked, err := recipe.Locked(r.t.Context(), r.Store.Session(), zkmodel.LockPath(n.Path())); err != nil || locked {
			r.t.Errorf("node is locked: %t %v", locked, err)
		}
		list = append(list, n.Type[0]+" "+string(n.State)+map[bool]string{true: " allocated"}[n.AllocatedTo != ""])
	}
	slices.Sort(list)
	return list
}

// has checks the nodes in the tree.
func (r *room) has(want ...string) {
	r.t.Helper()
	if got := r.all(); !slices.Equal(got, want) {
		r.t.Errorf("nodes are %q, want %q", got, want)
	}
}
