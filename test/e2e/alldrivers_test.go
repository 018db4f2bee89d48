package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers/fake"
	"poolkeeper/test/aws/endpoint"
	"poolkeeper/test/aws/model"
	"poolkeeper/test/sshd"
	"poolkeeper/test/tempdir"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// allDrivers is one site with every driver in its one file: builder and launchers are the built program,
// guests are QEMU's, static machines are SSH servers, Amazon is the endpoint that is held against Amazon's
// model. A pretended cloud stands in for OpenStack, with its keys, and a stand-in for clusters. A launcher
// is killed in the middle of the load; in the end nothing is left but the stock that is wanted.
func allDrivers(t *testing.T, binary string) {
	t.Helper()
	s := newFullSite(t, binary)
	s.daemon("builder")
	first := s.daemon("launcher", "--no-webapp")
	s.daemon("launcher", "--no-webapp")
	zktest.Eventually(t, func() bool { return s.count("image-list", "ready") == len(imageProviders()) }, "each provider of images has the image")
	zktest.Eventually(t, func() bool {
		out := s.cli("list")
		return strings.Contains(out, "cloud-") && strings.Contains(out, "cluster-") && strings.Contains(out, "slots-")
	}, "stock of three drivers is there")

	load := s.load(mixedLoad())
	zktest.Eventually(t, func() bool { return s.done.Load() >= 5 }, "the load is being served")
	kill(first)
	s.daemon("launcher", "--no-webapp")
	for _, err := range load() {
		t.Error(err)
	}

	s.write(map[string]string{"min-ready: 1": "min-ready: 0, max-ready-age: 1"})
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Errorf("clouds still have %q; the records are\n%s", left, s.cli("list", "--detail"))
		}
	}()
	zktest.Eventually(t, func() bool { left = s.machines(); return len(left) == 0 }, "no cloud has a machine any more")
	if left = s.machines(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	zktest.Eventually(t, func() bool { return s.count("list", "") == s.count("list", "racks-") }, "no node is left but static ones")
	if out := s.cli("list"); strings.Count(out, "| ready") < 3 { // racks that are free again
		t.Errorf("static machines are not ready again:\n%s", out)
	}
	if out := s.cli("request-list"); strings.Contains(out, "| pending") || strings.Contains(out, "| requested") {
		t.Errorf("requests are left:\n%s", out)
	}
}

// fullConfig is the site's one file. Two providers of each driver, and one cloud that does not answer.
const fullConfig = `
zookeeper-servers: [{host: %[1]s, port: %[2]s, chroot: %[3]s}]
images-dir: %[4]s/images
build-log-dir: %[4]s/logs
build-disk-reserve: 0
max-hold-age: 3600
diskimages:
  - {name: boot, elements: [none], dib-cmd: %[4]s/dib}
labels:
  - {name: vm, min-ready: 1}
  - {name: large}
  - {name: pod}
  - {name: space, min-ready: 1}
  - {name: project}
  - {name: slot, min-ready: 1}
  - {name: instance-slot}
  - {name: instance}
  - {name: built-instance}
  - {name: guest}
  - {name: rack}
  - {name: open-rack}
providers:
  # A cloud that is down, before all others, of the labels that others have, too.
  - name: down
    cloud: down
    diskimages: [{name: boot}]
    pools: [{name: main, labels: [{name: vm, diskimage: boot, flavor-name: any}]}]
  - {name: google, driver: gce, project: p, region: r, zone: z}
  - name: cloud-a
    driver: fake
    fake: {dir: %[4]s/fake, boot-delay: 0.2, upload-delay: 0.2}
    diskimages: [{name: boot}]
    pools:
      - name: main
        labels: &clouds
          - {name: vm, diskimage: boot, min-ram: 1024}
          - {name: large, diskimage: boot, min-ram: 4096}
  - name: cloud-b
    driver: fake
    fake: {dir: %[4]s/fake, boot-delay: 0.2, upload-delay: 0.2}
    diskimages: [{name: boot}]
    pools: [{name: main, max-servers: 4, labels: *clouds}]
  - name: cluster-a
    driver: kubernetes
    context: east
    pools: &clusters
      - name: main
        max-servers: 4
        labels:
          - {name: pod, type: pod, image: docker.io/fedora, cpu: 1, memory: 512}
          - {name: space, type: namespace}
  - {name: cluster-b, driver: kubernetes, context: west, pools: *clusters}
  - name: projects-a
    driver: openshiftpods
    context: east
    pools: [{name: ci-a, labels: [{name: project, image: docker.io/fedora}]}]
  - name: projects-b
    driver: openshiftpods
    context: west
    max-pods: 2
    pools: [{name: ci-b, labels: [{name: project, image: docker.io/fedora}]}]
  - name: slots-a
    driver: metastatic
    pools: [{name: main, max-servers: 9, labels: [{name: slot, backing-label: large, max-parallel-jobs: 3, grace-time: 0}]}]
  - name: slots-b
    driver: metastatic
    pools: [{name: main, max-servers: 2, labels: [{name: instance-slot, backing-label: instance, max-parallel-jobs: 2, grace-time: 0}]}]
  - name: amazon-a
    driver: aws
    region-name: %[5]s
    rate: 100
    unanswered-create-timeout: 5 # a launcher is killed in the middle
    host-key-checking: false
    cloud-images: [{name: debian, image-id: %[6]s, username: admin}]
    pools:
      - name: main
        subnet-id: %[7]s
        security-group-id: %[8]s
        labels: [{name: instance, cloud-image: debian, instance-type: t3.small, key-name: key}]
  - name: amazon-b
    driver: aws
    region-name: %[5]s
    rate: 100
    unanswered-create-timeout: 5 # a launcher is killed in the middle
    host-key-checking: false
    diskimages: [{name: boot, import-method: ebs-direct, username: zuul}]
    pools:
      - name: main
        subnet-id: %[7]s
        security-group-id: %[8]s
        labels: [{name: built-instance, diskimage: boot, instance-type: t3.small, key-name: key}]
  - name: guests-a
    driver: local
    dir: %[4]s/guests-a
    accel: tcg
    memory: 16
    image-format: raw
    diskimages: [{name: boot}]
    pools: &guests [{name: main, max-servers: 2, host-key-checking: false, labels: [{name: guest, diskimage: boot}]}]
  - {name: guests-b, driver: local, dir: %[4]s/guests-b, accel: tcg, memory: 16, image-format: raw, diskimages: [{name: boot}], pools: *guests}
  - name: racks-a
    driver: static
    pools:
      - name: main
        nodes:
          - {name: 127.0.0.1, labels: rack, connection-port: %[9]s, host-key: %[10]q}
          - {name: localhost, labels: rack, connection-port: %[9]s, host-key: %[10]q}
  - name: racks-b
    driver: static
    pools: [{name: main, nodes: [{name: rack.example.org, labels: open-rack, host-key-checking: false, max-parallel-jobs: 2}]}]
`

// imageProviders are those that answer and store images.
func imageProviders() []string {
	return []string{"cloud-a", "cloud-b", "amazon-b", "guests-a", "guests-b"}
}

// fullSite is a site with every driver.
type fullSite struct {
	t           *testing.T
	binary, dir string
	text        string   // of the configuration
	env         []string // of daemons
	zuul        *zuul.Client
	amazon      *endpoint.Endpoint
	east, west  *cluster
	done        atomic.Int64 // jobs
}

func newFullSite(t *testing.T, binary string) *fullSite {
	t.Helper()
	switch _, err := model.Load("ec2"); {
	case err == nil:
	case os.Getenv(requireEnv) != "":
		t.Fatalf("%s is set: %v", requireEnv, err)
	default:
		t.Skip(err)
	}
	s := &fullSite{t: t, binary: binary, dir: tempdir.New(t)}
	t.Cleanup(func() { // of a test that has failed
		for _, guest := range guests(t, s.dir) {
			if pid, err := strconv.Atoi(strings.TrimPrefix(guest, "guest ")); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
	s.amazon = endpoint.Start(t, endpoint.Options{})
	s.east, s.west = startCluster(t, "ci-a"), startCluster(t, "ci-b")
	s.env = append(os.Environ(), "KUBECONFIG="+writeKubeconfig(t, s.dir, map[string]*cluster{"east": s.east, "west": s.west}),
		"OS_CLIENT_CONFIG_FILE="+s.dir+"/clouds.yaml")
	for name, value := range s.amazon.Environment() {
		s.env = append(s.env, name+"="+value)
	}
	key, listener := sshd.Key(t, "ed25519"), sshd.Listen(t, 0)
	sshd.Serve(t, listener, key)
	_, rack, _ := net.SplitHostPort(listener.Addr().String())
	server, root := zktest.Shared(t).Addr(), zktest.Root(t)
	host, port, _ := strings.Cut(server, ":")
	s.text = fmt.Sprintf(fullConfig, host, port, root, s.dir, s.amazon.Region, s.amazon.SeededImages()[0].ID,
		s.amazon.Subnets[0], s.amazon.SecurityGroup, rack, sshd.Authorized(key))
	s.write(nil)
	for name, text := range map[string]string{
		"clouds.yaml": `clouds: {down: {auth: {auth_url: "http://127.0.0.1:1/v3", username: u, password: p, project_name: p}}}`,
		"dib":         "#!/bin/sh\nset -eu\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\ncp " + s.dir + "/boot.raw \"$out.raw\"\nqemu-img convert -f raw -O qcow2 \"$out.raw\" \"$out.qcow2\"\n",
		"boot.raw":    string(idleDisk()),
	} {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	client, err := zuul.Dial(t.Context(), []string{server}, root, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.zuul = client
	return s
}

// idleDisk is a disk whose system does nothing: it halts, and answers nobody.
func idleDisk() []byte {
	disk := make([]byte, 2<<20)
	copy(disk, []byte{0xfb, 0xf4, 0xeb, 0xfd}) // sti; hlt; jmp to the hlt
	disk[510], disk[511] = 0x55, 0xaa
	return disk
}

// write writes the configuration, with something in place of something else.
func (s *fullSite) write(changes map[string]string) {
	s.t.Helper()
	for from, to := range changes {
		s.text = strings.ReplaceAll(s.text, from, to)
	}
	file := filepath.Join(s.dir, "nodepool.yaml")
	if err := os.WriteFile(file+".new", []byte(s.text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		s.t.Fatal(err)
	}
}

// daemon starts the program. At the end of the test it is stopped, and what it said shown if that failed.
func (s *fullSite) daemon(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.binary, append([]string{"-c", s.dir + "/nodepool.yaml"}, args...)...)
	log, err := os.CreateTemp(s.dir, args[0]+"-*.log")
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		kill(cmd)
		if text, err := os.ReadFile(log.Name()); err == nil && s.t.Failed() {
			s.t.Logf("%s:\n%s", log.Name(), text)
		}
		_ = log.Close()
	})
	return cmd
}

// kill ends a daemon as a crash does.
func kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
}

// cli is what a command prints, "" where it fails, as before there is a tree.
func (s *fullSite) cli(args ...string) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), s.binary, append([]string{"-c", s.dir + "/nodepool.yaml"}, args...)...)
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		s.t.Logf("%v: %v", args, err)
		return ""
	}
	return string(out)
}

// count is how many lines of a listing have a word; the listing's frame has none.
func (s *fullSite) count(list, word string) (n int) {
	s.t.Helper()
	for line := range strings.Lines(s.cli(list)) {
		if strings.HasPrefix(line, "| 0") && strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// mixedLoad are the requests: of one node and several, of one label and several, and for one provider.
func mixedLoad() []zuul.Wish {
	var all []zuul.Wish
	for _, label := range []string{"vm", "large", "pod", "space", "project", "slot", "instance-slot", "instance", "built-instance", "guest", "rack", "open-rack"} {
		for i := range 3 {
			all = append(all, zuul.Wish{Labels: []string{label}, Priority: 100 * (i + 1), Tenant: fmt.Sprintf("tenant-%d", i)})
		}
	}
	for _, labels := range [][]string{
		{"vm", "vm", "large"},
		{"pod", "space"},
		{"pod", "pod", "space"},
		{"project", "project"},
		{"slot", "slot", "slot"},
		{"instance-slot", "instance-slot"},
		{"instance", "instance"},
		{"guest", "guest"},
		{"rack", "rack"},
		{"open-rack", "open-rack"},
	} {
		all = append(all, zuul.Wish{Labels: labels})
	}
	for provider, label := range map[string]string{
		"cloud-b": "vm", "cluster-b": "pod", "projects-b": "project", "guests-b": "guest", "slots-a": "slot", "amazon-b": "built-instance", "racks-a": "rack",
	} {
		all = append(all, zuul.Wish{Labels: []string{label}, Provider: provider})
	}
	return all
}

// load runs jobs side by side; what it returns waits for them and tells what went wrong.
func (s *fullSite) load(wishes []zuul.Wish) (wait func() []error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	var mu sync.Mutex
	var failed []error
	var all sync.WaitGroup
	for _, wish := range wishes {
		all.Go(func() {
			err := s.zuul.Run(ctx, wish, func(nodes []*zuul.Node) error { return suits(wish, nodes) })
			s.done.Add(1)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, fmt.Errorf("%v of %q: %w", wish.Labels, wish.Provider, err))
			}
		})
	}
	return func() []error {
		defer cancel()
		all.Wait()
		return failed
	}
}

// suits holds that nodes are what was asked for.
func suits(wish zuul.Wish, nodes []*zuul.Node) error {
	var labels []string
	for _, n := range nodes {
		labels = append(labels, n.Texts("type")[0])
		provider := n.Text("provider")
		if wish.Provider != "" && provider != wish.Provider || provider != nodes[0].Text("provider") || provider == "down" {
			return fmt.Errorf("node %s is of the provider %s", n.ID, provider)
		}
	}
	if !slices.Equal(labels, wish.Labels) {
		return fmt.Errorf("the nodes are %v", labels)
	}
	return nil
}

// machines are what the clouds have of nodes.
func (s *fullSite) machines() (all []string) {
	s.t.Helper()
	for _, name := range []string{"cloud-a", "cloud-b"} {
		p, err := fake.New(configs.Provider{Name: name, Driver: configs.DriverFake, Settings: &configs.FakeDriver{Dir: s.dir + "/fake"}}, hclog.NewNullLogger())
		if err != nil {
			s.t.Fatal(err)
		}
		list, err := p.ListNodes(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		for _, n := range list {
			all = append(all, name+" "+n.ExternalID)
		}
		_ = p.Close()
	}
	all = append(all, s.east.nodes("ci-a")...)
	all = append(all, s.west.nodes("ci-b")...)
	for _, i := range s.amazon.Instances() {
		all = append(all, "instance "+i.ID)
	}
	for _, v := range s.amazon.Volumes() {
		all = append(all, "volume "+v.ID)
	}
	return append(all, guests(s.t, s.dir)...)
}

// guests are the QEMUs of a folder.
func guests(t *testing.T, dir string) (all []string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		line, _ := os.ReadFile(file) // what cannot be read has ended
		program, _, _ := strings.Cut(string(line), "\x00")
		if strings.HasPrefix(filepath.Base(program), "qemu-system") && strings.Contains(string(line), dir) {
			all = append(all, "guest "+filepath.Base(filepath.Dir(file)))
		}
	}
	return all
}
