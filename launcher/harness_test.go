package launcher_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		runChild(os.Args[2])
		return
	}
	zktest.Parallel("6")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		dropRelease()
		os.Exit(code) //nolint:forbidigo // goleak leaves the end to us
	}))
}

// onePool is a configuration of one image, two labels and one pool.
const onePool = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small}, {name: large}]
diskimages: [{name: debian, elements: [debian], username: tester}]
providers:
  - name: cloud
    driver: fake
    cloud: fake
    diskimages: [{name: debian}]
    pools:
      - name: main
        max-servers: 5
        node-attributes: {executor-zone: here}
        labels:
          - {name: small, diskimage: debian, min-ram: 1024}
          - {name: large, diskimage: debian, min-ram: 1024}
`

// site is a tree, clouds and launchers of one test.
type site struct {
	t      testing.TB
	root   string
	client *recipe.Client
	store  *zkmodel.Store
	zuul   *zuul.Client
	config *configs.Config
	clouds map[string]*fake.Provider // shared by all launchers, as clouds are
	trials []*zkmodel.Upload         // that a story has made
	jobs   map[string][]*zuul.Node   // that run in slots all through a story, by node
}

func newSite(tb testing.TB, yaml string) *site {
	tb.Helper()
	s := &site{t: tb, root: zktest.Root(tb), clouds: map[string]*fake.Provider{}}
	s.client = s.dial(30 * time.Second) // whoever looks on must not be lost
	session, err := s.client.Session(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	s.store = zkmodel.NewStore(session, nil)
	path := filepath.Join(tb.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		tb.Fatal(err)
	}
	if s.config, err = configs.Load(path, configs.Options{}); err != nil {
		tb.Fatal(err)
	}
	for _, p := range s.config.Providers {
		if p.BackingLabels() != nil {
			continue // it has no cloud
		}
		if s.clouds[p.Name], err = fake.New(p, hclog.NewNullLogger()); err != nil {
			tb.Fatal(err)
		}
	}
	s.zuul, err = zuul.Dial(tb.Context(), []string{zktest.Shared(tb).Addr()}, s.root, "zuul-test")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.zuul.Close)
	return s
}

func (s *site) dial(timeout time.Duration) *recipe.Client {
	s.t.Helper()
	client, err := recipe.Dial(recipe.Config{
		Servers: []string{zktest.Shared(s.t).Addr()}, Chroot: s.root, Timeout: timeout,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// keepOpen is a cloud that outlives the launchers that open it.
type keepOpen struct{ *fake.Provider }

func (keepOpen) Close() error { return nil }

// running is one launcher.
type running struct {
	*launcher.Launcher
	client *recipe.Client
	stop   func()
}

// launch starts a launcher with a client of its own. It is stopped with the test.
func (s *site) launch(change ...func(*launcher.Deps)) *running {
	s.t.Helper()
	client := s.dial(4 * time.Second)
	deps := launcher.Deps{
		Client: client, Hostname: "host", FQDN: "host.example.org", Version: "1.0", Logger: s.logger(),
		Open: func(p configs.Provider) (providers.Provider, error) {
			if p.BackingLabels() != nil {
				return (&drivers.Process{Logger: s.logger()}).Open(p)
			}
			return keepOpen{s.clouds[p.Name]}, nil
		},
	}
	for _, c := range change {
		c(&deps)
	}
	l, err := launcher.New(s.config, deps)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, recipe.ErrClosed) {
				s.t.Errorf("launcher ended with %v", err)
			}
		case <-time.After(time.Minute): // a test that waits for good tells nothing of what failed in it
			s.t.Error("the launcher does not stop")
			return
		}
		client.Close()
	}
	s.t.Cleanup(stop)
	return &running{Launcher: l, client: client, stop: stop}
}

// logger logs to the test.
func (s *site) logger() hclog.Logger {
	if !testing.Verbose() {
		return hclog.NewNullLogger()
	}
	return hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Debug})
}

// image makes a ready build of each image, and of debian in any case, with a ready upload
// in each cloud. It returns debian's.
func (s *site) image() *zkmodel.Build {
	s.t.Helper()
	for _, i := range s.config.DiskImages {
		if i.Name != "debian" {
			s.imageOf(i.Name)
		}
	}
	return s.imageOf("debian")
}

// imageOf makes a ready build of an image with a ready upload in each cloud.
func (s *site) imageOf(image string) *zkmodel.Build {
	s.t.Helper()
	b := s.buildOf(image, zkmodel.BuildReady)
	for cloud := range s.clouds {
		s.upload(b, cloud, zkmodel.UploadReady)
	}
	return b
}

// build makes a build of debian.
func (s *site) build(state zkmodel.BuildState) *zkmodel.Build {
	s.t.Helper()
	return s.buildOf("debian", state)
}

func (s *site) buildOf(image string, state zkmodel.BuildState) *zkmodel.Build {
	s.t.Helper()
	ctx := s.t.Context()
	if err := s.store.Session().EnsurePath(ctx, zkmodel.BuildsPath(image)); err != nil {
		s.t.Fatal(err)
	}
	lock, err := s.store.LockBuilds(ctx, image)
	if err != nil {
		s.t.Fatal(err)
	}
	b := &zkmodel.Build{Image: image, Formats: zkmodel.Formats{"qcow2"}}
	err = s.store.CreateBuild(ctx, lock, b)
	if err == nil {
		b.State, b.StateTime = state, zkmodel.EpochOf(time.Now())
		err = s.store.SaveBuild(ctx, lock, b)
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		s.t.Fatal(err)
	}
	return b
}

func (s *site) upload(b *zkmodel.Build, cloud string, state zkmodel.UploadState) *zkmodel.Upload {
	s.t.Helper()
	ctx := s.t.Context()
	lock, err := s.store.LockUploads(ctx, b.Image, b.ID, cloud)
	if err != nil {
		s.t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: cloud}, Format: "qcow2"}
	err = s.store.CreateUpload(ctx, lock, u)
	if err == nil {
		u.ExternalID = zkmodel.TextValue(fmt.Sprintf("image-%s-%s", b.ID, u.ID))
		u.State, u.StateTime = state, zkmodel.EpochOf(time.Now())
		err = s.store.SaveUpload(ctx, lock, u)
	}
	if err = errors.Join(err, lock.Release(ctx)); err != nil {
		s.t.Fatal(err)
	}
	return u
}

// machines counts what is in a cloud.
func (s *site) machines(cloud string) int {
	s.t.Helper()
	list, err := s.clouds[cloud].ListNodes(context.WithoutCancel(s.t.Context()))
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list)
}

// stall makes machines that never boot, until the hook is taken away. The channel
// tells of each.
func (s *site) stall() <-chan struct{} {
	booting := make(chan struct{}, 100)
	for _, cloud := range s.clouds {
		cloud.SetHook(func(ctx context.Context, c fake.Call) error {
			if c.Op != fake.OpWait || c.Done {
				return nil
			}
			booting <- struct{}{}
			<-ctx.Done()
			return context.Cause(ctx)
		})
	}
	return booting
}

// gate lets machines of cloud boot once open was called. The channel tells of each that waits.
func (s *site) gate() (booting <-chan struct{}, open func()) {
	waits, proceed := make(chan struct{}, 100), make(chan struct{})
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpWait || c.Done {
			return nil
		}
		waits <- struct{}{}
		select {
		case <-proceed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	return waits, func() { close(proceed) }
}

// submit asks for nodes.
func (s *site) submit(w zuul.Wish) string {
	s.t.Helper()
	id, err := s.zuul.Submit(w)
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// wait returns how a request ended.
func (s *site) wait(id string) zuul.Outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 30*time.Second)
	defer cancel()
	out, err := s.zuul.Wait(ctx, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// node reads a node's record.
func (s *site) node(id string) *zkmodel.Node {
	s.t.Helper()
	n, err := s.store.Node(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// wish asks for new nodes of some labels.
func wish(labels ...string) zuul.Wish { return zuul.Wish{Labels: labels, Fresh: true} }
