package openstack_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// imageCreate stands in for disk-image-create: its image is one that the
// stack's hypervisor takes, or, called large, one that its Glance does not.
const imageCreate = `#!/bin/sh
set -eu
while [ $# -gt 0 ]; do
    case "$1" in
    -o) out=$2; shift ;;
    esac
    shift
done
case "$out" in
*large*) out=$out.raw; truncate -s 1600M "$out" ;;
*) out=$out.qcow2; qemu-img create -q -f qcow2 -o preallocation=full "$out" 2M ;;
esac
for sum in md5 sha256; do ${sum}sum "$out" >"$out.$sum"; done
`

// siteConfig is a site's configuration without images, labels and providers:
// host and port of ZooKeeper, the site's folder, the port of its status page.
const siteConfig = `
zookeeper-servers: [{host: %s, port: %s}]
zookeeper-timeout: 3
images-dir: %[3]s/images
build-log-dir: %[3]s/logs
webapp: {port: %[4]d, listen_address: 127.0.0.1}
`

// plainSite has one image, one label and one provider.
const plainSite = `
diskimages:
  - {name: debian, dib-cmd: DIR/image-create, elements: [vm]}
labels:
  - name: tiny
providers:
` + goodProvider

// goodProvider is one without mistakes.
const goodProvider = `
  - name: stack-site
    cloud: site
    rate: 0
    launch-timeout: 300
    image-upload-timeout: 300
    diskimages: [{name: debian, meta: {hw_disk_bus: virtio}}]
    pools:
      - name: main
        networks: [public]
        host-key-checking: false
        labels:
          - name: tiny
            diskimage: debian
            flavor-name: ci.tiny
            key-name: ci-key
            instance-properties: {purpose: test}
            dynamic-instance-properties: {tenant: "{request.tenant_name}"}
`

// site is a whole installation: ZooKeeper, a builder and a launcher as processes
// of their own, and the stack as their cloud, behind a proxy.
type site struct {
	t       testing.TB
	dir     string
	cloud   string
	gate    *proxy
	zk      *zktest.Server
	zuul    *zuul.Client
	daemons map[string]*process
}

// newSite starts one that has nothing built yet.
func newSite(t *testing.T) *site {
	t.Helper()
	return newSiteOf(t, plainSite)
}

// newSiteOf starts one with images, labels and providers; DIR in them is its
// folder.
func newSiteOf(tb testing.TB, config string) *site {
	tb.Helper()
	return newSiteIn(tb, siteCloud, config)
}

// newSiteIn is newSiteOf in another cloud: what config says of the cloud site is said of that.
func newSiteIn(tb testing.TB, cloud, config string) *site {
	tb.Helper()
	empty(tb, cloud)
	s := &site{t: tb, dir: tb.TempDir(), cloud: cloud, zk: zktest.Start(tb), daemons: map[string]*process{}}
	s.gate, _ = interpose(tb, cloud)
	s.gate.writeClouds(tb, s.path("clouds.yaml"), cloud, false)
	config = strings.NewReplacer("DIR", s.dir, "name: stack-site", "name: stack-"+cloud, "cloud: site", "cloud: "+cloud).Replace(config)
	s.write("image-create", imageCreate, 0o700)
	host, port, err := net.SplitHostPort(s.zk.Addr())
	if err != nil {
		tb.Fatal(err)
	}
	head := fmt.Sprintf(siteConfig, host, port, s.dir, zktest.FreePort())
	s.write("nodepool.yaml", head+config, 0o600)
	if s.zuul, err = zuul.Dial(tb.Context(), []string{s.zk.Addr()}, "", "zuul"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.end)
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string, mode os.FileMode) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		s.t.Fatal(err)
	}
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
	d := &process{cmd: cmd, exited: make(chan struct{})}
	if err := d.start(); err != nil {
		s.t.Fatal(err)
	}
	s.daemons[daemon] = d
	if err := log.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// process is a daemon that ends with this process, however that ends.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // of Wait, behind exited
}

// start starts it on a thread that lives as long as it does: Pdeathsig is about
// the thread that started it.
func (p *process) start() error {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	return <-started
}

// kill ends a daemon as a crash does.
func (s *site) kill(daemon string) {
	s.t.Helper()
	if err := s.daemons[daemon].cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.daemons[daemon].exited
	delete(s.daemons, daemon)
}

// end stops the daemons, and shows their logs if the test failed.
func (s *site) end() {
	s.gate.inject(nil)
	s.zuul.Close()
	for name, d := range s.daemons {
		_ = d.cmd.Process.Signal(syscall.SIGTERM) // exited tells
		<-d.exited
		if d.err != nil {
			s.t.Errorf("%s ended with %v", name, d.err)
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

// submit asks for a node of label tiny.
func (s *site) submit() string {
	s.t.Helper()
	return s.submitLabel("tiny")
}

func (s *site) submitLabel(label string) string {
	s.t.Helper()
	id, err := s.zuul.Submit(zuul.Wish{Labels: []string{label}})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

// take waits for a request, and takes its node over as Zuul does.
func (s *site) take(request string) *zuul.Node {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
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
