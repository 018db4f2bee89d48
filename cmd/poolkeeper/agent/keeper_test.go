package agent

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/admin"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/configs/guard"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// heir is a daemon that remembers the configuration that it goes on with.
type heir struct{ cfg *configs.Config }

func (h *heir) Reload(cfg *configs.Config) error {
	h.cfg = cfg
	return nil
}

// ward is a keeper with its daemon and its log.
type ward struct {
	*keeper
	heir *heir
	log  *diary
}

// newWard makes the keeper of a launcher of a host that begins with a file.
func newWard(t *testing.T, s site, host, text string) ward {
	t.Helper()
	log := &diary{}
	s.cfg, s.log, s.guarded = readConfig(t, text), hclog.New(&hclog.LoggerOptions{Output: log}), &guarded{kind: kindLauncher, host: host}
	h := &heir{cfg: s.cfg}
	w := ward{newKeeper(s, h), h, log}
	w.key.File = "/etc/nodepool/nodepool.yaml"
	if err := w.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w ward) reads(t *testing.T, text string) {
	t.Helper()
	if err := w.reload(t.Context(), readConfig(t, text)); err != nil {
		t.Fatal(err)
	}
}

func readConfig(t *testing.T, text string) *configs.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	if err := os.WriteFile(file, []byte("zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := configs.Load(file, configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

const (
	threeLabels = "labels: [{name: one}, {name: two}, {name: three}]\n"
	twoLabels   = "labels: [{name: one}, {name: two}]\n"
	otherLabels = "labels: [{name: one}, {name: two}, {name: four}]\n"
	oneLabel    = "labels: [{name: one}]\n"
)

func (w ward) stored(t *testing.T) *zkmodel.Store {
	t.Helper()
	session, err := w.s.client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return zkmodel.NewStore(session, nil)
}

// accept does what config-accept does for a file.
func (w ward) accept(t *testing.T, text string) {
	t.Helper()
	a := guard.Acceptance{File: guard.Of(readConfig(t, text)).Digest()}
	store := w.stored(t)
	all, _, err := admin.GuardedItems(t.Context(), &app.App{Stderr: w.log}, store)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.File == a.File {
			a.Items = append(a.Items, one.Item)
		}
	}
	data, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Accept(t.Context(), a.File, data); err != nil {
		t.Fatal(err)
	}
}

// What is accepted of one host's file is accepted of another's, whether that is the
// same file or lacks the same item, while it runs and when it starts later; what else
// it lacks is guarded.
func TestAcceptedForTheFleet(t *testing.T) {
	s := newSite(t)
	one, two, three := newWard(t, s, "one", threeLabels), newWard(t, s, "two", threeLabels), newWard(t, s, "three", threeLabels)
	newWard(t, s, "late", threeLabels)
	if got := one.texts(); len(got) > 0 {
		t.Fatalf("guarded at a first start: %q", got)
	}
	one.reads(t, twoLabels)
	if got := one.heir.cfg.FrozenStock("three"); got == "" || len(one.texts()) != 1 {
		t.Errorf("frozen because %q, guarded %q", got, one.texts())
	}
	one.accept(t, twoLabels)
	if err := one.review(t.Context()); err != nil {
		t.Fatal(err)
	}
	two.reads(t, twoLabels)
	three.reads(t, otherLabels)
	late := newWard(t, s, "late", twoLabels)
	for host, w := range map[string]ward{"one": one, "two": two, "three": three, "late": late} {
		if got := w.texts(); len(got) > 0 || w.heir.cfg.FrozenStock("three") != "" {
			t.Errorf("%s guards what was accepted: %q", host, got)
		}
	}
	three.reads(t, oneLabel)
	if got := three.texts(); len(got) != 2 {
		t.Errorf("guarded: %q, want two labels", got)
	}
	if one.log.says("Configuration guarded") != 1 || one.log.says("no longer guarded") != 1 || two.log.says("guarded") != 0 {
		t.Errorf("the log says %s", one.log.text.String())
	}
}

func (w ward) texts() []string { return w.show.texts() }

// What was in effect before is unknown while it cannot be read: everything that the
// file does not have is frozen, until an operator accepts the file.
func TestNobodyKnowsWhatWasInEffect(t *testing.T) {
	s := newSite(t)
	key := zkmodel.ConfigurationKey{Kind: kindLauncher, Host: "host", File: "/etc/nodepool/nodepool.yaml"}
	store := ward{keeper: &keeper{s: s}}.stored(t)
	if err := store.SaveConfiguration(t.Context(), key, []byte("{broken")); err != nil {
		t.Fatal(err)
	}
	w := newWard(t, s, "host", twoLabels)
	if w.heir.cfg.FrozenStock("three") == "" || w.heir.cfg.FrozenStock("two") != "" || len(w.texts()) != 1 {
		t.Errorf("what is not in the file is not frozen: %q", w.texts())
	}
	w.accept(t, twoLabels)
	if err := w.review(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.heir.cfg.FrozenStock("three") != "" || len(w.texts()) > 0 {
		t.Errorf("frozen although it was accepted: %q", w.texts())
	}
	data, err := store.Configuration(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := guard.DecodeRecord(data); err != nil || !cmp.Equal(r.Memory.Labels, []string{"one", "two"}) {
		t.Errorf("kept: %+v, %v", r, err)
	}
}

// While nobody knows what was in effect before the daemon began, its limits are those of
// the file that it began with: a reload that misspells one does not lift it, not when the
// file is judged again either, and mended it raises it. It would catch a keeper that
// judges nothing while it is in doubt, or that takes the typo for what was in effect.
func TestLimitsInDoubt(t *testing.T) {
	s := newSite(t)
	key := zkmodel.ConfigurationKey{Kind: kindLauncher, Host: "host", File: "/etc/nodepool/nodepool.yaml"}
	if err := (ward{keeper: &keeper{s: s}}).stored(t).SaveConfiguration(t.Context(), key, []byte("{broken")); err != nil {
		t.Fatal(err)
	}
	const file = twoLabels + "max-hold-age: 3600\ntenant-resource-limits: [{tenant-name: one, max-servers: 5}, {tenant-name: two, max-servers: 7}]\n"
	typo := strings.NewReplacer("max-hold-age", "max-hold-aeg", "one, max-servers: 5", "one, max-severs: 5").Replace(file)
	w := newWard(t, s, "host", file)
	limits := func() []int {
		cfg := w.heir.cfg
		got := []int{int(cfg.MaxHoldAge / time.Second)}
		for _, tenant := range []string{"one", "two"} {
			n := -1
			if t, ok := cfg.TenantLimit(tenant); ok {
				if limit, limited := t.Limits["instances"]; limited {
					n = limit
				}
			}
			got = append(got, n)
		}
		return got
	}
	check := func(when string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, limits()); diff != "" || w.heir.cfg.FrozenStock("three") == "" {
			t.Errorf("%s: limits (-want +got):\n%s; what is not in the file: %q", when, diff, w.heir.cfg.FrozenStock("three"))
		}
	}
	check("at the start", 3600, 5, 7)
	w.reads(t, typo)
	check("misspelt", 3600, 5, 7)
	if err := w.review(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("judged again", 3600, 5, 7)
	if got := w.texts(); len(got) != 3 { // the doubt, and two limits
		t.Errorf("guarded: %q", got)
	}
	w.reads(t, strings.NewReplacer("3600", "7200", "servers: 5", "servers: 6").Replace(file))
	check("mended", 7200, 6, 7)
	w.reads(t, typo)
	w.accept(t, typo)
	if err := w.review(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{0, -1, 7}, limits()); diff != "" || len(w.texts()) > 0 {
		t.Errorf("accepted: limits (-want +got):\n%s, guarded: %q", diff, w.texts())
	}
}

// A launcher that guards something is ready; its page and its metrics tell of it.
func TestGuardIsShown(t *testing.T) {
	get, _ := servingLauncher(t, oneServer, func(s *site) {
		s.guarded = &guarded{kind: kindLauncher, host: "host"}
		k := newKeeper(*s, &heir{})
		m := guard.Of(s.cfg)
		m.Labels = append(m.Labels, "gone")
		m.Providers = append(m.Providers, guard.Provider{Name: "lost", Pools: []guard.Pool{{Name: "main"}}})
		data, err := guard.Record{Memory: m}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		store := ward{keeper: k}.stored(t)
		if err := store.SaveConfiguration(t.Context(), k.key, data); err != nil {
			t.Fatal(err)
		}
		// A node that nobody uses, and one of which nobody can tell what it is.
		if err := store.Session().EnsurePath(t.Context(), zkmodel.NodePath("0000000007")); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Session().Set(t.Context(), zkmodel.NodePath("0000000007"), []byte("{broken"), -1); err != nil {
			t.Fatal(err)
		}
	})
	zktest.Eventually(t, func() bool { code, _ := get("/ready", "*/*"); return code == http.StatusOK }, "it is ready")
	for kind, name := range map[string]string{"label": "gone", "provider": "lost"} {
		zktest.Eventually(t, func() bool {
			_, page := get("/", "text/html")
			_, metrics := get("/metrics", "*/*")
			return strings.Contains(page, fmt.Sprintf("removed, and frozen: %s %s: it has nodes that are not idle", kind, name)) &&
				strings.Contains(metrics, fmt.Sprintf(`poolkeeper_configuration_guarded{kind=%q} 1`, kind))
		}, "page and metrics tell of %s %s", kind, name)
	}
	if code, text := get("/ready", "*/*"); code != http.StatusOK {
		t.Errorf("not ready: %s", text)
	}
}

// A file is accepted although records of other hosts, whose daemons are gone or which
// nobody can read, have nothing to do with it: a daemon in doubt has no other way out.
func TestAcceptedBesideRecordsOfOthers(t *testing.T) {
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	s := newSite(t)
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s.client = client
	store := ward{keeper: &keeper{s: s}}.stored(t)
	gone, err := guard.Record{File: "another", Guarded: []guard.Item{{Kind: guard.KindLabel, Name: "old"}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := zkmodel.ConfigurationKey{Kind: kindLauncher, File: "/etc/nodepool/nodepool.yaml"}
	for host, data := range map[string][]byte{"gone": gone, "broken": []byte("{broken"), "closed": gone} {
		file.Host = host
		if err := store.SaveConfiguration(t.Context(), file, data); err != nil {
			t.Fatal(err)
		}
	}
	file.Host = "closed"
	defer zktest.Forbid(t, addr, root, file.Path())()
	w := newWard(t, s, "broken", twoLabels)
	if w.doubt == "" {
		t.Fatal("not in doubt")
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "nodepool.yaml")
	servers := fmt.Sprintf("zookeeper-servers: [{host: %s, port: %s, chroot: %s}]\n", host, port, root)
	if err := os.WriteFile(path, []byte(servers+twoLabels), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	a := &app.App{Flags: &app.Flags{Wait: 5 * time.Second}, Stdout: &out, Stderr: &errs}
	if err := (admin.ConfigAcceptCmd{File: path}).Run(t.Context(), a); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), errs.String())
	}
	if err := w.review(t.Context()); err != nil || w.doubt != "" {
		t.Errorf("%v; in doubt: %q (%s%s)", err, w.doubt, out.String(), errs.String())
	}
}
