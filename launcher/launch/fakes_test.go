package launch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/shared"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// sky is a cloud that answers as it is told, and notes what it was asked.
type sky struct {
	providers.Provider
	create, wait func(try int) error // how the nth call ends; nil is well
	hidden       time.Time           // until when its list shows nothing
	slots        []providers.Slot

	mu       sync.Mutex
	calls    []string
	machines []providers.NodeInfo
	images   []string // that machines were asked for from
	zones    []string // that they were asked for in
	waits    int
}

func (s *sky) Name() string { return "sky" }
func (s *sky) Close() error { return nil }

func (s *sky) Limits(context.Context, providers.Ours) (providers.Resources, error) {
	return providers.Resources{}, nil
}

func (s *sky) NodeResources(context.Context, string, string) (providers.Resources, error) {
	return providers.Resources{providers.Instances: 1}, nil
}

func (s *sky) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	if err := spec.Asking(ctx); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images, s.zones = append(s.images, spec.ImageID), append(s.zones, spec.AZ)
	s.calls = append(s.calls, "create")
	if s.create != nil {
		if err := s.create(len(s.images)); err != nil {
			return "", err
		}
	}
	return s.put(spec.Metadata), nil
}

// put makes a machine. The mutex is held.
func (s *sky) put(metadata map[string]string) string {
	id := "vm" + string(rune('0'+len(s.calls)))
	s.machines = append(s.machines, providers.NodeInfo{ExternalID: id, Metadata: metadata})
	return id
}

func (s *sky) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	s.mu.Lock()
	s.waits++
	try := s.waits
	s.calls = append(s.calls, "wait "+id)
	s.mu.Unlock()
	if s.wait != nil {
		if err := s.wait(try); err != nil {
			return providers.Instance{}, err
		}
	}
	return providers.Instance{InterfaceIP: "192.0.2.1", PublicIPv4: "192.0.2.1"}, ctx.Err()
}

func (s *sky) DeleteNode(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, "delete "+id)
	s.machines = slices.DeleteFunc(s.machines, func(m providers.NodeInfo) bool { return m.ExternalID == id })
	return nil
}

func (s *sky) ListNodes(context.Context) ([]providers.NodeInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Now().Before(s.hidden) {
		return nil, nil
	}
	return slices.Clone(s.machines), nil
}

func (s *sky) ConsoleLog(context.Context, string, int) ([]byte, error) { return nil, nil }

// asked are the calls so far.
func (s *sky) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// static is a sky whose machines exist already.
type static struct{ *sky }

func (s static) Slots() []providers.Slot { return s.slots }

// teacher notes what it was told.
type teacher struct {
	refused, accepted []string // nodes
	state             func(node string) zkmodel.NodeState
}

func (t *teacher) Refused(_ context.Context, _ shared.Cloud, _ lesson.Asked, n *zkmodel.Node, _ bool, _ error) {
	t.refused = append(t.refused, n.ID+" "+string(t.state(n.ID)))
}

func (t *teacher) Accepted(_ context.Context, _ shared.Cloud, _ lesson.Asked, n *zkmodel.Node) {
	t.accepted = append(t.accepted, n.ID)
}

func (t *teacher) ZoneWorks(context.Context, shared.Cloud, string) {}

// view shows nothing of its own.
type view struct{ inflight.View }

func (view) Nodes() []*zkmodel.Node { return nil }

// room is Launches over a tree of its own, with one pool in one cloud.
type room struct {
	*Launches
	t       *testing.T
	sky     *sky
	teacher *teacher
	order   *Order
	steps   []step.Step
	tried   []string // how attempts ended
}

// newRoom makes one; change changes the provider's section.
func newRoom(t *testing.T, s *sky, change ...func(*configs.Provider)) *room {
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
	section := configs.Provider{
		Name: "sky", LaunchRetries: 3, UnansweredCreateTimeout: 2 * time.Second,
		DiskImages: []configs.ProviderImage{{Name: "debian"}},
		Pools: []configs.Pool{{Name: "main", MaxServers: 9, Labels: []configs.PoolLabel{
			{Name: "small", DiskImage: "debian"}, {Name: "cloudy", CloudImage: "stock"}, {Name: "imageless", DiskImage: "fedora"},
		}}},
		CloudImages: []configs.CloudImage{{Name: "stock", ConnectionType: "ssh"}},
	}
	for _, c := range change {
		c(&section)
	}
	cfg := &configs.Config{
		DiskImages: []configs.DiskImage{{Name: "debian", Username: "tester"}, {Name: "fedora"}}, Providers: []configs.Provider{section},
	}
	log, store := hclog.NewNullLogger(), zkmodel.NewStore(session, nil)
	var provider providers.Provider = s
	if s.slots != nil {
		provider = static{s}
	}
	opened := registry.New(func(configs.Provider) (providers.Provider, error) { return provider, nil }, registry.Events{})
	cloud := supply.New(section, opened, log, time.Now, func() {})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { cloud.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	cloud.AwaitOpen(ctx)

	r := &room{t: t, sky: s}
	r.teacher = &teacher{state: func(id string) zkmodel.NodeState { return r.read(id).State }}
	jobs := inflight.NewJobs(time.Now, func() {})
	t.Cleanup(jobs.Wait)
	own := pool.New("host", section, section.Pools[0])
	r.Launches = New(Deps{
		Store: store, Config: cfg, Own: inflight.NewRecords(view{}, log, func() {}), Jobs: jobs, Image: uploadsOf(2),
		Pools: []*pool.Pool{own}, Clouds: map[string]*supply.Provider{"sky": cloud}, Teacher: r.teacher,
		Scanner: node.NewScanner(), Boots: node.NewBoots(),
		Finder: node.Finder{Site: "site", LaunchOf: store.LaunchOf, Now: time.Now},
		Log:    log,
		Tried: func(_ *pool.Pool, _ *zkmodel.Node, _ string, err error, _ time.Duration) {
			r.tried = append(r.tried, map[bool]string{true: "ready", false: "failed"}[err == nil])
		},
		Step: func(at step.Step) { r.steps = append(r.steps, at) }, Notify: func() {},
		Now: time.Now, Ahead: func() time.Duration { return 0 },
	})
	r.order = &Order{Request: &zkmodel.Request{ID: "200-0000000001", NodeTypes: zkmodel.Strings{"small"}}, Pool: own, Cloud: cloud}
	return r
}

// uploadsOf is an image debian of some builds, each with a ready upload to sky that is
// called after its build; of other images there is nothing.
func uploadsOf(builds int) func(string) *zkmodel.Image {
	return func(name string) *zkmodel.Image {
		i := &zkmodel.Image{Name: name}
		if name != "debian" {
			return i
		}
		for b := range builds {
			id := "000000000" + string(rune('0'+b))
			i.Builds = append(i.Builds, &zkmodel.BuildTree{
				Build: &zkmodel.Build{Image: name, ID: id, State: zkmodel.BuildReady},
				Uploads: []*zkmodel.Upload{{
					UploadKey: zkmodel.UploadKey{Image: name, Build: id, Provider: "sky", ID: "0000000001"},
					State:     zkmodel.UploadReady, ExternalID: zkmodel.TextValue("build " + id),
				}},
			})
		}
		return i
	}
}

// node makes a node of a label, locked by us and new; change changes its record.
func (r *room) node(label string, change ...func(*zkmodel.Node)) *Run {
	r.t.Helper()
	n := &zkmodel.Node{
		Provider: "sky", Pool: "main", Type: zkmodel.Strings{label}, AllocatedTo: r.order.Request.ID, LaunchID: zkmodel.NewLaunchID(),
	}
	lock, err := r.Store.CreateNode(r.t.Context(), n)
	if err == nil {
		for _, c := range change {
			c(n)
		}
		err = r.Store.SaveNode(r.t.Context(), lock, n)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return &Run{Place: schedule.Place{Label: label}, Node: n, Lock: lock}
}

// building makes a node that is to be launched.
func (r *room) building() *Run {
	r.t.Helper()
	n := r.node("small")
	if err := errors.Join(r.Prepare(r.order, n), r.Save(r.t.Context(), n)); err != nil {
		r.t.Fatal(err)
	}
	return n
}

// read is a node as the tree has it.
func (r *room) read(id string) *zkmodel.Node {
	r.t.Helper()
	n, err := r.Store.Node(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// calls checks what the cloud was asked.
func (r *room) calls(want ...string) {
	r.t.Helper()
	if got := r.sky.asked(); !slices.Equal(got, want) {
		r.t.Errorf("the cloud was asked %q, want %q", got, want)
	}
}
