package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// hostFile is each host's own, beside where the tree is.
const hostFile = `zookeeper-timeout: 2
fleet-dir: %(NODEPOOL_HOST)
images-dir: %(NODEPOOL_HOST)/images
build-log-dir: %(NODEPOOL_HOST)/logs
build-disk-reserve: 0
`

// configuration is the fleet's: %[1]s is the folder of the site, %[2]d the port of all
// machines.
const configuration = `
labels: [{name: tried}, {name: few}, {name: plain}]
diskimages:
  - name: tried
    formats: [qcow2]
    dib-cmd: %[1]s/dib
    username: root
    validate: {timeout: 60, key: %[1]s/id, checks: [ssh, {command: %[1]s/check}]}
  - name: few
    formats: [qcow2]
    dib-cmd: %[1]s/dib
    canary: {share: 100%%, max-failures: 2}
  - name: plain
    formats: [qcow2]
    dib-cmd: %[1]s/dib
hooks: [{name: elements, match: [plain, few], reason: a merge}]
sources: [{name: mirror, command: [cat, %[1]s/mirror], every: 1, match: [plain], reason: a new mirror}]
events: {sinks: [{name: file, file: %[1]s/events}]}
providers: [` + provider + `north, ` + restOfProvider + `127.1.0.0/27` + labelsOfProvider + `, ` +
	provider + `south, ` + restOfProvider + `127.2.0.0/27` + labelsOfProvider + `]
`

const (
	provider         = `{name: `
	restOfProvider   = `driver: fake, cloud: fake, fake: {dir: %[1]s/clouds, upload-delay: 0.3, boot-delay: 0.3, network: `
	labelsOfProvider = `}, diskimages: [{name: tried, connection-port: %[2]d}, {name: few, connection-port: %[2]d}, {name: plain, connection-port: %[2]d}], pools: [{name: main, labels: [` +
		`{name: tried, diskimage: tried, min-ram: 1}, {name: few, diskimage: few, min-ram: 1}, {name: plain, diskimage: plain, min-ram: 1}]}]}`
)

// dib builds an image that takes long enough to be seen at it.
const dib = `#!/bin/sh
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
sleep 0.5
printf 'QFI\373 an image' >$out.qcow2
`

// secret is the hook's; it stands nowhere in clear text.
const secret = "a-word-that-nobody-may-read"

// site is a fleet: its daemons, by host, and who works on it.
type site struct {
	*testing.T
	binary string
	// zookeeper is the part of a configuration that says where the tree is.
	zookeeper string
	dir       string
	daemons   map[string]*exec.Cmd
	webs      map[string]string // address of each daemon's pages
	mirror    *zkmodel.Mirror
	store     *zkmodel.Store
	zuul      *zuul.Client
	used      string // build of the last job's node
}

func hosts() []string { return []string{"builder-1", "builder-2", "launcher-1", "launcher-2"} }

func newSite(t *testing.T) *site {
	t.Helper()
	dir, root, addr := t.TempDir(), zktest.Root(t), zktest.Shared(t).Addr()
	s := &site{T: t, dir: dir, binary: filepath.Join(dir, "poolkeeper"), daemons: map[string]*exec.Cmd{}, webs: map[string]string{}}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", s.binary, "poolkeeper/cmd/poolkeeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does, which has compiled it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	for _, folder := range append(hosts(), "admin", "bad", "clouds") {
		if err := os.MkdirAll(filepath.Join(s.path(folder), "images"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	host, port, _ := strings.Cut(addr, ":")
	s.zookeeper = fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\n", host, port, root)
	s.write("host.yaml", s.zookeeper+hostFile, 0o600)
	s.write("dib", dib, 0o755)
	s.write("mirror", "one", 0o600)
	s.write("check", check, 0o755)
	s.write("nodepool.yaml", fmt.Sprintf(configuration, dir, serveMachines(t, s.path("id"))), 0o600)
	s.secure()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.store = zkmodel.NewStore(session, nil).WithCanaries(true)
	if s.zuul, err = zuul.Dial(t.Context(), []string{addr}, root, "zuul"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.zuul.Close)
	s.follow(client)
	return s
}

// secure makes the secure file: who may push, and a sealed secret.
func (s *site) secure() {
	s.Helper()
	keygen := exec.CommandContext(s.Context(), s.binary, "config", "keygen", s.path("anna.key"))
	public, err := keygen.Output()
	if err != nil {
		s.Fatal(err)
	}
	s.write("secure.yaml", "secret-key: fleet.key\nconfig-signers: ["+strings.TrimSpace(string(public))+"]\nhooks: [{name: elements, secret: }]\n", 0o600)
	s.run("", "secret", "keygen", "fleet.key")
	s.run(secret+"\n", "secret", "set", "secure.yaml", "hooks[elements].secret")
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string, mode os.FileMode) {
	s.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), mode); err != nil {
		s.Fatal(err)
	}
}

// command is the program on a host.
func (s *site) command(host string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, append([]string{"-c", "zk:", "--host-config", "host.yaml", "-s", "secure.yaml", "--zookeeper-wait", "1m"}, args...)...) //nolint:noctx // daemons are killed at the end
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "NODEPOOL_HOST="+host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL} // a test that is killed leaves nothing
	return cmd
}

// run runs a command of an operator, and returns what it prints.
func (s *site) run(stdin string, args ...string) string {
	s.Helper()
	cmd := s.command("admin", args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%q: %v\n%s", args, err, out)
	}
	return string(out)
}

// start starts the daemon of a host, whose name says which.
func (s *site) start(host string) {
	s.Helper()
	if s.webs[host] == "" {
		s.webs[host] = free(s.T)
	}
	kind, _, _ := strings.Cut(host, "-")
	s.spawn(host, s.command(host, kind, "--web", s.webs[host]))
}

// spawn starts a program as the daemon of a host.
func (s *site) spawn(host string, cmd *exec.Cmd) {
	s.Helper()
	log, err := os.OpenFile(s.path(host+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the child has its own
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.daemons[host] = cmd
}

// startAll starts all daemons.
func (s *site) startAll() {
	s.Helper()
	s.killedAtTheEnd(hosts()...)
	for _, host := range hosts() {
		s.start(host)
	}
}

// killedAtTheEnd has the daemons of hosts killed at the end, and at a bad one their logs
// shown.
func (s *site) killedAtTheEnd(hosts ...string) {
	s.Cleanup(func() {
		for _, host := range hosts {
			s.kill(host)
			if text, err := os.ReadFile(s.path(host + ".log")); s.Failed() && err == nil {
				s.Logf("%s:\n%s", host, text[max(0, len(text)-10_000):])
			}
		}
	})
}

// kill ends a daemon as kill -9 does.
func (s *site) kill(host string) {
	if cmd := s.daemons[host]; cmd != nil && cmd.ProcessState == nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

// stopAll ends all daemons in good order.
func (s *site) stopAll() {
	s.Helper()
	for _, host := range hosts() {
		if err := s.daemons[host].Process.Signal(syscall.SIGTERM); err != nil {
			s.Error(err)
		}
	}
	for _, host := range hosts() {
		if err := s.daemons[host].Wait(); err != nil {
			s.Errorf("%s, told to stop: %v", host, err)
		}
	}
}

// follow has the tree mirrored.
func (s *site) follow(client *recipe.Client) {
	s.Helper()
	s.mirror = zkmodel.NewMirror(client, zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartComponents, hclog.NewNullLogger())
	s.mirror.FollowValidations()
	s.mirror.FollowCanaries()
	ctx, stop := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := s.mirror.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
			s.Error(err)
		}
	}()
	s.Cleanup(func() { stop(); <-done })
	waiting, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if err := s.mirror.WaitSynced(waiting); err != nil {
		s.Fatal(err)
	}
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // as above
	return l.Addr().String()
}
