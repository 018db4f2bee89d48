package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// server is an API server that knows some objects, and notes what it is asked to change.
type server struct {
	mu      sync.Mutex
	objects map[string]map[string]string // path -> labels
	fails   map[string]int               // path -> status
	changes []string

	items []any // of each list
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	labels, found := s.objects[r.URL.Path]
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	status := func(code int, reason string) {
		answer(code, map[string]any{
			"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": "made up: " + reason,
		})
	}
	switch {
	case r.Method != http.MethodGet:
		s.changes = append(s.changes, r.Method+" "+r.URL.Path)
		if r.Method == http.MethodDelete {
			delete(s.objects, r.URL.Path)
		}
		answer(http.StatusOK, map[string]any{})
	case s.fails[r.URL.Path] != 0:
		status(s.fails[r.URL.Path], "Refused")
	case found:
		meta := map[string]any{"name": filepath.Base(r.URL.Path), "uid": "1", "labels": labels}
		if parts := strings.Split(r.URL.Path, "/"); len(parts) > 6 { // /api/v1/namespaces/NAME/pods/NAME
			meta["namespace"] = parts[4]
		}
		answer(http.StatusOK, map[string]any{"items": append([]any{}, s.items...), "metadata": meta})
	default:
		status(http.StatusNotFound, "NotFound")
	}
}

// serve has a kubeconfig name a server of the test.
func serve(t *testing.T, s http.Handler) {
	t.Helper()
	ts := httptest.NewServer(s)
	t.Cleanup(ts.Close)
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}],
users: [{name: u, user: {token: secret-token}}],
contexts: [{name: c, context: {cluster: c, user: u}}]}`, ts.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", path)
}

// section has pools with one label each.
func section(pools ...string) configs.Provider {
	cfg := configs.Provider{Name: "cluster", Driver: configs.DriverKubernetes, Settings: &configs.KubernetesDriver{}}
	for _, name := range pools {
		cfg.Pools = append(cfg.Pools, configs.Pool{Name: name, Labels: []configs.PoolLabel{
			{Name: "work", Settings: &configs.KubernetesLabel{Type: configs.LabelNamespace}},
		}})
	}
	return cfg
}

func opened(t *testing.T, open func(configs.Provider, Options) (*Provider, error), cfg configs.Provider) *Provider {
	t.Helper()
	p, err := open(cfg, Options{CallTime: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// madeBy are the labels of what an installation made.
func madeBy(site string) map[string]string {
	return map[string]string{
		providers.MetaProvider: "cluster", providers.MetaSite: site, providers.MetaPool: "main", labelKey: "work", providers.MetaNode: "1",
	}
}

// After a restart a provider that has made nothing yet is asked about nodes of before. Their
// names may be those of another installation's, whose jobs would lose their namespace.
func TestAnotherInstallationsIsLeftAlone(t *testing.T) {
	const id = "main-1"
	for _, told := range []string{"", "a"} {
		s := &server{objects: map[string]map[string]string{"/api/v1/namespaces/" + id: madeBy("b")}}
		serve(t, s)
		p := opened(t, New, section("main"))
		p.OfInstallation(told)
		deleted := p.DeleteNode(t.Context(), id)
		_, waited := p.WaitNode(t.Context(), id)
		if told == "" && (!errors.Is(deleted, providers.ErrTransient) || !errors.Is(waited, providers.ErrTransient)) {
			t.Errorf("before it is told: deletion %v, wait %v", deleted, waited)
		}
		if told != "" && (deleted != nil || !errors.Is(waited, providers.ErrNotFound)) {
			t.Errorf("told %s: deletion %v, wait %v", told, deleted, waited)
		}
		if len(s.changes) > 0 {
			t.Errorf("told %q, it did %v", told, s.changes)
		}
	}
	s := &server{objects: map[string]map[string]string{"/api/v1/namespaces/" + id: madeBy("a")}}
	serve(t, s)
	p := opened(t, New, section("main"))
	p.OfInstallation("a")
	if err := p.DeleteNode(t.Context(), id); err != nil || len(s.changes) != 1 {
		t.Errorf("its own: %v, %v", err, s.changes)
	}
}

// A pod of a pool that was taken out of the configuration is not gone, and pools may begin alike.
func TestPodsOfPools(t *testing.T) {
	s := &server{objects: map[string]map[string]string{
		"/api/v1/namespaces/proj/pods/b-x-0000000001":    madeBy("a"),
		"/api/v1/namespaces/proj-b/pods/work-0000000002": madeBy("a"),
	}}
	serve(t, s)
	cfg := section("proj", "proj-b")
	cfg.Driver = configs.DriverOpenShiftPods
	cfg.Pools[0].Labels = []configs.PoolLabel{{Name: "b-x", Settings: &configs.KubernetesLabel{Type: configs.LabelPod}}}
	p := opened(t, NewPods, cfg)
	p.OfInstallation("a")
	if err := p.DeleteNode(t.Context(), "other-work-0000000003"); !errors.Is(err, providers.ErrUnusable) {
		t.Errorf("of no pool: %v", err)
	}
	for _, id := range []string{"proj-b-x-0000000001", "proj-b-work-0000000002", "no-such-node"} {
		if err := p.DeleteNode(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if len(s.objects) > 0 {
		t.Errorf("left: %v", s.objects)
	}
}

// A pod that has ended, and what is being deleted, cannot be used: lists say so.
func TestListsShowWhatIsDown(t *testing.T) {
	item := func(name, phase, reason, deleted string) map[string]any {
		meta := map[string]any{"name": name, "namespace": "proj", "uid": name, "labels": madeBy("a")}
		if deleted != "" {
			meta["deletionTimestamp"] = deleted
		}
		return map[string]any{"metadata": meta, "status": map[string]any{"phase": phase, "reason": reason}}
	}
	s := &server{objects: map[string]map[string]string{"/api/v1/namespaces/proj/pods": nil}, items: []any{
		item("work-0000000001", "Running", "", ""), item("work-0000000002", "Failed", "Evicted", ""), item("work-0000000003", "Succeeded", "", ""),
		item("work-0000000004", "Running", "", "2026-01-01T00:00:00Z"), item("work-0000000005", "Pending", "", ""),
	}}
	serve(t, s)
	cfg := section("proj")
	cfg.Driver = configs.DriverOpenShiftPods
	p := opened(t, NewPods, cfg)
	p.OfInstallation("a")
	nodes, err := p.ListNodes(t.Context())
	got := map[string]string{}
	for _, n := range nodes {
		got[n.ExternalID] = n.Down
	}
	want := map[string]string{
		"proj-work-0000000001": "", "proj-work-0000000002": "its pod has ended: Evicted", "proj-work-0000000003": "its pod has ended: Succeeded",
		"proj-work-0000000004": "it is being deleted in the cluster", "proj-work-0000000005": "",
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// What could not be looked for may be there: it is not made a second time.
func TestNothingIsMadeWhereALookFails(t *testing.T) {
	const node = "0000000001"
	s := &server{fails: map[string]int{"/api/v1/namespaces/main-" + node: http.StatusInternalServerError}}
	serve(t, s)
	p := opened(t, New, section("main"))
	_, err := p.CreateNode(t.Context(), providers.NodeSpec{NodeID: node, Pool: "main", Label: "work", Metadata: madeBy("a")})
	if !errors.Is(err, providers.ErrTransient) || len(s.changes) > 0 {
		t.Errorf("%v, %v", err, s.changes)
	}
}

// Rights are given by namespace. One that lacks must not stop the pods of others, nor have requests wait for a
// right where another pool, or another cloud, would serve them.
func TestAPoolWithoutRightsHarmsNoOther(t *testing.T) {
	const node = "0000000001"
	s := &server{
		objects: map[string]map[string]string{"/api/v1/namespaces/good/pods": nil},
		fails: map[string]int{
			"/api/v1/namespaces/bad/pods": http.StatusForbidden, "/api/v1/namespaces/bad/pods/work-" + node: http.StatusForbidden,
			"/api/v1/namespaces/good/pods/work-" + node: http.StatusForbidden,
		},
	}
	serve(t, s)
	cfg := section("bad", "good")
	cfg.Driver = configs.DriverOpenShiftPods
	p := opened(t, NewPods, cfg)
	create := func(pool string) error {
		_, err := p.CreateNode(t.Context(), providers.NodeSpec{NodeID: node, Pool: pool, Label: "work", Metadata: madeBy("a")})
		return err
	}
	if _, err := p.Limits(t.Context(), nil); err != nil {
		t.Errorf("limits with one pool that can be used: %v", err)
	}
	if err := create("bad"); !errors.Is(err, providers.ErrInvalid) || errors.Is(err, providers.ErrUnusable) {
		t.Errorf("a node of the pool without rights: %v", err)
	}
	if err := create("good"); !errors.Is(err, providers.ErrUnusable) {
		t.Errorf("a node that is refused where no other pool can be used: %v", err)
	}
	delete(s.fails, "/api/v1/namespaces/good/pods/work-"+node)
	if err := create("good"); err != nil {
		t.Errorf("a node of the pool with rights: %v", err)
	}
	s.items = []any{map[string]any{"metadata": map[string]any{"name": "work-" + node, "namespace": "good", "labels": madeBy("a")}}}
	list, err := p.ListNodes(t.Context())
	if len(list) != 1 || list[0].ExternalID != "good-work-"+node {
		t.Errorf("listed is %v", list)
	}
	if _, partial := errors.AsType[*providers.PartialError](err); !partial || !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "pool bad: ") {
		t.Errorf("a list without a pool is not complete: %v", err)
	}
	s.fails["/api/v1/namespaces/good/pods"] = http.StatusForbidden
	if _, err := p.Limits(t.Context(), nil); !errors.Is(err, providers.ErrUnusable) {
		t.Errorf("limits without rights in any pool: %v", err)
	}
	clear(s.fails)
	s.fails["/api/v1/namespaces/bad/pods/work-"+node] = http.StatusUnauthorized
	if err := create("bad"); !errors.Is(err, providers.ErrUnusable) || errors.Is(err, providers.ErrInvalid) {
		t.Errorf("a node that a log-in which is over did not make: %v", err)
	}
}
