package kubernetes_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// siteConfig is a site's configuration without its providers: host and port of ZooKeeper, the
// site's folder, the port of its status page.
const siteConfig = `
zookeeper-servers: [{host: %s, port: %s}]
zookeeper-timeout: 3
webapp: {port: %[4]d, listen_address: 127.0.0.1}
events: {sinks: [{name: all, file: %[3]s/events.json}]} # which also has the tree keep them
labels: [{name: work}, {name: space}, {name: greedy}]
providers:
`

// site is ZooKeeper, Zuul, and launchers as processes of their own, with the cluster as their cloud.
type site struct {
	t         *testing.T
	dir       string
	port      int
	admin     *admin
	zuul      *zuul.Client
	launchers []*process
}

func newSite(t *testing.T, providers string) *site {
	t.Helper()
	zk := zktest.Start(t)
	s := &site{t: t, dir: t.TempDir(), port: zktest.FreePort(), admin: newAdmin(t)}
	host, port, err := net.SplitHostPort(zk.Addr())
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(siteConfig, host, port, s.dir, s.port) + providers
	if err := os.WriteFile(filepath.Join(s.dir, "nodepool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.zuul, err = zuul.Dial(t.Context(), []string{zk.Addr()}, "", "zuul"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

// command is a run of the program.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	return exec.CommandContext(ctx, path, append(args, "-c", filepath.Join(s.dir, "nodepool.yaml"))...)
}

// says is what a command prints.
func (s *site) says(args ...string) string {
	s.t.Helper()
	out, err := s.command(s.t.Context(), args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// process is a launcher that ends with this process, however that ends.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, behind exited
}

// launcher starts one.
func (s *site) launcher() *process {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "launcher.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the launcher writes it
	p := &process{cmd: s.command(context.WithoutCancel(s.t.Context()), "launcher"), exited: make(chan struct{})}
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
	s.launchers = append(s.launchers, p)
	return p
}

// kill ends a launcher as a crash does.
func (s *site) kill(p *process) {
	s.t.Helper()
	_ = p.cmd.Process.Kill() // exited tells
	<-p.exited
	s.launchers = slices.DeleteFunc(s.launchers, func(q *process) bool { return p == q })
}

func (s *site) end() {
	s.zuul.Close()
	for _, p := range s.launchers {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // exited tells
		<-p.exited
		if p.err != nil {
			s.t.Errorf("a launcher ended with %v", p.err)
		}
	}
	if s.t.Failed() {
		text, err := os.ReadFile(filepath.Join(s.dir, "launcher.log"))
		s.t.Logf("launchers (%v):\n%s", err, text)
	}
}

func (s *site) submit(label string) string {
	s.t.Helper()
	id, err := s.zuul.Submit(zuul.Wish{Labels: []string{label}})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// outcome waits until a request is fulfilled or has failed.
func (s *site) outcome(request string) zuul.Outcome {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	out, err := s.zuul.Wait(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// take waits for a request, and takes its node over as Zuul does.
func (s *site) take(request string) *zuul.Node {
	s.t.Helper()
	nodes, err := s.zuul.Accept(s.t.Context(), s.outcome(request))
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.zuul.Use(nodes...); err != nil {
		s.t.Fatal(err)
	}
	return nodes[0]
}

// named lists the objects below a path that a provider has made.
func (s *site) named(path, provider string) []string {
	s.t.Helper()
	answer := s.admin.must("GET", path+"?labelSelector=nodepool_provider_name%3D"+provider, "")
	items, _ := answer["items"].([]any)
	var names []string
	for _, item := range items {
		m, _ := item.(map[string]any)
		name, _ := at(m, "metadata", "name").(string)
		names = append(names, name)
	}
	return names
}

// text is what a node's connection says.
func text(n *zuul.Node, key string) string {
	value, _ := n.Object("connection_port")[key].(string)
	return value
}

// hides sees that a token is in nothing that people read.
func (s *site) hides(token string) {
	s.t.Helper()
	shown := map[string]string{
		"list": s.says("list", "--detail"), "list as JSON": s.says("list", "--detail", "-o", "json"), "status": s.says("status", "--all"),
	}
	shown["launcher.log"] = s.log()
	shown["events"] = s.says("events", "--json", "--since", "1h") + "."
	backup := filepath.Join(s.dir, "backup")
	s.says("backup", backup)
	content, err := os.ReadFile(backup)
	if err != nil {
		s.t.Error(err)
	}
	shown["backup"] = string(content)
	for _, page := range []string{"/", "/node-list", "/node-list?detail=1", "/nodes", "/label-list"} {
		shown[page] = s.page(page)
	}
	for what, text := range shown {
		if strings.Contains(text, token) {
			s.t.Errorf("%s shows the token", what)
		}
		if len(text) == 0 {
			s.t.Errorf("%s is empty", what)
		}
	}
}

func (s *site) page(path string) string {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), "curl", "-fsS", "--noproxy", "*", fmt.Sprintf("http://127.0.0.1:%d%s", s.port, path)).CombinedOutput()
	if err != nil {
		s.t.Errorf("%s: %v: %s", path, err, out)
	}
	return string(out)
}
