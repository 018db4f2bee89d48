// Package site_test has whole sites make nodes of an Amazon that is checked, with launchers that are killed.
package site_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/aws/endpoint"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// siteConfig is a site's configuration: host and port of ZooKeeper, the endpoint's region, image, subnet and group.
const siteConfig = `
zookeeper-servers: [{host: %s, port: %s}]
zookeeper-timeout: 3
webapp: {port: 0, listen_address: 127.0.0.1}
labels: [{name: work}, {name: spot}, {name: fleet}, {name: host}]
providers:
- name: amazon
  driver: aws
  region-name: %s
  rate: 1000
  host-key-checking: false
  unanswered-create-timeout: 2
  cloud-images: [{name: debian, image-id: %s, username: admin}]
  pools:
  - name: main
    subnet-id: %s
    security-group-id: %s
    labels:
    - {name: work, cloud-image: debian, instance-type: t3.small, key-name: key, volume-size: 10}
    - {name: spot, cloud-image: debian, instance-type: t3.small, key-name: key, use-spot: true}
    - {name: fleet, cloud-image: debian, fleet: {instance-types: [m5.large, c5.large], allocation-strategy: prioritized}, key-name: key}
  - name: hosts
    availability-zone: %s
    labels:
    - {name: host, cloud-image: debian, instance-type: m5.large, key-name: key, dedicated-host: true}
`

// site is ZooKeeper, Zuul and an Amazon, with launchers as processes of their own.
type site struct {
	t       *testing.T
	dir     string
	config  string
	program string
	amazon  *endpoint.Endpoint
	zuul    *zuul.Client
	daemons []*process

	zookeeper string
}

func newSite(t *testing.T) *site {
	t.Helper()
	if os.Getenv(endpoint.RequiredVariable) == "" {
		t.Skip("make test-aws runs this test")
	}
	zk := zktest.Start(t)
	s := &site{t: t, dir: t.TempDir(), zookeeper: zk.Addr(), amazon: endpoint.Start(t, endpoint.Options{Pace: 300 * time.Millisecond})}
	host, port, err := net.SplitHostPort(zk.Addr())
	if err != nil {
		t.Fatal(err)
	}
	e := s.amazon
	s.config = fmt.Sprintf(siteConfig, host, port, e.Region, e.SeededImages()[0].ID, e.Subnets[0], e.SecurityGroup, e.Zones[0])
	if err := os.WriteFile(filepath.Join(s.dir, "nodepool.yaml"), []byte(s.config), 0o600); err != nil {
		t.Fatal(err)
	}
	s.program = program(t)
	if s.zuul, err = zuul.Dial(t.Context(), []string{zk.Addr()}, "", "zuul"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// built is the program: to link it takes longer than most tests here.
var built struct {
	once sync.Once
	path string
	err  error
}

// TestMain removes the program at the end.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "poolkeeper-aws-")
	if err != nil {
		panic(err)
	}
	built.path = filepath.Join(dir, "poolkeeper")
	defer os.RemoveAll(dir) //nolint:errcheck // nobody can be told
	m.Run()
}

// program is built by who needs it first.
func program(t *testing.T) string {
	t.Helper()
	built.once.Do(func() {
		build := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "build", "-trimpath", "-buildvcs=false", "-o", built.path, "poolkeeper/cmd/poolkeeper")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the program: %w: %s", err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// run runs a command of the program.
func (s *site) run(t *testing.T, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, append([]string{"-c", filepath.Join(s.dir, "nodepool.yaml")}, args...)...)
	cmd.Env = s.environment()
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), s.dir+"/", ""), cmd.ProcessState.ExitCode()
}

func (s *site) environment() []string {
	all := os.Environ()
	for name, value := range s.amazon.Environment() {
		all = append(all, name+"="+value)
	}
	return all
}

// process is a daemon that ends with this process, however that ends.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, behind exited
}

func (s *site) launcher() *process { return s.daemon("launcher") }

func (s *site) daemon(name string) *process {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "daemons.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the daemon writes it
	p := &process{
		cmd:    exec.CommandContext(context.WithoutCancel(s.t.Context()), s.program, name, "-c", filepath.Join(s.dir, "nodepool.yaml")),
		exited: make(chan struct{}),
	}
	p.cmd.Env = s.environment()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() { // Pdeathsig is about the thread that started it
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.daemons = append(s.daemons, p)
	return p
}

// kill ends a daemon as a crash does.
func (s *site) kill(p *process) {
	s.t.Helper()
	_ = p.cmd.Process.Kill() // exited tells
	<-p.exited
	s.daemons = slices.DeleteFunc(s.daemons, func(q *process) bool { return p == q })
}

func (s *site) end() {
	s.zuul.Close()
	for _, p := range s.daemons {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // exited tells
		<-p.exited
		if p.err != nil {
			s.t.Errorf("a daemon ended with %v", p.err)
		}
	}
	if s.t.Failed() {
		text, err := os.ReadFile(filepath.Join(s.dir, "daemons.log"))
		s.t.Logf("daemons (%v):\n%s", err, text)
	}
}

// take waits for a request, and takes its node over as Zuul does.
func (s *site) take(request string) *zuul.Node {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	out, err := s.zuul.Wait(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	nodes, err := s.zuul.Accept(ctx, out)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.zuul.Use(nodes...); err != nil {
		s.t.Fatal(err)
	}
	return nodes[0]
}

// soon looks each millisecond: what it waits for lasts some of them.
func (s *site) soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "daemons.log"))
			t.Fatalf("not within a minute: %s\n%s", what, text)
		}
	}
}

// A launcher is killed at each thing that Amazon has of a node, while it comes and while it goes: the next one
// goes on, and of each node there is one machine, and none at the end.
func TestSiteKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.amazon
	state := func(want string) func() bool {
		return func() bool {
			list := e.Instances()
			return len(list) > 0 && list[len(list)-1].State() == want
		}
	}
	asked := 0
	more := func(operation string) func() bool { return func() bool { return e.Count(operation) > asked } }
	for _, step := range []struct {
		name, label string
		before      func()
		seen        func() bool
	}{
		{"asked for", "work", nil, more("RunInstances")},
		{"asked for, and shown late", "work", func() { e.Lag(3 * time.Second) }, more("RunInstances")},
		{"asked for, and the answer lost", "work", func() { e.LoseAnswer("RunInstances", 3) }, state("pending")},
		{"pending", "work", nil, state("pending")},
		{"running", "work", nil, state("running")},
		{"spot", "spot", nil, state("pending")},
		{"a template is made", "fleet", nil, func() bool { return len(e.Templates()) > 0 }},
		{"a fleet is asked for", "fleet", func() { asked = e.Count("CreateFleet") }, more("CreateFleet")},
		{"a host is allocated", "host", nil, func() bool { return len(hostsKept(e)) > 0 }},
	} {
		t.Run(step.name, func(t *testing.T) {
			asked = e.Count("RunInstances")
			if step.before != nil {
				step.before()
			}
			victim := s.launcher()
			request, err := s.zuul.Submit(zuul.Wish{Labels: []string{step.label}})
			if err != nil {
				t.Fatal(err)
			}
			s.soon(t, step.name, step.seen)
			s.kill(victim)
			next := s.launcher()
			n := s.take(request)
			zktest.Eventually(t, func() bool { list := e.Instances(); return len(list) == 1 && list[0].State() == "running" }, "one machine runs")
			if err := s.zuul.Return(n); err != nil {
				t.Fatal(err)
			}
			s.soon(t, "the machine goes", func() bool { return !state("running")() })
			s.kill(next)
			e.Lag(0)
			last := s.launcher()
			if err := s.zuul.WaitGone(t.Context(), n.ID); err != nil {
				t.Error(err)
			}
			zktest.Eventually(t, func() bool { return len(e.Instances())+len(e.Volumes()) == 0 }, "nothing is left")
			if len(hostsKept(e)) > 0 { // the search for leaks is waited for
				patiently(t, "hosts are given back", func() bool { return len(hostsKept(e)) == 0 })
			}
			s.kill(last)
		})
	}
}

// hostsKept are the hosts that were not given back.
func hostsKept(e *endpoint.Endpoint) []endpoint.Thing {
	return slices.DeleteFunc(e.Hosts(), func(h endpoint.Thing) bool { return strings.HasPrefix(h.State(), "released") })
}
