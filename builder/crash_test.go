package builder

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/step"
	"poolkeeper/builder/waves"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// childCommand makes the test binary a builder that a test kills.
const childCommand = "test-builder"

// crashSession is short, so that what a killed builder held is soon free.
const crashSession = 1500 * time.Millisecond

// child is a builder in a process of its own.
type child struct {
	Server, Chroot string
	Dir            string    // with the clouds of all builders
	Host           string    // its own folder is Dir/Host
	At             step.Step // where it kills itself; "" never
	Env            map[string]string
	UploadsFail    bool
	DeleteFiles    bool // delete-after-upload
	Images, Clouds int  // more of them, for benchmarks
	Session        time.Duration
	Hook           string       // post-upload-hook
	Keep           int          // builds; 0 is 2
	Tried          bool         // uploads are tried before they serve
	Canary         bool         // a new build waits while another is the canary
	Unfit          bool         // it builds nothing
	WaveAt         waves.Moment // where it kills itself as who drives a wave; "" never
	WaveNth        int          // the how manyth time
}

// runChild is the child's main.
func runChild(arg string) {
	var c child
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		panic(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{c.Server}, Chroot: c.Chroot, Timeout: cmp.Or(c.Session, crashSession)})
	if err != nil {
		panic(err)
	}
	b, err := New(c.config(), Deps{
		Client: client, Hostname: c.Host, FQDN: c.Host, Policy: quick(),
		Logger: hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Info}),
		Open: func(section configs.Provider) (providers.Provider, error) {
			return fake.New(section, hclog.NewNullLogger())
		},
		Step: func(at step.Step) {
			if at == c.At {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
		WaveStep: func(at waves.Moment) {
			if at != c.WaveAt {
				return
			}
			if c.WaveNth--; c.WaveNth == 0 {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		},
	})
	if err != nil {
		panic(err)
	}
	// The test ends us by closing our input, unless we do so ourselves.
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := b.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	client.Close()
}

// config is that of the child: one image, one provider with a cloud on disk.
func (c child) config() *configs.Config {
	tool, err := filepath.Abs("testdata/fake-image-create")
	if err != nil {
		panic(err)
	}
	home := filepath.Join(c.Dir, c.Host)
	cloud := configs.FakeDriver{Dir: filepath.Join(c.Dir, "clouds"), MaxInstances: 20}
	if c.UploadsFail {
		cloud.FailEvery = map[string]int{fake.OpUpload: 1}
	}
	cfg := &configs.Config{
		Path: "nodepool.yaml", ImagesDir: filepath.Join(home, "images"), BuildLogDir: filepath.Join(home, "logs"),
		BuildLogRetention: 7, BuildEnvAllow: []string{"PATH"},
		DiskImages: []configs.DiskImage{{
			Name: "img", DIBCmd: quoted(tool), RebuildAge: 24 * time.Hour, KeepBuilds: cmp.Or(c.Keep, 2), RebuildTimezone: "UTC",
			BuildTimeout: time.Minute, EnvVars: c.Env, DeleteAfterUpload: c.DeleteFiles,
		}},
		Providers: []configs.Provider{{
			Name: "north", Driver: configs.DriverFake, ImageFormat: "qcow2", ImageUploadTimeout: time.Minute,
			PostUploadHook: c.Hook,
			Settings:       &cloud, DiskImages: []configs.ProviderImage{{Name: "img"}},
		}},
	}
	if c.Tried {
		cfg.DiskImages[0].Validate = &configs.Validate{Timeout: time.Minute, Checks: []configs.ValidateCheck{{SSH: true}}}
	}
	if c.Canary {
		cfg.DiskImages[0].Canary = &configs.Canary{Share: 5, For: time.Hour, MinNodes: 3, MaxFailures: 5}
	}
	if c.Unfit {
		cfg.BuildDiskReserve = 1 << 50
	}
	for i := 1; i < c.Images; i++ {
		image := cfg.DiskImages[0]
		image.Name = fmt.Sprintf("img-%03d", i)
		cfg.DiskImages = append(cfg.DiskImages, image)
		cfg.Providers[0].DiskImages = append(cfg.Providers[0].DiskImages, configs.ProviderImage{Name: image.Name})
	}
	for i := 1; i < c.Clouds; i++ {
		p := cfg.Providers[0]
		p.Name = fmt.Sprintf("cloud-%d", i)
		cfg.Providers = append(cfg.Providers, p)
	}
	return cfg
}

// process is a running child.
type process struct {
	cmd   *exec.Cmd
	input io.Closer
	ended chan struct{}
	lines []string // of its log; valid when it has ended
}

// spawn starts a child.
func (c child) spawn(tb testing.TB) *process {
	tb.Helper()
	arg, err := json.Marshal(c)
	if err != nil {
		tb.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0], childCommand, string(arg)), ended: make(chan struct{})} //nolint:noctx // ended by its input
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		tb.Fatal(err)
	}
	// A pipe of our own: a guard that outlives the child has its stderr.
	read, write, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	p.cmd.Stderr = write
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	_ = write.Close()
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			p.lines = append(p.lines, scanner.Text())
		}
	}()
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
		<-logged
		_ = read.Close()
	}()
	tb.Cleanup(func() {
		_ = p.input.Close()
		_ = p.cmd.Process.Signal(syscall.SIGCONT) // a test that fails may have left it stopped
		<-p.ended
		if tb.Failed() {
			tb.Logf("builder %s, to die at %q:\n%s", c.Host, c.At, strings.Join(p.lines, "\n"))
		}
	})
	return p
}

// dies waits until a child has killed itself.
func (p *process) dies(tb testing.TB) {
	tb.Helper()
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		tb.Fatal("the step was not reached")
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		tb.Fatalf("ended otherwise: %v", p.cmd.ProcessState)
	}
}

// stop ends a child in good order.
func (p *process) stop() {
	_ = p.input.Close()
	<-p.ended
}

// newSiteOf is a site on the tree and the cloud that children use.
func newSiteOf(tb testing.TB) (*site, child) {
	tb.Helper()
	return childrenOf(newSite(tb))
}

// childrenOf lets children work on the tree and the cloud of a site.
func childrenOf(s *site) (*site, child) {
	c := child{Server: s.server.Addr(), Chroot: s.root, Dir: s.dir, Host: "one", Env: map[string]string{}}
	s.config = c.config()
	return s, c
}

// members are the builders that are registered.
func (s *site) members() []recipe.Member {
	s.t.Helper()
	list, err := recipe.Members(s.t.Context(), s.store.Session(), zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// settled waits until nothing is under way or left over: every record is ready, the
// clouds hold exactly what is recorded, each at least one of each image, and the folders of
// the hosts hold exactly the builds that are.
func (s *site) settled(hosts ...string) {
	s.t.Helper()
	disorder := "?"
	defer func() {
		if disorder != "" {
			s.t.Logf("in disorder: %s", disorder)
		}
	}()
	s.eventually("the tree, the cloud and the disk agree", func() bool {
		disorder = s.disorder(hosts)
		return disorder == ""
	})
}

// disorder tells what does not agree.
func (s *site) disorder(hosts []string) string {
	s.t.Helper()
	builds := map[string]bool{}
	recorded := map[string]map[string]bool{} // by provider
	for _, p := range s.config.Providers {
		recorded[p.Name] = map[string]bool{}
	}
	for _, i := range s.config.DiskImages {
		if why := s.unready(i.Name, builds, recorded); why != "" {
			return why
		}
	}
	for provider, ids := range recorded {
		for _, id := range s.inCloud(provider) {
			if !ids[id] {
				return "image " + id + " is in " + provider + " without a record"
			}
			delete(ids, id)
		}
		if len(ids) > 0 {
			return fmt.Sprintf("not in %s: %v", provider, ids)
		}
	}
	for _, host := range hosts {
		for _, pattern := range []string{"images/img-*", "images/.poolkeeper/img-*"} {
			files, err := filepath.Glob(filepath.Join(s.dir, host, pattern))
			if err != nil {
				s.t.Fatal(err)
			}
			for _, file := range files {
				name, _, _ := strings.Cut(filepath.Base(file), ".")
				if !builds[name] {
					return file + " belongs to no build"
				}
			}
		}
	}
	return ""
}

// unready tells what of an image is not as it should be, and adds its builds and external
// ids to those of all images.
func (s *site) unready(image string, builds map[string]bool, recorded map[string]map[string]bool) string {
	s.t.Helper()
	tree := s.tree(image)
	there := map[string]bool{}
	for _, b := range tree.Builds {
		builds[b.Name()] = true
		if b.Broken != nil || b.State != zkmodel.BuildReady {
			return "build " + b.Name() + " is " + string(b.State)
		}
		for _, u := range b.Uploads {
			if u.Broken != nil || u.State != zkmodel.UploadReady {
				return "upload " + u.Path() + " is " + string(u.State)
			}
			recorded[u.Provider][u.ExternalID.Text()], there[u.Provider] = true, true
		}
	}
	for provider := range recorded {
		if !there[provider] {
			return "nothing of " + image + " is ready in " + provider
		}
	}
	if tree.BuildRequested != nil {
		return "a request is left"
	}
	return ""
}
