package actions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cloud keeps images in memory.
type cloud struct {
	providers.Provider // what a test does not expect panics

	mu      sync.Mutex
	images  []providers.Image
	lists   error            // of a list
	deletes map[string]error // of deletions, by image
	listing func()
	gone    func() // when an image has gone
	looks   int
}

func (c *cloud) ListImages(context.Context) ([]providers.Image, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	if c.listing != nil {
		c.listing()
	}
	return slices.Clone(c.images), c.lists
}

func (c *cloud) DeleteImage(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.deletes[id]; err != nil {
		return err
	}
	c.images = slices.DeleteFunc(c.images, func(i providers.Image) bool { return i.ExternalID == id })
	if c.gone != nil {
		c.gone()
	}
	return nil
}

// listed is how often the cloud was asked for a list.
func (c *cloud) listed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

// holds checks which images are in a cloud.
func (c *cloud) holds(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for _, i := range c.images {
		got = append(got, i.ExternalID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("in the cloud are %q, want %q", got, want)
	}
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

// room is a Worker over a tree, clouds and a folder of its own.
type room struct {
	*Worker
	Metrics // what a test does not expect panics

	t       *testing.T
	client  *recipe.Client
	mirror  *zkmodel.Mirror
	north   *cloud
	config  *configs.Config
	said    *lines
	steps   []step.Step
	at      map[step.Step]func() // what happens then
	decided func()               // what happens as the plan is asked
	frozen  *zkmodel.Image       // what decisions see; nil is what there is
	lentMu  sync.Mutex
	lent    int      // clouds that are in use
	leaked  []string // clouds of which images were found to leak
}

// The image of these tests goes to two clouds.
func configuration() *configs.Config {
	cfg := &configs.Config{DiskImages: []configs.DiskImage{{Name: "img", Formats: []string{"raw"}}}}
	for _, name := range []string{"north", "south"} {
		cfg.Providers = append(cfg.Providers, configs.Provider{Name: name, ImageFormat: "raw", DiskImages: []configs.ProviderImage{{Name: "img"}}})
	}
	return cfg
}

func newRoom(t *testing.T) *room {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err == nil {
		err = session.EnsurePath(t.Context(), zkmodel.ImagesRoot)
	}
	if err != nil {
		t.Fatal(err)
	}
	images, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	r := &room{t: t, client: client, mirror: zkmodel.NewMirror(client, zkmodel.PartImages, nil), north: &cloud{}, config: configuration(), said: &lines{}, at: map[step.Step]func(){}}
	r.run()
	clouds := map[string]*cloud{"north": r.north, "south": {}}
	r.Worker = NewWorker(Deps{
		Config: func() *configs.Config { return r.config }, Store: zkmodel.NewStore(session, nil), Tree: r.mirror, Images: images,
		Use: func(_ *configs.Config, name string) (providers.Provider, func(), error) {
			if clouds[name] == nil {
				return nil, nil, fmt.Errorf("provider %s is not there", name)
			}
			r.lend(1)
			return clouds[name], func() { r.lend(-1) }, nil
		},
		Snapshots: r, Metrics: r, Log: hclog.New(&hclog.LoggerOptions{Output: io.Writer(r.said)}),
		Now: time.Now, ClockOff: func() time.Duration { return 0 }, FQDN: "here", BuilderID: "my-id", Site: "ours", Policy: plan.DefaultPolicy(),
		Deciding: func(context.Context) func() { return func() {} }, Hold: func(string) func() { return func() {} },
		Step: func(at step.Step) {
			r.steps = append(r.steps, at)
			if do := r.at[at]; do != nil {
				do()
			}
		},
	})
	t.Cleanup(func() {
		if r.lent != 0 {
			t.Errorf("%d clouds are not given back", r.lent)
		}
	})
	return r
}

// lend notes how many clouds more are in use.
func (r *room) lend(more int) {
	r.lentMu.Lock()
	defer r.lentMu.Unlock()
	r.lent += more
}

// run has the view follow the tree.
func (r *room) run() {
	ctx, stop := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = r.mirror.Run(ctx) }()
	r.t.Cleanup(func() { stop(); <-done })
}

// Leaked implements Metrics.
func (r *room) Leaked(provider string) { r.leaked = append(r.leaked, provider) }

// Snapshot implements Snapshots.
func (r *room) Snapshot(image string) plan.Input {
	if r.decided != nil {
		r.decided()
	}
	in := plan.Input{
		Config: r.config, Image: r.mirror.Image(image), Policy: r.Policy, Now: time.Now(),
		Host: plan.Host{Name: "here", ID: "my-id", Arch: "amd64", Free: -1},
	}
	if r.frozen != nil {
		in.Image = r.frozen
	}
	for _, b := range r.Images.Builds(image) {
		in.Local = append(in.Local, plan.LocalBuild{ID: b.ID, Formats: b.Formats, Ours: b.Ours})
	}
	return in
}

// must ends the test where something of its own fails.
func (r *room) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// build makes a build of the image that is ready, unlocked.
func (r *room) build() *zkmodel.Build {
	r.t.Helper()
	lock, err := r.Store.LockBuilds(r.t.Context(), "img")
	r.must(err)
	b := &zkmodel.Build{Image: "img", Builder: "here", BuilderID: "my-id", Formats: zkmodel.Formats{"raw"}}
	r.must(r.Store.CreateBuild(r.t.Context(), lock, b))
	b.State = zkmodel.BuildReady
	r.must(errors.Join(r.Store.SaveBuild(r.t.Context(), lock, b), lock.Release(r.t.Context())))
	return b
}

// upload makes an upload of a build to north, unlocked, whose image is there.
func (r *room) upload(b *zkmodel.Build, state zkmodel.UploadState, change ...func(*zkmodel.Upload)) *zkmodel.Upload {
	r.t.Helper()
	lock, err := r.Store.LockUploads(r.t.Context(), b.Image, b.ID, "north")
	r.must(err)
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: "north"}, Builder: "here"}
	r.must(r.Store.CreateUpload(r.t.Context(), lock, u))
	u.State = state
	for _, c := range change {
		c(u)
	}
	r.must(errors.Join(r.Store.SaveUpload(r.t.Context(), lock, u), lock.Release(r.t.Context())))
	r.north.images = append(r.north.images, image("of "+u.ID, u.UploadKey))
	return u
}

// image is one in a cloud, as we mark it; change changes the marks.
func image(id string, key zkmodel.UploadKey, change ...string) providers.Image {
	marks := map[string]string{
		providers.MetaSite: "ours", providers.MetaImage: key.Image, providers.MetaBuild: key.Build,
		providers.MetaProvider: key.Provider, providers.MetaUpload: key.ID,
	}
	for i := 0; i < len(change); i += 2 {
		marks[change[i]] = change[i+1]
	}
	return providers.Image{ExternalID: id, Metadata: marks}
}

// empty makes a record that never held anything, as a late lock does.
func (r *room) empty(path string) {
	r.t.Helper()
	r.must(r.Store.Session().EnsurePath(r.t.Context(), path))
}

// action is what a plan says about an upload.
func action(kind plan.Kind, u zkmodel.UploadKey) plan.Action {
	return plan.Action{Kind: kind, Image: u.Image, Build: u.Build, Provider: u.Provider, Upload: u.ID, Why: "the test says so"}
}

// there tells whether a record is; it must be unlocked.
func (r *room) there(path string) bool {
	r.t.Helper()
	_, there, err := r.Store.Session().Exists(r.t.Context(), path)
	r.must(err)
	if there {
		locked, err := recipe.Locked(r.t.Context(), r.Store.Session(), zkmodel.LockPath(path))
		if err != nil || locked {
			r.t.Errorf("%s is locked: %t, %v", path, locked, err)
		}
	}
	return there
}

// is checks whether a record is there, and with which steps it came to that.
func (r *room) is(path string, there bool, steps ...step.Step) {
	r.t.Helper()
	if got := r.there(path); got != there {
		r.t.Errorf("%s: there %t, want %t", path, got, there)
	}
	if !slices.Equal(r.steps, steps) {
		r.t.Errorf("steps are %q, want %q", r.steps, steps)
	}
	r.steps = nil
}

// lose takes away the lock that is held below a path.
func (r *room) lose(locks string) {
	r.t.Helper()
	names, err := r.Store.Session().Children(r.t.Context(), locks)
	r.must(err)
	for _, name := range names {
		r.must(r.Store.Session().Delete(r.t.Context(), locks+"/"+name, recipe.AnyVersion))
	}
}
