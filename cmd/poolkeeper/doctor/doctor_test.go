package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// patient is a site that is well, but for what a test does to it.
type patient struct {
	t       *testing.T
	dir     string
	port    string
	servers string // of zookeeper-servers
	root    string
	more    string // of the configuration
	secure  string
	doctor  doctor
	wait    time.Duration // for a session
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{t: t, dir: t.TempDir(), root: zktest.Root(t), wait: time.Minute, doctor: doctor{host: builder, now: time.Now, slow: time.Hour}}
	_, p.port, _ = net.SplitHostPort(zktest.Shared(t).Addr())
	p.servers = fmt.Sprintf("{host: 127.0.0.1, port: %s, chroot: %s}", p.port, p.root)
	p.more = fmt.Sprintf("images-dir: %s\nbuild-log-dir: %s\n", p.dir, p.dir)
	p.tree(t, zkmodel.NodesRoot, zkmodel.ClockPath)
	return p
}

// tree makes znodes.
func (p *patient) tree(t *testing.T, paths ...string) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: p.root})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.Session(t.Context())
	for _, path := range paths {
		err = errors.Join(err, session.EnsurePath(t.Context(), path))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// write writes a file of the patient.
func (p *patient) write(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	file := filepath.Join(p.dir, name)
	err := os.WriteFile(file, []byte(text), 0o600)
	if err := errors.Join(err, os.Chmod(file, mode)); err != nil {
		t.Fatal(err)
	}
	return file
}

// examined has the doctor look.
func (p *patient) examined(t *testing.T) []Finding {
	t.Helper()
	file := p.write(t, "nodepool.yaml", "zookeeper-servers: ["+p.servers+"]\n"+p.more, 0o600)
	a := &app.App{
		Flags:  &app.Flags{Config: file, Secure: p.secure, Wait: p.wait},
		Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
	}
	p.doctor.examine(t.Context(), a, true)
	return p.doctor.found
}

const anImage = "diskimages: [{name: debian, elements: [no-such-element]}]\nproviders: [{name: north, driver: fake, diskimages: [{name: debian}]}]\n"

// Faults are put into a site that is well, one at a time, and each is found, with a remedy.
// Mistakes: a fault that is not found, or told as another one; a doctor who stops at the
// first; one who finds what is not there.
func TestEachFaultIsFound(t *testing.T) {
	ca := zktest.NewCA(t)
	cert, key := ca.Issue("one")
	_, other := ca.Issue("two")
	tls := func(cert, key string) string {
		return fmt.Sprintf("zookeeper-tls: {cert: %s, key: %s, ca: %s}\n", cert, key, cert)
	}
	nobody := httptest.NewServer(nil)
	nobody.Close()
	_, away, _ := net.SplitHostPort(strings.TrimPrefix(nobody.URL, "http://"))
	for name, test := range map[string]struct {
		fault func(p *patient)
		want  string // level check what
	}{
		"configuration": {func(p *patient) { p.more += "zookeeper-timeout: soon\n" }, `fault configuration .*nodepool.yaml:4: .*soon`},
		"unknown key":   {func(p *patient) { p.more += "colour: green\n" }, `warning configuration .*:4: colour: unknown key`},
		"no server":     {func(p *patient) { p.servers = "{host: 127.0.0.1, port: " + away + "}"; p.wait = time.Second / 5 }, `fault zookeeper server 127.0.0.1:\d+: .*refused`},
		"no session":    {func(p *patient) { p.servers = "{host: 127.0.0.1, port: " + away + "}"; p.wait = time.Second / 5 }, `fault session reach ZooKeeper`},
		"one server":    {func(p *patient) { p.servers = p.several(p.t, away) }, `warning zookeeper server .*refused; the others have a majority`},
		"chroot": {func(p *patient) {
			p.servers = strings.Replace(p.servers, p.root, p.root+"/nowhere", 1)
			p.wait = time.Second / 5
		}, `fault session .*`},
		"rights": {func(p *patient) {
			p.t.Cleanup(zktest.Forbid(p.t, zktest.Shared(p.t).Addr(), p.root, zkmodel.NodesRoot))
		}, `fault rights not readable: /nodepool/nodes \(.*\)$`},
		"no certificate": {func(p *patient) { p.more += tls("/nowhere.pem", key); p.wait = time.Second / 5 }, `fault tls certificate /nowhere.pem`},
		"another's key":  {func(p *patient) { p.more += tls(cert, other); p.wait = time.Second / 5 }, `fault tls .*private key does not match`},
		"ended": {func(p *patient) {
			p.more += tls(cert, key)
			p.wait = time.Second / 5
			p.later(100 * 365 * 24 * time.Hour)
		}, `fault tls .* has ended on`},
		"latency":   {func(p *patient) { p.doctor.slow = time.Nanosecond }, `warning latency ZooKeeper takes`},
		"clock":     {func(p *patient) { p.later(10 * time.Minute) }, `fault clock .* differ by 10m0s`},
		"no folder": {func(p *patient) { p.more = anImage + "images-dir: /nowhere/at/all\n" }, `fault folders images-dir: /nowhere/at/all is not there`},
		"no folder, but a file": {func(p *patient) {
			p.more = anImage + "images-dir: " + p.write(p.t, "file", "", 0o600) + "\n"
		}, `fault folders images-dir: .* is no folder`},
		"disk":      {func(p *patient) { p.more += anImage + "build-disk-reserve: 900000G\n" }, `fault disk .* free, less than build-disk-reserve`},
		"builder":   {func(p *patient) { p.more += anImage; p.t.Setenv("PATH", p.dir) }, `fault tools disk-image-create is not on this host: it builds images`},
		"converter": {func(p *patient) { p.more += anImage; p.t.Setenv("PATH", p.dir) }, `fault tools qemu-img is not on this host`},
		"elements":  {func(p *patient) { p.more += anImage + "elements-dir: /nowhere\n" }, `fault elements .*elements-dir`},
		"secrets": {func(p *patient) {
			p.secure = p.write(p.t, "secure.yaml", "webapp: {token: value-of-the-token}\n", 0o644)
		}, `warning secrets .*secure.yaml is open to all`},
		"cloud": {func(p *patient) {
			p.t.Setenv("OS_CLIENT_CONFIG_FILE", p.write(p.t, "clouds.yaml", "clouds: {east: {region_name: r, auth: {auth_url: \""+nobody.URL+
				"/v3\", username: ci, password: secretive, project_name: p, user_domain_name: d, project_domain_name: d}}}\n", 0o600))
			p.more += "labels: [{name: small}]\nproviders: [{name: east, cloud: east, cloud-images: [{name: debian}], " +
				"pools: [{name: main, networks: [public], labels: [{name: small, cloud-image: debian, flavor-name: ci.small}]}]}]\n"
		}, `fault clouds .*providers\[east\].*the cloud cannot be asked`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPatient(t)
			test.fault(p)
			hit := false
			var all strings.Builder
			for _, f := range p.examined(t) {
				line := fmt.Sprintf("%s %s %s", f.Level, f.Check, strings.ReplaceAll(f.What, "\n", "; "))
				hit = hit || regexp.MustCompile("^"+test.want).MatchString(line)
				fmt.Fprintf(&all, "%s -> %s\n", line, f.Remedy)
				if f.Level != Good && f.Remedy == "" {
					t.Errorf("no remedy: %s", line)
				}
			}
			if !hit || strings.Contains(all.String(), "secretive") {
				t.Errorf("no %s in\n%s", test.want, &all)
			}
		})
	}
	t.Run("well", func(t *testing.T) {
		p := newPatient(t)
		for _, f := range p.examined(t) {
			if f.Level != Good {
				t.Errorf("%+v", f)
			}
		}
		if len(p.doctor.found) < 5 {
			t.Errorf("%+v", p.doctor.found)
		}
	})
}

// later has the doctor's clock go ahead.
func (p *patient) later(by time.Duration) {
	p.doctor.now = func() time.Time { return time.Now().Add(by) }
}

// several are three servers, of which one is away.
func (p *patient) several(t *testing.T, away string) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(zktest.StartProxy(t, zktest.Shared(t).Addr()).Addr())
	return p.servers + ", {host: 127.0.0.1, port: " + port + "}, {host: 127.0.0.1, port: " + away + "}"
}
