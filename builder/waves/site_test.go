package waves_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a tree with images, and who works at them.
type site struct {
	t      *testing.T
	addr   string
	root   string
	config *configs.Config
	models *zkmodel.Store
	store  *wave.Store

	mu     sync.Mutex
	fails  map[string]int // how often builds of an image still fail
	stop   map[string]bool
	asked  int // flags and builds under way, the most at once
	builds map[string]int
	old    bool          // builders are Nodepool's
	ahead  time.Duration // of the clock that drivers have
	all    []*waves.Driver
	events bool // are told
	tap    *zktest.Tap
	size   int64            // of what is built
	held   map[string]int   // how many drivers hold a share
	free   map[string]int64 // bytes that hosts have; others do not know
	gate   *gate            // of decisions of the drivers
	retry  plan.Backoff     // of drivers
}

// newSite makes a site with images that go to two providers.
func newSite(t *testing.T, images ...string) *site {
	t.Helper()
	return newSiteAt(t, zktest.Shared(t).Addr(), zktest.Root(t), images...)
}

// newSiteAt is newSite on a server and below a root of its own.
func newSiteAt(t *testing.T, addr, root string, images ...string) *site {
	t.Helper()
	s := &site{t: t, addr: addr, root: root, fails: map[string]int{}, stop: map[string]bool{}, builds: map[string]int{}, held: map[string]int{}}
	s.config, s.retry = &configs.Config{}, plan.Backoff{First: 10 * time.Millisecond, Max: 50 * time.Millisecond}
	north, south := configs.Provider{Name: "north"}, configs.Provider{Name: "south"}
	for _, image := range images {
		s.config.DiskImages = append(s.config.DiskImages, configs.DiskImage{Name: image, RebuildTimezone: "UTC"})
		north.DiskImages = append(north.DiskImages, configs.ProviderImage{Name: image})
		south.DiskImages = append(south.DiskImages, configs.ProviderImage{Name: image})
	}
	s.config.Providers = []configs.Provider{north, south}
	session, err := s.dial().Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.models, s.store = zkmodel.NewStore(session, nil), wave.NewStore(session)
	return s
}

func (s *site) dial() *recipe.Client {
	s.t.Helper()
	return s.dialAt(s.addr, 30*time.Second) // a server that is restarted on a busy machine takes a while
}

func (s *site) dialAt(addr string, timeout time.Duration) *recipe.Client {
	s.t.Helper()
	c, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: s.root, Timeout: timeout})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// figures are the metrics of a driver.
type figures struct {
	mu    sync.Mutex
	jobs  map[wave.State]int
	waves map[wave.State]int
}

func (*figures) Driving(int) {}

func (*figures) SourceLooked(string, string) {}

func (*figures) SourcesAre(func(string) bool) {}

func (*figures) SourcesLeft() {}

func (f *figures) WaveJob(state wave.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs[state]++
}

func (f *figures) WaveEnded(state wave.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waves[state]++
}

// holds notes what drivers hold.
func (s *site) holds(share string) (release func()) {
	count := func(by int) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held[share] += by
	}
	count(1)
	return func() { count(-1) }
}

// current is the configuration as it is now; reload gives another.
func (s *site) current() *configs.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// holders is how many drivers hold a share.
func (s *site) holders(share string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[share]
}

// driver runs a driver until the test ends or stop is called. at is told of each moment.
func (s *site) driver(host string, at func(c *recipe.Client, m waves.Moment)) (stop func()) {
	s.t.Helper()
	client := s.dial()
	if s.tap != nil { // which is the way of the next driver alone
		client = s.dialAt(s.tap.Addr(), 2*time.Second)
		s.tap = nil
	}
	if s.events {
		client.SetLog(recipe.NewLog(event.Root, "/poolkeeper/builder/"+host))
	}
	mirror := zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartComponents, hclog.NewNullLogger())
	if s.current().HasCanary() {
		mirror.FollowCanaries()
	}
	now := func() time.Time {
		s.mu.Lock()
		defer s.mu.Unlock()
		return time.Now().Add(s.ahead)
	}
	var deciding func(context.Context) func()
	if s.gate != nil {
		deciding = s.gate.enter
	}
	d := waves.New(waves.Deps{
		Deciding: deciding, Client: client, Mirror: mirror, Config: s.current, Now: now, Host: host,
		Retry: s.retry, Resync: time.Minute,
		Metrics: &figures{jobs: map[wave.State]int{}, waves: map[wave.State]int{}},
		Log:     hclog.New(&hclog.LoggerOptions{Name: host, Output: s.t.Output(), Level: hclog.Debug}),
		Workers: 2, Factor: 2, Free: func() int64 {
			s.mu.Lock()
			defer s.mu.Unlock()
			if free, known := s.free[host]; known {
				return free
			}
			return -1
		},
		Hold: s.holds,
		Step: func(m waves.Moment) {
			if at != nil {
				at(client, m)
			}
		},
	})
	s.all = append(s.all, d)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	for _, run := range []func(context.Context) error{mirror.Run, d.Run} {
		work.Go(func() { _ = run(ctx) })
	}
	stop = sync.OnceFunc(func() {
		cancel()
		work.Wait()
		client.Close()
	})
	s.t.Cleanup(stop)
	return stop
}

// builder serves flags as a builder does, in an instant, until the test ends.
func (s *site) builder(host string) {
	s.t.Helper()
	session, err := s.dial().Session(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		for clock.Sleep(ctx, 5*time.Millisecond) == nil {
			for _, image := range s.current().DiskImages {
				if err := s.serve(ctx, store, host, image.Name); err != nil && ctx.Err() == nil {
					s.t.Error(err)
				}
			}
		}
	})
	s.t.Cleanup(func() {
		cancel()
		work.Wait()
	})
}

// serve builds an image that is asked for.
func (s *site) serve(ctx context.Context, store *zkmodel.Store, host, image string) error {
	session := store.Session()
	flag, asked, err := session.Exists(ctx, zkmodel.RequestBuildPath(image))
	s.mu.Lock()
	stopped := s.stop[image]
	s.mu.Unlock()
	if err != nil || !asked || stopped {
		return err
	}
	s.count(ctx)
	lock, err := store.LockBuilds(ctx, image)
	if errors.Is(err, recipe.ErrLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(ctx) }()
	now, asked, err := session.Exists(ctx, zkmodel.RequestBuildPath(image))
	if err != nil || !asked || now.Czxid != flag.Czxid {
		return err
	}
	b := &zkmodel.Build{Image: image, Builder: host, Formats: zkmodel.Formats{"qcow2"}, Files: map[string]zkmodel.ImageFile{"qcow2": {Size: s.size}}}
	if err := store.CreateBuild(ctx, lock, b); err != nil {
		return err
	}
	s.mu.Lock()
	s.builds[image]++
	fails := s.fails[image] > 0
	s.fails[image]--
	s.mu.Unlock()
	to := zkmodel.BuildReady
	if fails {
		to, b.Reason = zkmodel.BuildFailed, "no space"
	}
	if err := zkmodel.Move(b, to, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		return err
	}
	if err := store.SaveBuild(ctx, lock, b); err != nil || fails && !s.old {
		return err
	}
	if err := store.ClearBuildRequest(ctx, lock, image, flag.Czxid); err != nil || fails {
		return err
	}
	for _, p := range s.current().Providers {
		if err := s.upload(ctx, store, b, p.Name); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) upload(ctx context.Context, store *zkmodel.Store, b *zkmodel.Build, provider string) error {
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: provider}}
	lock, err := store.LockUploads(ctx, b.Image, b.ID, provider)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(ctx) }()
	if err := store.CreateUpload(ctx, lock, u); err != nil {
		return err
	}
	if err := zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now())); err != nil {
		return err
	}
	return store.SaveUpload(ctx, lock, u)
}

// count notes how many images are asked for.
func (s *site) count(ctx context.Context) {
	n := 0
	for _, image := range s.current().DiskImages {
		if _, asked, err := s.models.Session().Exists(ctx, zkmodel.RequestBuildPath(image.Name)); err == nil && asked {
			n++
		}
	}
	s.mu.Lock()
	s.asked = max(s.asked, n)
	s.mu.Unlock()
}

// create makes a wave of all images.
func (s *site) create(id string, change ...func(*wave.Wave)) {
	s.t.Helper()
	w := &wave.Wave{ID: id, By: "ann", Order: wave.ByPriority, Until: wave.UntilUploaded, MaxFailures: wave.DefaultMaxFailures}
	for _, c := range change {
		c(w)
	}
	var jobs []wave.Job
	for _, image := range s.config.DiskImages {
		jobs = append(jobs, waves.Job(s.config, image.Name))
	}
	made, err := s.store.Create(s.t.Context(), w, jobs)
	if err != nil || !made {
		s.t.Fatalf("create: %v, %v", made, err)
	}
}

// result waits for the report of a wave.
func (s *site) result(id string) *wave.Report {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	data, err := s.store.Queue().Wait(ctx, id, "test")
	if err != nil {
		e, _ := s.store.Wave(s.t.Context(), id)
		s.t.Fatalf("%v; the wave is %+v", err, e)
	}
	r, err := wave.ParseReport(data)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// states are the images of a wave by state, as the index has them.
func (s *site) states(id string) map[wave.State][]string {
	s.t.Helper()
	all := map[wave.State][]string{}
	for _, state := range wave.States() {
		rows, _, err := s.store.Rows(s.t.Context(), id, []wave.State{state}, 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, r := range rows {
			all[state] = append(all[state], r.Image)
		}
	}
	return all
}

func (s *site) eventually(what string, cond func() bool) {
	s.t.Helper()
	zktest.Eventually(s.t, cond, "%s", what)
}

// in reports whether the images of a wave in a state are these.
func (s *site) in(id string, state wave.State, images ...string) bool {
	return slices.Equal(s.states(id)[state], images)
}

// later sets the drivers' clock on.
func (s *site) later(by time.Duration) {
	s.mu.Lock()
	s.ahead += by
	s.mu.Unlock()
	for _, d := range s.all {
		d.Reconfigured()
	}
}
