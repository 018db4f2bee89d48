package openstack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// imageCreate stands in for disk-image-create: its image is one that the
// stack's hypervisor takes.
const imageCreate = `#!/bin/sh
set -eu
while [ $# -gt 0 ]; do
    case "$1" in
    -o) out=$2; shift ;;
    esac
    shift
done
qemu-img create -q -f qcow2 -o preallocation=full "$out.qcow2" 2M
for sum in md5 sha256; do ${sum}sum "$out.qcow2" >"$out.qcow2.$sum"; done
`

// site is a whole installation: ZooKeeper, a builder and a launcher as processes
// of their own, and the stack as their cloud, behind a proxy.
type site struct {
	t       *testing.T
	dir     string
	gate    *proxy
	zk      *zktest.Server
	zuul    *zuul.Client
	daemons map[string]*exec.Cmd
}

// program is the built binary.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "poolkeeper")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "poolkeeper")
	out, err := exec.Command("go", "build", "-o", path, "poolkeeper/cmd/poolkeeper").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// newSite starts one that has nothing built yet.
func newSite(t *testing.T) *site {
	t.Helper()
	empty(t, smallCloud)
	s := &site{t: t, dir: t.TempDir(), zk: zktest.Start(t), daemons: map[string]*exec.Cmd{}}
	s.gate, _ = interpose(t)
	s.gate.writeClouds(t, s.path("clouds.yaml"), nil)
	s.write("image-create", imageCreate, 0o700)
	host, port, err := net.SplitHostPort(s.zk.Addr())
	if err != nil {
		t.Fatal(err)
	}
	s.write("nodepool.yaml", fmt.Sprintf(`
zookeeper-servers: [{host: %s, port: %s}]
zookeeper-timeout: 3
images-dir: %s/images
build-log-dir: %s/logs
webapp: {port: %d, listen_address: 127.0.0.1}
diskimages:
  - {name: debian, dib-cmd: %s/image-create, elements: [vm]}
labels:
  - name: tiny
providers:
  - name: stack-small
    cloud: small
    rate: 0
    launch-timeout: 300
    image-upload-timeout: 300
    diskimages: [{name: debian}]
    pools:
      - name: main
        networks: [public]
        host-key-checking: false
        labels:
          - {name: tiny, diskimage: debian, flavor-name: ci.tiny, key-name: ci-key}
`, host, port, s.dir, s.dir, freePort(t), s.dir), 0o600)
	if s.zuul, err = zuul.Dial(t.Context(), []string{s.zk.Addr()}, "", "zuul"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.end)
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
}

// freePort is one that nobody listens on at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent
	return l.Addr().(*net.TCPAddr).Port
}

// command is a run of the program.
func (s *site) command(ctx context.Context, args ...string) *exec.Cmd {
	s.t.Helper()
	path, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, append(args, "-c", s.path("nodepool.yaml"))...)
	cmd.Env = append(os.Environ(), "OS_CLIENT_CONFIG_FILE="+s.path("clouds.yaml"))
	return cmd
}

// start starts a daemon, builder or launcher.
func (s *site) start(daemon string) {
	s.t.Helper()
	log, err := os.OpenFile(s.path(daemon+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	cmd := s.command(context.WithoutCancel(s.t.Context()), daemon)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.daemons[daemon] = cmd
	if err := log.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends a daemon as a crash does.
func (s *site) kill(daemon string) {
	s.t.Helper()
	if err := s.daemons[daemon].Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.daemons[daemon].Wait() // it was killed
	delete(s.daemons, daemon)
}

// end stops the daemons, and shows their logs if the test failed.
func (s *site) end() {
	s.gate.inject(nil)
	s.zuul.Close()
	for name, cmd := range s.daemons {
		_ = cmd.Process.Signal(syscall.SIGTERM) // Wait tells
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("%s ended with %v", name, err)
		}
	}
	if !s.t.Failed() {
		return
	}
	for _, name := range []string{"builder", "launcher"} {
		text, err := os.ReadFile(s.path(name + ".log"))
		s.t.Logf("%s (%v):\n%s", name, err, text)
	}
	s.t.Logf("calls:\n%s", s.gate.log())
}

// list runs a listing and decodes it.
func (s *site) list(command string) []map[string]any {
	s.t.Helper()
	out, err := s.command(s.t.Context(), command, "-o", "json").Output()
	if err != nil {
		s.t.Fatalf("%s: %v", command, err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(out, &rows); err != nil {
		s.t.Fatalf("%s: %v in %s", command, err, out)
	}
	return rows
}

// await waits for what the whole site brings about.
func (s *site) await(what string, done func() bool) {
	s.t.Helper()
	const limit = 3 * time.Minute
	for deadline := time.Now().Add(limit); !done(); pause(s.t, 300*time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// awaitImages waits until so many uploads are ready, and there are no others.
func (s *site) awaitImages(n int) []map[string]any {
	s.t.Helper()
	var rows []map[string]any
	s.await(fmt.Sprintf("%d images that are ready", n), func() bool {
		rows = s.list("image-list")
		for _, row := range rows {
			if row["state"] != "ready" {
				return false
			}
		}
		return len(rows) == n
	})
	return rows
}

// submit asks for a node.
func (s *site) submit() string {
	s.t.Helper()
	id, err := s.zuul.Submit(zuul.Wish{Labels: []string{"tiny"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// take waits for a request, and takes its node over as Zuul does.
func (s *site) take(request string) *zuul.Node {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 3*time.Minute)
	defer cancel()
	out, err := s.zuul.Wait(ctx, request)
	if err != nil {
		s.t.Fatal(err)
	}
	nodes, err := s.zuul.Accept(ctx, out)
	if err != nil {
		s.t.Fatal(err)
	}
	return nodes[0]
}

// giveBack returns nodes and waits until they are gone.
func (s *site) giveBack(nodes ...*zuul.Node) {
	s.t.Helper()
	if err := s.zuul.Return(nodes...); err != nil {
		s.t.Fatal(err)
	}
	s.await("no nodes", func() bool { return len(s.list("list")) == 0 })
}

// wantTruth compares the records with the cloud, as the official client sees it.
func (s *site) wantTruth() {
	s.t.Helper()
	var servers, images []thing
	official(s.t, smallCloud, &servers, "server", "list")
	official(s.t, smallCloud, &images, "image", "list", "--private")
	recorded := map[string]bool{}
	for _, row := range append(s.list("list"), s.list("image-list")...) {
		for _, key := range []string{"server_id", "external_id"} {
			if id, ok := row[key].(string); ok {
				recorded[id] = true
			}
		}
	}
	for _, one := range append(servers, images...) {
		if !recorded[one.ID] {
			s.t.Errorf("leaked: %+v", one)
		}
		delete(recorded, one.ID)
	}
	for id := range recorded {
		s.t.Errorf("recorded, and not in the cloud: %s", id)
	}
	if s.t.Failed() {
		s.t.Logf("records: %v\n%v", s.list("list"), s.list("image-list"))
	}
}

// seen tells whether the proxy has seen a call, whose answer may not be there.
func (s *site) seen(method, suffix string, answered bool) bool {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	for _, c := range s.gate.calls {
		if c.Method == method && strings.HasSuffix(c.Path, suffix) && (!answered || c.Status != 0) {
			return true
		}
	}
	return false
}
