package configs

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostFiles writes a host's file and a secure file.
func hostFiles(t *testing.T, host, secure string) Options {
	t.Helper()
	dir := t.TempDir()
	opts := Options{HostPath: filepath.Join(dir, "host.yaml"), SecurePath: filepath.Join(dir, "secure.yaml")}
	for path, text := range map[string]string{opts.HostPath: host, opts.SecurePath: secure} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return opts
}

// The annotated sample has every key of a host's file, and no doubt.
func TestHostSample(t *testing.T) {
	opts := Options{HostPath: "host.yaml", Strict: true}
	cfg, err := LoadHost(opts)
	if err != nil || len(cfg.Warnings) > 0 {
		t.Fatalf("%v, %q", err, cfg.Warnings)
	}
	known, used := map[string]bool{}, map[string]bool{}
	l := newLoader(opts)
	l.watch = &observer{
		known: func(kind, key string) { known[kind+" "+key] = true },
		used:  func(kind, key string) { used[kind+" "+key] = true },
	}
	content, err := l.read("host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	l.decodeHost("host.yaml", content)
	for key := range known {
		if strings.HasPrefix(key, "host file ") && !used[key] {
			t.Errorf("the sample lacks %s", key)
		}
	}
	if len(known) < 13 {
		t.Errorf("only %d keys are known", len(known))
	}
}

// A host's file wins over what is pushed; where ZooKeeper is only it says, and variables are
// the host's. It would catch a pushed file that moves a host to another ZooKeeper.
func TestHostWins(t *testing.T) {
	opts := hostFiles(t, "zookeeper-servers: [{host: ours, port: 1}]\nimages-dir: /ours\nfleet-dir: /kept\n", "{}")
	opts.Env = environment(map[string]string{"NODEPOOL_ME": "first"})
	opts.Text = []byte("zookeeper-servers: [{host: theirs}]\nzookeeper-tls: {cert: a, key: b, ca: c}\nimages-dir: /theirs\nbuild-log-dir: /logs/%(NODEPOOL_ME)\n" +
		"diskimages: [{name: debian}]\n")
	cfg, err := Load("zk:version-1", opts)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cfg.ZooKeeper.Servers, []string{"ours:1"}) || cfg.ZooKeeper.TLS != nil || cfg.ImagesDir != "/ours" ||
		cfg.BuildLogDir != "/logs/first" || cfg.FleetDir != "/kept" || len(cfg.DiskImages) != 1 {
		t.Errorf("loaded %+v", cfg)
	}
	if text := strings.Join(cfg.Warnings, "\n"); strings.Count(text, "has no effect here") != 2 {
		t.Errorf("warnings: %s", text)
	}
	if files := cfg.Files(); slices.Contains(files, "zk:version-1") || cfg.DigestNow() != cfg.Digest() {
		t.Errorf("it looks at %q", files)
	}
	for want, unit := range map[string]string{"/var/lib/poolkeeper": "", "/var/lib/unit": "/var/lib/unit:/var/lib/other"} {
		opts := hostFiles(t, "zookeeper-servers: [{host: ours}]\n", "{}")
		opts.Env = environment(map[string]string{"STATE_DIRECTORY": unit})
		if cfg, err := LoadHost(opts); err != nil || cfg.FleetDir != want {
			t.Errorf("with %q: %+v, %v", unit, cfg, err)
		}
	}
	for name, host := range map[string]string{"no servers": "images-dir: /ours\n", "nothing": "", "no YAML": "{", "wrong": "zookeeper-servers: many\n"} {
		opts := hostFiles(t, host, "{}")
		if _, err := LoadHost(opts); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "host.yaml") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Who may push is read with the secure file and from it alone; what is no key is told, and
// not quoted, since it may be the private half.
func TestSigners(t *testing.T) {
	key, _, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	opts := hostFiles(t, "zookeeper-servers: [{host: ours}]\n", "config-signers: [\""+SignerText(key)+"\"]\n")
	cfg, err := LoadHost(opts)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := Signers(opts.SecurePath)
	if err != nil || len(alone) != 1 || !alone[0].Equal(key) || len(cfg.ConfigSigners) != 1 || !cfg.ConfigSigners[0].Equal(key) {
		t.Errorf("%v, %v, %v", alone, cfg.ConfigSigners, err)
	}
	for _, bad := range []string{"[ed25519:AAAA]", "[POOLKEEPER-CONFIG-KEY:c2VjcmV0]", "[{}]", "word"} {
		opts := hostFiles(t, "zookeeper-servers: [{host: ours}]\n", "config-signers: "+bad+"\n")
		if _, err := Signers(opts.SecurePath); !errors.Is(err, ErrInvalid) || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if none, err := Signers(hostFiles(t, "", "webapp: {token: 0123456789abcdef}\n").SecurePath); none != nil || err != nil {
		t.Errorf("without a list: %v, %v", none, err)
	}
}

// An image with labels is built on hosts that have all of them; a child has its parent's unless
// it says otherwise. The host's own file wins over what is pushed.
func TestHostLabels(t *testing.T) {
	load := func(host, image string) (*Config, error) {
		opts := hostFiles(t, "zookeeper-servers: [{host: ours}]\n"+host, "{}")
		opts.Text = []byte("images-dir: d\nhost-labels: [pushed]\ndiskimages:\n- {name: plain}\n- {name: labelled, host-labels: " + image + "}\n" +
			"- {name: child, parent: labelled}\n- {name: free, parent: labelled, host-labels: []}\n")
		return Load("zk:version-1", opts)
	}
	for host, want := range map[string]string{
		"":                                 "plain free",
		"host-labels: []\n":                "plain free",
		"host-labels: [ssd]\n":             "plain free",
		"host-labels: [big, x, ssd]\n":     "plain labelled child free",
		"only: ['*e*']\nhost-labels: []\n": "free",
	} {
		cfg, err := load(host, "[ssd, big]")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, image := range cfg.DiskImages {
			if cfg.Selects(image.Name) {
				got = append(got, image.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q selects %q, want %s", host, got, want)
		}
	}
	if cfg, err := load("", "[pushed]"); err != nil || !cfg.Selects("labelled") || cfg.Unselected("plain") != "" {
		t.Errorf("labels for all: %v", err)
	}
	cfg, err := load("host-labels: [ssd]\n", "[ssd, big]")
	if err != nil || cfg.Unselected("labelled") != "it is for hosts with host-labels big, which this one does not have" {
		t.Errorf("why not: %q, %v", cfg.Unselected("labelled"), err)
	}
	for bad, where := range map[string]string{"host-labels: [a b]\n": "host.yaml:2: host-labels", "host-labels: big\n": "host.yaml:2: host-labels"} {
		if _, err := load(bad, "[ssd]"); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), where) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// A selection is of names by patterns; one that selects nothing by mistake is told.
func TestOnly(t *testing.T) {
	load := func(only string) (*Config, error) {
		opts := hostFiles(t, "zookeeper-servers: [{host: ours}]\nonly: "+only+"\n", "{}")
		opts.Text = []byte("images-dir: d\ndiskimages: [{name: debian-12}, {name: debian-13}, {name: fedora}]\n")
		return Load("zk:version-1", opts)
	}
	cfg, err := load("[debian-*, suse]")
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.Selects("debian-13") || cfg.Selects("fedora") || !cfg.HasImage("fedora") || len(cfg.DiskImages) != 3 || len(cfg.Frozen) > 0 {
		t.Errorf("selects %q of %+v", cfg.Only, cfg.DiskImages)
	}
	if text := strings.Join(cfg.Warnings, "\n"); strings.Count(text, "no image is called") != 1 || !strings.Contains(text, `"suse"`) {
		t.Errorf("warnings: %s", text)
	}
	for _, bad := range []string{"[]", "debian", "['[']", "{a: b}"} {
		if _, err := load(bad); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "host.yaml:2: only") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if cfg := (&Config{}); !cfg.Selects("any") {
		t.Error("without the key not all are selected")
	}
}
