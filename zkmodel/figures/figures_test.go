package figures

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// tree does not change by itself.
type tree struct {
	images   []*zkmodel.Image
	pools    []*zkmodel.Component
	pauses   []*zkmodel.ProviderPause
	unsynced error
	unlisted map[string]error
}

func (t *tree) Images() []*zkmodel.Image                 { return t.images }
func (t *tree) ProviderPauses() []*zkmodel.ProviderPause { return t.pauses }
func (t *tree) Components(string) []*zkmodel.Component   { return t.pools }
func (t *tree) Listed(path string) error                 { return t.unlisted[path] }
func (t *tree) WaitSynced(context.Context) error         { return t.unsynced }

// upload is an upload to a provider.
func upload(provider string, state zkmodel.UploadState, failures int) *zkmodel.Upload {
	return &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Provider: provider, ID: "1"}, State: state, StateTime: 70,
		ExternalID: zkmodel.TextValue("id"), Failures: failures,
	}
}

// build is a build with uploads.
func build(id string, state zkmodel.BuildState, failures int, uploads ...*zkmodel.Upload) *zkmodel.BuildTree {
	b := &zkmodel.BuildTree{Build: &zkmodel.Build{ID: id, State: state, StateTime: 50, Failures: failures}, Uploads: uploads}
	for _, u := range uploads {
		u.Build = id
	}
	return b
}

// told is what a collector tells: "name label=value…" without what is common to all.
func told(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			line := strings.TrimPrefix(family.GetName(), "poolkeeper_")
			for _, pair := range m.GetLabel() {
				line += " " + pair.GetName() + "=" + pair.GetValue()
			}
			lines[line] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return lines
}

// site is a configuration of three images in two providers.
func site() *configs.Config {
	cfg := &configs.Config{DiskImages: []configs.DiskImage{{Name: "a"}, {Name: "b"}, {Name: "c", Pause: true}}}
	for _, name := range []string{"north", "south"} {
		cfg.Providers = append(cfg.Providers, configs.Provider{Name: name, DiskImages: []configs.ProviderImage{{Name: "a"}, {Name: "b"}, {Name: "c"}}})
	}
	return cfg
}

// What is in service is told by image and provider, from the tree alone. Mistakes: an older
// upload hidden by a newer one that failed; a build that serves in one provider taken for
// one that serves in all; an image that nobody can read told as missing, which wakes people,
// and so does one that was just added, when it is told like one that has lost what served.
func TestWhatIsInService(t *testing.T) {
	seen := &tree{images: []*zkmodel.Image{
		{Name: "a", Builds: []*zkmodel.BuildTree{
			build("0", zkmodel.BuildReady, 0, upload("south", zkmodel.UploadUploading, 0)),
			build("1", zkmodel.BuildReady, 0, upload("north", zkmodel.UploadReady, 0), upload("south", zkmodel.UploadReady, 0)),
			build("2", zkmodel.BuildReady, 0, upload("north", zkmodel.UploadReady, 0), upload("south", zkmodel.UploadFailed, 3)),
			build("3", zkmodel.BuildFailed, 2),
			build("4", zkmodel.BuildBuilding, 0),
		}},
		{Name: "b", Unread: errors.New("no right")},
	}}
	seen.images[0].Builds[2].StateTime = 60
	seen.pauses = []*zkmodel.ProviderPause{{Provider: "north"}, {Provider: "south", Pause: zkmodel.Pause{Until: 5}}} // the second one is over
	c := New(Source{Config: site, Tree: seen})
	got := told(t, c)
	for line, want := range map[string]float64{
		"image_ready image=a provider=north":                   1,
		"image_ready image=a provider=south":                   1,
		"image_built_timestamp_seconds image=a provider=north": 60,
		"image_built_timestamp_seconds image=a provider=south": 50,
		"image_ready_timestamp_seconds image=a provider=south": 70,
		"image_build_failures image=a":                         2,
		"image_builds image=a":                                 2,
		"image_builds image=c":                                 0,
		"image_upload_failures image=a provider=north":         0,
		"image_upload_failures image=a provider=south":         3,
		"image_ready image=c provider=south":                   0,
		"image_paused image=a":                                 0,
		"image_paused image=c":                                 1,
		"components kind=builder":                              0,
		"provider_paused provider=north":                       1,
		"provider_paused provider=south":                       0,
	} {
		if value, there := got[line]; !there || value != want {
			t.Errorf("%s: %v (there: %t), want %v", line, value, there, want)
		}
	}
	for line := range got {
		if strings.Contains(line, "image=b provider") || strings.Contains(line, "timestamp_seconds image=c") {
			t.Errorf("%s is told, which nobody knows", line)
		}
	}
	seen.unlisted = map[string]error{zkmodel.ImagesRoot: errors.New("no right"), zkmodel.ComponentsRoot: errors.New("no right")}
	for line := range told(t, c) {
		if strings.HasPrefix(line, "image") || strings.HasPrefix(line, "components") {
			t.Errorf("%s is told of a tree that cannot be read", line)
		}
	}
	seen.unlisted = nil
	if seen.unsynced = errors.New("no session"); len(told(t, c)) != len(got) {
		t.Error("what was seen is not told any more while ZooKeeper is away")
	}
	if _, there := told(t, New(Source{Config: site, Tree: seen}))["image_ready image=c provider=south"]; there {
		t.Error("a tree that was never read is told of")
	}
}

// A reload that fails is told until one does well, with the time of the last good one.
func TestReloads(t *testing.T) {
	r := NewReloads(time.Unix(5, 0))
	c := New(Source{Config: site, Tree: &tree{}, Reloads: r})
	expect := func(ok, at float64) {
		t.Helper()
		got := told(t, c)
		if got["configuration_last_reload_successful"] != ok || got["configuration_last_reload_success_timestamp_seconds"] != at {
			t.Errorf("told %v", got)
		}
	}
	expect(1, 5)
	r.Note(time.Unix(6, 0), errors.New("no YAML"))
	expect(0, 5)
	r.Note(time.Unix(7, 0), nil)
	expect(1, 7)
	(*Reloads)(nil).Note(time.Unix(8, 0), nil)
}

// What is left out as a sealed value does not open is counted by itself, too: an alert of its own rings.
func TestSecretsThatCannotBeRead(t *testing.T) {
	cfg := &configs.Config{Frozen: []configs.Frozen{
		{Kind: "provider", Name: "north", Why: "nodepool.yaml:7: the " + configs.Unopened + ": no key opens it"}, {Kind: "label", Name: "small", Why: "unknown key"},
	}}
	got := told(t, New(Source{Config: func() *configs.Config { return cfg }, Tree: &tree{}}))
	if got["configuration_frozen"] != 2 || got["configuration_secrets_unreadable"] != 1 {
		t.Errorf("told %v", got)
	}
}

// A file's first end counts, also after it was replaced, of a bundle of CAs the last: an old
// one that stays in it would ring for ever. A file that is no certificate, or
// is not there, is not told of: 0 would be an alarm.
func TestCertificatesEnd(t *testing.T) {
	dir := t.TempDir()
	cert, ca := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "ca.pem")
	cfg := site()
	cfg.ZooKeeper.TLS = &configs.ZooKeeperTLS{Cert: cert, CA: ca}
	write := func(path string, ends ...int64) {
		t.Helper()
		var text []byte
		for _, end := range ends {
			text = append(text, certificateOf(t, time.Unix(end, 0))...)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(cert, 4000, 3000)
	c := New(Source{Config: func() *configs.Config { return cfg }, Tree: &tree{}})
	of := func(path string) string {
		return "certificate_expiry_timestamp_seconds file=" + path + " use=zookeeper"
	}
	got := told(t, c)
	if _, there := got[of(ca)]; got[of(cert)] != 3000 || there {
		t.Errorf("told %v", got)
	}
	write(cert, 5000)
	write(ca)
	got = told(t, c)
	if _, there := got[of(ca)]; got[of(cert)] != 5000 || there {
		t.Errorf("told %v", got)
	}
	write(ca, 100, 9000, 200)
	if got = told(t, c); got[of(ca)] != 9000 {
		t.Errorf("told %v", got)
	}
	cfg.ZooKeeper.TLS.CA = cert
	if got = told(t, c); got[of(cert)] != 5000 {
		t.Errorf("told %v", got)
	}
}

func certificateOf(t *testing.T, end time.Time) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Mistakes: a page for an image that was just added and whose build waits for a worker; none
// for one whose build is never sent.
func TestBuildsThatWaitForAWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age     time.Duration
		uploads []*zkmodel.Upload
		want    int
	}{
		"just built":      {time.Hour, nil, 0},
		"built long ago":  {7 * time.Hour, nil, 1},
		"its upload ends": {time.Minute, []*zkmodel.Upload{upload("north", zkmodel.UploadFailed, 1)}, 1},
		"it is sent":      {7 * time.Hour, []*zkmodel.Upload{upload("north", zkmodel.UploadUploading, 0)}, 0},
	} {
		b := build("1", zkmodel.BuildReady, 0, c.uploads...)
		b.StateTime = zkmodel.EpochOf(time.Now().Add(-c.age))
		if got := builds(&zkmodel.Image{Builds: []*zkmodel.BuildTree{b}}, time.Now()); got != c.want {
			t.Errorf("%s: %d builds, want %d", name, got, c.want)
		}
	}
}

// Mistakes: a provider whose last launcher is gone, of which nobody tells as its figures went
// with it; one of a record that nobody can read, taken for gone.
func TestPoolsOfProviders(t *testing.T) {
	t.Parallel()
	config := func() *configs.Config {
		return &configs.Config{Providers: []configs.Provider{
			{Name: "north", Pools: []configs.Pool{{Name: "main"}}}, {Name: "south", Pools: []configs.Pool{{Name: "main"}}}, {Name: "images"},
		}}
	}
	seen := &tree{pools: []*zkmodel.Component{{ProviderName: "north"}, {ProviderName: "north"}, {ProviderName: "another's"}}}
	pools := func() map[string]float64 {
		list := map[string]float64{}
		for line, n := range told(t, New(Source{Config: config, Tree: seen})) {
			if strings.HasPrefix(line, "provider_pools") {
				list[line] = n
			}
		}
		return list
	}
	if got := pools(); len(got) != 2 || got["provider_pools provider=north"] != 2 || got["provider_pools provider=south"] != 0 {
		t.Errorf("told %v", got)
	}
	seen.pools = append(seen.pools, &zkmodel.Component{Broken: errors.New("no JSON")})
	if got := pools(); len(got) != 0 {
		t.Errorf("told %v while a record cannot be read", got)
	}
}
