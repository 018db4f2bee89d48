package doctor

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
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
	p.runs(t, &zkmodel.Component{Kind: builder, State: zkmodel.ComponentRunning})
	p.runs(t, &zkmodel.Component{Kind: launcher, State: zkmodel.ComponentRunning})
	return p
}

// runs has a daemon of this host, or a pool, say of itself what c has; it takes the place of the one before.
func (p *patient) runs(t *testing.T, c *zkmodel.Component) {
	t.Helper()
	name, _, err := app.Hostnames(t.Context())
	if c.Hostname == "" {
		c.Hostname = name
	}
	data, wrong := c.Encode()
	if err := errors.Join(err, wrong); err != nil {
		t.Fatal(err)
	}
	p.put(t, zkmodel.ComponentsRoot+"/"+c.Kind+"/one0000000000", data)
}

// put writes a znode, or without data deletes it.
func (p *patient) put(t *testing.T, path string, data []byte) {
	t.Helper()
	p.tree(t, path)
	p.within(t, func(ctx context.Context, s *recipe.Session) error {
		if data == nil {
			return s.Delete(ctx, path, recipe.AnyVersion)
		}
		_, err := s.Set(ctx, path, data, recipe.AnyVersion)
		return err
	})
}

// tree makes znodes.
func (p *patient) tree(t *testing.T, paths ...string) {
	t.Helper()
	p.within(t, func(ctx context.Context, s *recipe.Session) (err error) {
		for _, path := range paths {
			err = errors.Join(err, s.EnsurePath(ctx, path))
		}
		return err
	})
}

// within does something with the patient's tree.
func (p *patient) within(t *testing.T, do func(context.Context, *recipe.Session) error) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: p.root})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	session, err := client.Session(t.Context())
	if err == nil {
		err = do(t.Context(), session)
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

const aPool = "labels: [{name: small}]\nproviders: [{name: north, driver: fake, pools: [{name: main, labels: [{name: small, cloud-image: debian}]}], cloud-images: [{name: debian}]}]\n"

const someSlots = "labels: [{name: small}]\nproviders: [{name: slots, driver: metastatic, pools: [{name: main, labels: [{name: small, backing-label: large}]}]}]\n"

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
		"no certificate":     {func(p *patient) { p.more += tls("/nowhere.pem", key); p.wait = time.Second / 5 }, `fault tls certificate /nowhere.pem`},
		"another's key":      {func(p *patient) { p.more += tls(cert, other); p.wait = time.Second / 5 }, `fault tls .*private key does not match`},
		"left backing nodes": {func(p *patient) { p.more += someSlots; p.backs("slots"); p.backs("gone"); p.backs("gone") }, `warning backing nodes provider gone is not in this configuration, and nodes are locked for its slots: \d{10}, \d{10}$`},
		"backing nodes of what has no slots any more": {func(p *patient) { p.more += p.guests("auto"); p.backs("here") }, `warning backing nodes provider here has no slots in this configuration, and nodes are locked for its slots: \d{10}$`},
		"backing nodes":            {func(p *patient) { p.more += someSlots; p.backs("slots") }, `ok backing nodes 1 nodes are kept for slots`},
		"backing nodes of another": {func(p *patient) { p.backs("gone"); p.serves("gone") }, `ok backing nodes 1 nodes are kept for slots`},
		"ended": {func(p *patient) {
			p.more += tls(cert, key)
			p.wait = time.Second / 5
			p.later(100 * 365 * 24 * time.Hour)
		}, `fault tls .* has ended on`},
		"ends soon": {func(p *patient) { p.more += tls(cert, key); p.wait = time.Second / 5 }, `warning tls .* ends on \d{4}-`},
		"kvm":       {func(p *patient) { p.doctor.host = launcher; p.more += p.guests("tcg") }, `fault kvm guests of here run with tcg\S*, slowly: the configuration says so`},
		"kvm, untried": {func(p *patient) {
			p.doctor.host = launcher
			p.more += p.guests("auto")
		}, `fault kvm guests of here run with auto, slowly: (nobody has found out yet|it cannot be told)`},
		"tools of guests": {func(p *patient) {
			p.doctor.host = launcher
			p.more += p.guests("tcg")
			p.t.Setenv("PATH", p.dir)
		}, `fault tools genisoimage is not on this host: it tells guests who they are`},
		"no daemon":      {func(p *patient) { p.put(p.t, zkmodel.ComponentsRoot+"/launcher/one0000000000", nil); p.more += aPool }, `fault daemons No launcher is running: requests are not served`},
		"no daemon here": {func(p *patient) { p.runs(p.t, &zkmodel.Component{Kind: builder, Hostname: "elsewhere"}) }, `fault daemons no builder on this host is registered`},
		"withdrawn":      {func(p *patient) { p.runs(p.t, &zkmodel.Component{Kind: builder, Reason: "the disk is full"}) }, `fault daemons The builder on .* builds nothing: the disk is full`},
		"provider unusable": {func(p *patient) {
			p.runs(p.t, &zkmodel.Component{Kind: builder, Troubles: map[string]string{"north": "503"}})
		}, `fault daemons Provider north cannot be used by the builder on .*: 503`},
		"unreadable daemon": {func(p *patient) { p.put(p.t, zkmodel.ComponentsRoot+"/launcher/one0000000000", []byte("{")) }, `fault daemons What launcher one0000000000 says of itself cannot be read`},
		"latency":           {func(p *patient) { p.doctor.slow = time.Nanosecond }, `warning latency ZooKeeper takes`},
		"clock":             {func(p *patient) { p.later(10 * time.Minute) }, `fault clock .* differ by 10m0s`},
		"no folder":         {func(p *patient) { p.more = anImage + "images-dir: /nowhere/at/all\n" }, `fault folders images-dir: /nowhere/at/all is not there`},
		"no folder, but a file": {func(p *patient) {
			p.more = anImage + "images-dir: " + p.write(p.t, "file", "", 0o600) + "\n"
		}, `fault folders images-dir: .* is no folder`},
		"disk":      {func(p *patient) { p.more += anImage + "build-disk-reserve: 900000G\n" }, `fault disk the disk is full: .* left, build-disk-reserve is`},
		"builder":   {func(p *patient) { p.more += anImage; p.t.Setenv("PATH", p.dir) }, `fault tools disk-image-create is not on this host: it builds images`},
		"converter": {func(p *patient) { p.more += anImage; p.t.Setenv("PATH", p.dir) }, `fault tools qemu-img is not on this host`},
		"elements":  {func(p *patient) { p.more += anImage + "elements-dir: /nowhere\n" }, `fault elements .*elements-dir`},
		"secrets": {func(p *patient) {
			p.secure = p.write(p.t, "secure.yaml", "webapp: {token: value-of-the-token}\n", 0o644)
		}, `warning secrets .*secure.yaml is open to all`},
		"cloud": {func(p *patient) {
			p.cloudOver(nobody, "username: ci, password: secretive, project_name: p, user_domain_name: d, project_domain_name: d")
		}, `fault clouds .*providers\[east\].*the cloud cannot be asked`},
		"cloud's certificate": {func(p *patient) {
			p.cloudOver(aKeystone(p.t), "password: secretive, project_name: p, username: ci")
			p.later(200 * 365 * 24 * time.Hour)
		}, `fault tls provider east: server 127.0.0.1:\d+ has ended on 2084-`},
		"credential": {func(p *patient) {
			p.cloudOver(aKeystone(p.t), "application_credential_id: c1, application_credential_secret: secretive")
		}, `warning credentials provider east: credential nodes ends on \d{4}-`},
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

// cloudOver has the patient use a cloud.
func (p *patient) cloudOver(server *httptest.Server, auth string) {
	p.t.Helper()
	ca := ""
	if c := server.Certificate(); c != nil {
		ca = "cacert: " + p.write(p.t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})), 0o600) + ", "
	}
	p.t.Setenv("OS_CLIENT_CONFIG_FILE", p.write(p.t, "clouds.yaml", "clouds: {east: {region_name: r, "+ca+"auth: {auth_url: \""+server.URL+"/v3\", "+auth+"}}}\n", 0o600))
	p.more += "labels: [{name: small}]\nproviders: [{name: east, cloud: east, cloud-images: [{name: debian}], " +
		"pools: [{name: main, networks: [public], labels: [{name: small, cloud-image: debian, flavor-name: ci.small}]}]}]\n"
}

// aKeystone lets everybody in, knows when the credential nodes ends, and has no other service.
func aKeystone(t *testing.T) *httptest.Server {
	t.Helper()
	var mux http.ServeMux
	server := httptest.NewTLSServer(&mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Subject-Token", "token-of-the-test")
		w.WriteHeader(http.StatusCreated)
		endpoint := `"endpoints": [{"interface": "public", "region": "r", "region_id": "r", "url": "` + server.URL + `/no"}]`
		fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "user": {"id": "u"}, "application_credential": {"id": "c1", "name": "nodes"},
			"catalog": [{"type": "compute", %s}, {"type": "image", %s}]}}`, endpoint, endpoint)
	})
	mux.HandleFunc("GET /v3/users/u/application_credentials/c1", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"application_credential": {"expires_at": %q}}`, time.Now().Add(20*24*time.Hour).UTC().Format("2006-01-02T15:04:05.000000"))
	})
	return server
}

// backs has a node be in use for slots of a provider.
func (p *patient) backs(provider string) {
	p.t.Helper()
	n := zkmodel.Node{State: zkmodel.NodeInUse, Provider: "cloud", UserData: (&zkmodel.Backing{Provider: provider, Label: "small", Slots: make([]zkmodel.BackingSlot, 2)}).Data().Value()}
	data, err := n.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	p.creates(zkmodel.NodesRoot, data)
}

// serves has a launcher serve a provider.
func (p *patient) serves(provider string) {
	p.t.Helper()
	c := zkmodel.Component{Kind: zkmodel.KindPool, ID: "theirs", Hostname: "elsewhere", ProviderName: provider, PoolName: "main", State: "running"}
	data, err := c.Encode()
	if err != nil {
		p.t.Fatal(err)
	}
	p.creates(zkmodel.ComponentsRoot+"/"+zkmodel.KindPool, data)
}

// creates makes a record that stays.
func (p *patient) creates(folder string, data []byte) {
	p.t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(p.t).Addr()}, Chroot: p.root})
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	session, err := client.Session(p.t.Context())
	if err == nil {
		err = session.EnsurePath(p.t.Context(), folder)
	}
	if err == nil {
		_, err = session.Create(p.t.Context(), folder+"/", data, recipe.Sequential)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// guests is a provider whose nodes run on this host.
func (p *patient) guests(accel string) string {
	return "providers: [{name: here, driver: local, dir: " + p.dir + "/guests, accel: " + accel + "}]\n"
}

// A folder of another user is found, also where the tests run as root, who may write everywhere.
// Mistake: rights that are looked at by the mode, or by the doctor's user being the owner.
func TestFolderOfAnother(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o555)) //nolint:gosec // as a folder of a host is
	if err != nil {
		t.Fatal(err)
	}
	d := &doctor{host: builder, now: time.Now}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with this
		if os.Geteuid() == 0 {
			const nobody = 65534
			if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); no != 0 {
				t.Errorf("become another user: %v", no)
				return
			}
		}
		d.folders(&configs.Config{ImagesDir: dir, DiskImages: []configs.DiskImage{{Name: "debian"}}})
	}()
	<-done
	want := Finding{"folders", Fault, "images-dir: " + dir + " cannot be written to by this user", "give it to the builder's user, or run doctor as that one"}
	if len(d.found) == 0 || d.found[0] != want {
		t.Errorf("%+v", d.found)
	}
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
