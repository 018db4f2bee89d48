package builder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/builder/dib"
	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// The test binary is also the guard of the builds that it makes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == dib.GuardCommand {
		if err := dib.Guard(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == childCommand {
		runChild(os.Args[2])
		return
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // a second for each guard otherwise
	zktest.Parallel("6")
	goleak.VerifyTestMain(m)
}

// site is a tree, clouds and folders of one test.
type site struct {
	t      testing.TB
	dir    string
	server *zktest.Server
	root   string // of its tree
	client *recipe.Client
	store  *zkmodel.Store
	config *configs.Config

	mu     sync.Mutex
	clouds map[string]*fake.Provider
	log    *strings.Builder
}

// newSite makes a site with the image "img" of one provider, "north".
func newSite(tb testing.TB) *site {
	tb.Helper()
	return newSiteAt(tb, zktest.Shared(tb), zktest.Root(tb))
}

// newSiteAt is newSite on a server and a root.
func newSiteAt(tb testing.TB, server *zktest.Server, root string) *site {
	tb.Helper()
	s := &site{t: tb, dir: tb.TempDir(), server: server, root: root, clouds: map[string]*fake.Provider{}, log: &strings.Builder{}}
	s.client = s.dial(s.root)
	session, err := s.client.Session(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	s.store = zkmodel.NewStore(session, nil)
	s.config = &configs.Config{
		Path: "nodepool.yaml", ImagesDir: filepath.Join(s.dir, "images"), BuildLogDir: filepath.Join(s.dir, "logs"),
		BuildLogRetention: 7, BuildEnvAllow: []string{"PATH"},
	}
	s.addImage("img")
	s.addProvider("north", "qcow2", "img")
	return s
}

func (s *site) dial(root string) *recipe.Client { return s.dialFor(root, 6*time.Second) }

// dialFor is dial with a session time-out.
func (s *site) dialFor(root string, timeout time.Duration) *recipe.Client {
	s.t.Helper()
	client, err := recipe.Dial(recipe.Config{
		Servers: []string{s.server.Addr()}, Chroot: root, Timeout: timeout,
		Logger: hclog.New(&hclog.LoggerOptions{Output: testLog{s}, Level: hclog.Debug}),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// quoted is a path as one word of a command.
func quoted(file string) string { return "'" + file + "'" }

func (s *site) addImage(name string) *configs.DiskImage {
	s.t.Helper()
	tool, err := filepath.Abs("testdata/fake-image-create")
	if err != nil {
		s.t.Fatal(err)
	}
	s.config.DiskImages = append(s.config.DiskImages, configs.DiskImage{
		Name: name, DIBCmd: quoted(tool), RebuildAge: 24 * time.Hour, KeepBuilds: 2, RebuildTimezone: "UTC",
		BuildTimeout: time.Minute, Username: "zuul", PythonPath: "auto", EnvVars: configs.EnvVars{},
		Metadata: map[string]string{"from": "image", "both": "image"},
	})
	return &s.config.DiskImages[len(s.config.DiskImages)-1]
}

func (s *site) image() *configs.DiskImage { return &s.config.DiskImages[0] }

func (s *site) addProvider(name, format string, images ...string) {
	p := configs.Provider{
		Name: name, Driver: configs.DriverFake, ImageFormat: format, ImageUploadTimeout: time.Minute,
		ImageNameFormat: "{image_name}-{timestamp}", Settings: &configs.FakeDriver{MaxInstances: 20},
	}
	for _, image := range images {
		p.DiskImages = append(p.DiskImages, configs.ProviderImage{Name: image, Meta: map[string]string{"both": "provider"}})
	}
	s.config.Providers = append(s.config.Providers, p)
}

// settings are those of the fake provider of a number.
func (s *site) settings(provider int) *configs.FakeDriver {
	return configs.SettingsOf[configs.FakeDriver](&s.config.Providers[provider])
}

// cloud is the cloud of a provider; what is in it outlives builders.
func (s *site) cloud(name string) *fake.Provider {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clouds[name] == nil {
		section, ok := s.config.Provider(name)
		if !ok {
			s.t.Fatalf("no provider %s", name)
		}
		cloud, err := fake.New(*section, hclog.NewNullLogger())
		if err != nil {
			s.t.Fatal(err)
		}
		s.clouds[name] = cloud
	}
	return s.clouds[name]
}

// kept lends a cloud to a builder, which may not close it.
type kept struct{ *fake.Provider }

func (kept) Close() error { return nil }

// quick waits out failures fast enough for a test.
func quick() plan.Policy {
	p := plan.DefaultPolicy()
	p.BuildRetry = plan.Backoff{First: 50 * time.Millisecond, Max: 200 * time.Millisecond}
	p.UploadRetry = p.BuildRetry
	p.AwayFor = 500 * time.Millisecond
	return p
}

// deps are those of a builder of the site.
func (s *site) deps() Deps {
	return Deps{
		Client: s.client,
		Open: func(c configs.Provider) (providers.Provider, error) {
			return kept{s.cloud(c.Name)}, nil
		},
		Logger:   hclog.New(&hclog.LoggerOptions{Output: testLog{s}, Level: hclog.Debug}),
		Hostname: "host", FQDN: "host.example.org", Policy: quick(),
	}
}

// testLog shows the log of a test that failed.
type testLog struct{ *site }

func (l testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

// start runs a builder until the test ends or stop is called, which returns
// when it has stopped.
func (s *site) start(change ...func(*Deps)) (stop func()) {
	s.t.Helper()
	deps := s.deps()
	for _, c := range change {
		c(&deps)
	}
	config := *s.config // a running builder must not see later changes
	config.DiskImages = slices.Clone(config.DiskImages)
	config.Providers = slices.Clone(config.Providers)
	b, err := New(&config, deps)
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				s.t.Errorf("builder ended: %v", err)
			}
		case <-time.After(20 * time.Second):
			s.t.Error("the builder does not stop")
		}
	})
	s.t.Cleanup(func() {
		stop()
		if s.t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.t.Logf("log of the builder:\n%s", s.log)
		}
	})
	return stop
}

// tree reads an image as it is now.
func (s *site) tree(image string) *zkmodel.Image {
	s.t.Helper()
	i, err := s.store.Image(s.t.Context(), image)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return &zkmodel.Image{Name: image}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

// builds are the builds of an image in a state.
func (s *site) builds(image string, state zkmodel.BuildState) []*zkmodel.BuildTree {
	s.t.Helper()
	return slices.DeleteFunc(s.tree(image).Builds, func(b *zkmodel.BuildTree) bool { return b.State != state })
}

// uploads are the uploads of an image to a provider in a state.
func (s *site) uploads(image, provider string, state zkmodel.UploadState) []*zkmodel.Upload {
	s.t.Helper()
	var list []*zkmodel.Upload
	for _, b := range s.tree(image).Builds {
		for _, u := range b.Uploads {
			if u.Provider == provider && u.State == state {
				list = append(list, u)
			}
		}
	}
	return list
}

// eventually waits for a condition on the tree or the world.
func (s *site) eventually(what string, cond func() bool) {
	s.t.Helper()
	zktest.Eventually(s.t, cond, "%s", what)
}

// ready waits until an image has n ready builds and as many uploads at each of
// some providers.
func (s *site) ready(image string, n int, providers ...string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d ready builds of %s", n, image), func() bool {
		if len(s.builds(image, zkmodel.BuildReady)) != n {
			return false
		}
		for _, p := range providers {
			if len(s.uploads(image, p, zkmodel.UploadReady)) != n {
				return false
			}
		}
		return true
	})
}

// files lists what is in images-dir, our own folder left out.
func (s *site) files() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.config.ImagesDir)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != ".poolkeeper" && e.Name() != "builder_id.txt" {
			names = append(names, e.Name())
		}
	}
	return names
}

// inCloud lists the external ids of a cloud.
func (s *site) inCloud(provider string) []string {
	s.t.Helper()
	images, err := s.cloud(provider).ListImages(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for _, i := range images {
		ids = append(ids, i.ExternalID)
	}
	return ids
}
