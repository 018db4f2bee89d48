package launcher_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/crypto/ssh"

	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/launcher/checks"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/validate"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// childCommand makes the test binary a launcher that a test kills.
const childCommand = "test-launcher"

// crashSession is short, so that what a killed launcher held is soon free.
const crashSession = 1500 * time.Millisecond

// child is a launcher in a process of its own.
type child struct {
	Server, Chroot string
	Config         string    // its configuration file
	Dir            string    // of the clouds of all launchers
	Name           string    // its host
	At             step.Step // where one of those that have it kills itself; "" never
	BootsFail      bool
	ChecksFail     bool // of what is tried before it serves
	Stuck          bool // the first machine does not boot, and is not deleted before it is freed
	Traced         bool // to the collector of the environment
}

// runChild is the child's main.
func runChild(arg string) {
	var c child
	if err := json.Unmarshal([]byte(arg), &c); err != nil {
		panic(err)
	}
	client, err := recipe.Dial(recipe.Config{Servers: []string{c.Server}, Chroot: c.Chroot, Timeout: crashSession})
	if err != nil {
		panic(err)
	}
	cfg, err := configs.Load(c.Config, configs.Options{})
	if err != nil {
		panic(err)
	}
	log := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Info, Name: c.Name})
	l, err := launcher.New(cfg, launcher.Deps{
		Client: client, Tracer: c.tracer(), Hostname: c.Name, FQDN: c.Name, Logger: log, Step: c.step,
		Resync: time.Second, Check: c.check(),
		Open: func(p configs.Provider) (providers.Provider, error) {
			if p.BackingLabels() != nil {
				return (&drivers.Process{Logger: log}).Open(p)
			}
			return c.open(p)
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
	if err := l.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	client.Close()
}

// check is nil, or fails.
func (c child) check() validate.Runner {
	if !c.ChecksFail {
		return nil
	}
	return func(_ context.Context, _ checks.Machine, _ ssh.Signer, _ []zkmodel.Check, began func()) error {
		began()
		return fmt.Errorf("%w: no python", checks.ErrFailed)
	}
}

// step dies at the step, if no other launcher has.
func (c child) step(at step.Step) {
	if at != c.At {
		return
	}
	f, err := os.OpenFile(c.deathNote(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // one is enough
	}
	_, _ = f.WriteString(c.Name)
	_ = f.Close()
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// deathNote exists once one has died at the step.
func (c child) deathNote() string { return filepath.Join(c.Dir, "died at "+string(c.At)) }

// open opens the cloud that all launchers and the test share.
func (c child) open(p configs.Provider) (*fake.Provider, error) {
	settings := &configs.FakeDriver{Dir: filepath.Join(c.Dir, "clouds"), MaxInstances: 20, BootDelay: 400 * time.Millisecond}
	if c.BootsFail {
		settings.FailEvery = map[string]int{fake.OpWait: 1}
	}
	p.Settings = settings
	cloud, err := fake.New(p, hclog.NewNullLogger())
	if err == nil && c.Stuck {
		cloud.SetHook(c.stick)
	}
	return cloud, err
}

// stick makes the first machine one that fails and cannot be deleted.
func (c child) stick(_ context.Context, call fake.Call) error {
	if call.Done || call.Op != fake.OpWait && call.Op != fake.OpDeleteNode {
		return nil
	}
	first := filepath.Join(c.Dir, "first machine")
	if f, err := os.OpenFile(first, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_, _ = f.WriteString(call.ID)
		_ = f.Close()
	}
	text, _ := os.ReadFile(first)
	_, held := os.Stat(c.freed())
	switch {
	case string(text) != call.ID:
		return nil
	case call.Op == fake.OpWait:
		return fmt.Errorf("%w: no hypervisor", providers.ErrNodeFailed)
	case held != nil:
		return fmt.Errorf("%w: hypervisor is down", providers.ErrNodeFailed)
	}
	return nil
}

// freed is the file without which the first machine is not deleted.
func (c child) freed() string { return filepath.Join(c.Dir, "freed") }

// process is a running child.
type process struct {
	child
	cmd   *exec.Cmd
	input io.Closer
	log   *os.File
	ended chan struct{}
}

// spawn starts a child, which the end of the test ends.
func (c child) spawn(t *testing.T) *process {
	t.Helper()
	arg, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{child: c, cmd: exec.Command(os.Args[0], childCommand, string(arg)), ended: make(chan struct{})} //nolint:noctx // ended by its input
	if p.input, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.log, err = os.CreateTemp(c.Dir, "log"); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is looked at where that matters
	}()
	t.Cleanup(func() {
		p.stop()
		if t.Failed() {
			text, _ := os.ReadFile(p.log.Name())
			t.Logf("launcher %s, to die at %q, %v:\n%s", c.Name, c.At, p.cmd.ProcessState, text)
		}
		_ = p.log.Close()
	})
	return p
}

// stop ends a child in good order.
func (p *process) stop() {
	_ = p.input.Close()
	<-p.ended
}

// died waits until one of the children has killed itself, and tells which, and
// when.
func (c child) died(t *testing.T) (name string, at time.Time) {
	t.Helper()
	zktest.Eventually(t, func() bool {
		text, err := os.ReadFile(c.deathNote())
		name = string(text)
		return err == nil && name != ""
	}, "the step %s reached", c.At)
	note, err := os.Stat(c.deathNote())
	if err != nil {
		t.Fatal(err)
	}
	return name, note.ModTime()
}

// newCrashSite is a site on the tree and the cloud that children use.
func newCrashSite(t *testing.T, yaml string) (*site, child) {
	t.Helper()
	s := newSite(t, yaml)
	c := child{Server: zktest.Shared(t).Addr(), Chroot: s.root, Config: s.config.Path, Dir: t.TempDir()}
	for _, p := range s.config.Providers {
		if p.BackingLabels() != nil {
			continue
		}
		cloud, err := c.open(p)
		if err != nil {
			t.Fatal(err)
		}
		s.clouds[p.Name] = cloud
		t.Cleanup(func() {
			if err := cloud.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, c
}

// disorder tells what does not agree between tree and cloud, or "": every
// machine has one record and every record that needs one a machine, nothing is
// under way, and nothing belongs to a request that is gone.
func (s *site) disorder() string {
	ctx := context.WithoutCancel(s.t.Context())
	requests, err := s.store.Requests(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	there := map[string]bool{}
	for _, r := range requests {
		there[r.ID] = true
		switch {
		case r.State == zkmodel.RequestPending, r.State == zkmodel.RequestRequested:
			return "request " + r.ID + " is " + string(r.State)
		case r.State == zkmodel.RequestFailed && r.Reason == "":
			return "request " + r.ID + " failed for no reason"
		}
	}
	recorded, nodes := map[string]string{}, map[string]*zkmodel.Node{}
	for _, n := range s.nodes() {
		switch {
		case n.Broken != nil:
			return "node " + n.ID + " is broken"
		case n.State != zkmodel.NodeReady && n.State != zkmodel.NodeInUse:
			return "node " + n.ID + " is " + string(n.State)
		case n.State == zkmodel.NodeReady && n.AllocatedTo != "" && !there[n.AllocatedTo]:
			return "node " + n.ID + " belongs to " + n.AllocatedTo + ", which is gone"
		case n.State == zkmodel.NodeReady && n.Locked:
			return "node " + n.ID + " is locked"
		}
		if recorded[n.ExternalID.Text()] != "" {
			return "nodes " + n.ID + " and " + recorded[n.ExternalID.Text()] + " are one machine"
		}
		if _, slot := n.OnSlot(); !slot { // else it has no machine of its own
			recorded[n.ExternalID.Text()] = n.ID
		}
		nodes[n.ID] = n
	}
	if slots := s.slotDisorder(nodes); slots != "" {
		return slots
	}
	for name, cloud := range s.clouds {
		list, err := cloud.ListNodes(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range list {
			if node := m.Metadata[providers.MetaNode]; recorded[m.ExternalID] != node {
				return "machine " + m.Name + " in " + name + " has no record"
			}
			delete(recorded, m.ExternalID)
		}
	}
	for machine, node := range recorded {
		return "node " + node + " has no machine " + machine
	}
	return ""
}

// settled waits until all agrees.
func (s *site) settled() {
	s.t.Helper()
	disorder := "?"
	defer func() {
		if disorder != "" {
			s.t.Logf("in disorder: %s", disorder)
		}
	}()
	zktest.Eventually(s.t, func() bool {
		disorder = s.disorder()
		return disorder == ""
	}, "tree and cloud agree")
}

var errNotServed = errors.New("not served")

// mustBeServed is the outcome of a request that must be fulfilled.
func (s *site) mustBeServed(id string) []string {
	s.t.Helper()
	out := s.wait(id)
	if out.State != "fulfilled" {
		s.t.Fatalf("%v: %+v", errNotServed, out)
	}
	return out.Nodes
}
