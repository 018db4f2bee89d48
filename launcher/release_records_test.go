package launcher_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher"
	"poolkeeper/test/release"
	"poolkeeper/test/script"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// recorded is a znode of a site of the first release. One that lived with a session belongs to
// its daemons.
type recorded struct {
	Path  string `json:"path"`
	Data  string `json:"data,omitempty"`
	Lives bool   `json:"ephemeral,omitempty"`
}

// recordsFile are those of a site of recordedSite.
const recordsFile = "testdata/first-release.json"

// recordedSite has two images in two providers, and a label in stock.
const recordedSite = `
zookeeper-servers: [{host: 127.0.0.1}]
labels: [{name: small, min-ready: 1}, {name: large}]
diskimages: [{name: debian, formats: [qcow2], dib-cmd: DIB, rebuild-age: 0}, {name: fedora, formats: [qcow2], dib-cmd: DIB, rebuild-age: 0}]
providers:
  - &north
    name: north
    driver: fake
    cloud: fake
    diskimages: [{name: debian}, {name: fedora}]
    pools: [{name: main, max-servers: 5, labels: [{name: small, diskimage: debian, min-ram: 1}, {name: large, diskimage: fedora, min-ram: 1}]}]
  - <<: *north
    name: south
`

// TestRecordRelease writes recordsFile anew, where RECORD_RELEASE is set: from a builder and a
// launcher of the first release, one node in the hands of a job.
func TestRecordRelease(t *testing.T) {
	if os.Getenv("RECORD_RELEASE") == "" {
		t.Skip("it writes a file of the repository; RECORD_RELEASE=1 has it do so")
	}
	dir := t.TempDir()
	yaml := strings.ReplaceAll(recordedSite, "DIB", script.Write(t, "dib", `while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done; printf 'QFI\373' >$out.qcow2`))
	s := newSite(t, yaml)
	binary, err := buildRelease()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "builder.yaml")
	servers := fmt.Sprintf("zookeeper-servers: [{host: 127.0.0.1, port: %s, chroot: %s}]\nimages-dir: %[3]s/images\nbuild-log-dir: %[3]s\n", portOf(t), s.root, dir)
	if err := os.WriteFile(file, []byte(strings.Replace(yaml, "zookeeper-servers: [{host: 127.0.0.1}]\n", servers, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	builder := exec.CommandContext(t.Context(), binary, "-c", file, "builder", "--no-webapp")
	builder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "images"), 0o700), builder.Start()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = builder.Process.Kill(); _ = builder.Wait() }()
	zktest.Eventually(t, func() bool {
		uploads := 0
		for _, name := range []string{"debian", "fedora"} {
			if image, err := s.store.Image(t.Context(), name); err == nil {
				for _, b := range image.Builds {
					uploads += len(slices.DeleteFunc(slices.Clone(b.Uploads), func(u *zkmodel.Upload) bool { return u.State != zkmodel.UploadReady }))
				}
			}
		}
		return uploads == 4
	}, "all is uploaded")
	end := s.launchRelease(yaml)
	defer end(os.Kill)
	if out := s.wait(s.submit(wish("small", "large"))); out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	zktest.Eventually(t, func() bool {
		ready := 0
		nodes, err := s.store.Nodes(t.Context())
		for _, n := range nodes {
			if n.State == zkmodel.NodeReady {
				ready++
			}
		}
		return err == nil && ready == 3
	}, "the nodes of a job, and one in stock")
	var all []recorded
	var walk func(at string)
	walk = func(at string) {
		data, stat, err := s.store.Session().Get(t.Context(), at)
		if errors.Is(err, recipe.ErrNoNode) {
			return
		}
		names, err2 := s.store.Session().Children(t.Context(), at)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		all = append(all, recorded{Path: at, Data: string(data), Lives: stat.EphemeralOwner != 0})
		slices.Sort(names)
		for _, name := range names {
			walk(at + "/" + name)
		}
	}
	walk("/nodepool")
	walk("/poolkeeper")
	text, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(recordsFile, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func portOf(t *testing.T) string {
	t.Helper()
	_, port, _ := strings.Cut(zktest.Shared(t).Addr(), ":")
	return port
}

// replay writes the records of a site of the first release into a tree. Its daemons live until
// the session ends.
func (s *site) replay() (end func(), records []recorded) {
	s.t.Helper()
	text, err := os.ReadFile(recordsFile)
	if err == nil {
		err = json.Unmarshal(text, &records)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	client := s.dial(s.store.Session().Timeout())
	session, err := client.Session(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, r := range records {
		mode := recipe.Persistent
		if r.Lives {
			mode = recipe.Ephemeral
		}
		_, there, err := session.Exists(s.t.Context(), r.Path)
		if err == nil && !there {
			_, err = session.Create(s.t.Context(), r.Path, []byte(r.Data), mode)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
	return client.Close, records
}

// A launcher of ours comes to a site of the first release, as its records tell, which stand in for
// its program where the history is not at hand (release.Build). Mistakes: a record of that
// release that ours cannot read, or takes for nobody's; a node of a job that is taken away; a
// duty that two have; one that nobody takes over.
func TestBesideRecordsOfFirstRelease(t *testing.T) {
	t.Parallel()
	s := newSite(t, strings.ReplaceAll(recordedSite, "DIB", "disk-image-create"))
	end, records := s.replay()
	registry := prometheus.NewRegistry()
	s.launch(func(d *launcher.Deps) { d.Registerer = registry })
	for _, label := range []string{"small", "large"} {
		out := s.wait(s.submit(wish(label)))
		if out.State != "fulfilled" {
			t.Fatalf("%s: %+v", label, out)
		}
	}
	duty := func() (n float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == "poolkeeper_launcher_duty" && m.GetLabel()[0].GetValue() != "offers" { // which that release does not know
					n += m.GetGauge().GetValue()
				}
			}
		}
		return n
	}
	if n := duty(); n > 0 {
		t.Errorf("beside the launcher of %s ours has %v duties that are its own", release.First, n)
	}
	held := map[string]string{}
	for _, r := range records {
		id, node := strings.CutPrefix(r.Path, zkmodel.NodesRoot+"/")
		if !node || strings.Contains(id, "/") || r.Data == "" {
			continue
		}
		now, _, err := s.store.Session().Get(t.Context(), r.Path)
		if err != nil {
			t.Errorf("node %s of %s: %v", id, release.First, err)
		}
		var was, is map[string]any
		if json.Unmarshal([]byte(r.Data), &was) == nil && json.Unmarshal(now, &is) == nil && was["allocated_to"] != nil {
			held[id] = r.Data
			if is["allocated_to"] != was["allocated_to"] || is["state"] != was["state"] || is["external_id"] != was["external_id"] {
				t.Errorf("node %s of a job was %s, is %s", id, r.Data, now)
			}
		}
	}
	if len(held) != 2 {
		t.Errorf("the records have nodes of jobs %v, want 2", slices.Collect(maps.Keys(held)))
	}
	for _, r := range records { // builds and uploads stay as they were
		if base := path.Base(path.Dir(r.Path)); r.Data != "" && !r.Lives && (base == "builds" || base == "images") && strings.HasPrefix(r.Path, zkmodel.ImagesRoot) {
			if now, _, err := s.store.Session().Get(t.Context(), r.Path); err != nil || string(now) != r.Data {
				t.Errorf("%s is %s, %v", r.Path, now, err)
			}
		}
	}
	end()
	zktest.Eventually(t, func() bool { return duty() == 4 }, "ours takes over: tidy, two providers, the stock of one label")
}
