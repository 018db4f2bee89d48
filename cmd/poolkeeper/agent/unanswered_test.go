package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// uptake is how late the slow Nova takes up creations: each connection was cut long ago.
const uptake = 1500 * time.Millisecond

// slowNova is an OpenStack that answers no creation and makes each server late.
type slowNova struct {
	*httptest.Server

	mu      sync.Mutex
	group   sync.WaitGroup
	servers map[string]map[string]any
	asked   int
	most    map[string]int // servers at one moment, by node; "" of all
}

func newSlowNova(t *testing.T) *slowNova {
	t.Helper()
	n := &slowNova{servers: map[string]map[string]any{}, most: map[string]int{}}
	mux := http.NewServeMux()
	say := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, body) }
	}
	mux.HandleFunc("POST /v3/auth/tokens", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Subject-Token", "token")
		w.WriteHeader(http.StatusCreated)
		service := `{"type": %q, "name": %q, "endpoints": [{"interface": "public", "region": "r", "region_id": "r", "url": "%s/%s"}]}`
		fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [`+service+","+service+"]}}",
			"compute", "nova", n.URL, "compute/v2.1", "image", "glance", n.URL, "image")
	})
	mux.HandleFunc("GET /compute/v2.1/flavors/detail", say(`{"flavors": [{"id": "1", "name": "ci.small", "ram": 1024, "vcpus": 1}]}`))
	mux.HandleFunc("GET /compute/v2.1/limits", say(`{"limits": {"absolute": {"maxTotalInstances": 100, "maxTotalCores": -1, "maxTotalRAMSize": -1}}}`))
	mux.HandleFunc("GET /compute/v2.1/os-availability-zone", say(`{"availabilityZoneInfo": []}`))
	mux.HandleFunc("POST /compute/v2.1/servers", n.create)
	mux.HandleFunc("GET /compute/v2.1/servers/detail", n.list)
	mux.HandleFunc("DELETE /compute/v2.1/servers/{id}", func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.servers, r.PathValue("id"))
		w.WriteHeader(http.StatusNoContent)
	})
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { n.group.Wait(); n.Close() })
	return n
}

// create takes a creation up when nobody listens any more.
func (n *slowNova) create(_ http.ResponseWriter, r *http.Request) {
	var body struct {
		Server struct {
			Name     string            `json:"name"`
			Metadata map[string]string `json:"metadata"`
		} `json:"server"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	n.mu.Lock()
	n.asked++
	id := fmt.Sprintf("00000000-0000-4000-8000-%012d", n.asked)
	n.mu.Unlock()
	n.group.Go(func() {
		<-time.After(uptake)
		n.mu.Lock()
		defer n.mu.Unlock()
		n.servers[id] = map[string]any{
			"id": id, "name": body.Server.Name, "status": "ACTIVE", "metadata": body.Server.Metadata, "created": time.Now().UTC().Format(time.RFC3339),
			"flavor": map[string]any{"id": "1"}, "addresses": map[string]any{"public": []map[string]any{{"addr": "198.51.100.7", "version": 4}}},
		}
		now := map[string]int{"": len(n.servers)}
		for _, s := range n.servers {
			now[s["metadata"].(map[string]string)[providers.MetaNode]]++
		}
		for node, count := range now {
			n.most[node] = max(n.most[node], count)
		}
	})
	panic(http.ErrAbortHandler)
}

func (n *slowNova) list(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []map[string]any{}
	for _, s := range n.servers {
		all = append(all, s)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"servers": all})
}

// slowSite writes the configuration of two providers, of two servers each.
func slowSite(t *testing.T, novas map[string]*slowNova, root string) *configs.Config {
	t.Helper()
	dir := t.TempDir()
	_, port, err := net.SplitHostPort(zktest.Shared(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	clouds := "clouds:\n"
	config := fmt.Sprintf("zookeeper-servers: [{host: 127.0.0.1, port: %s, chroot: %s}]\nlabels: [{name: small}]\nproviders:\n", port, root)
	for name, nova := range novas {
		clouds += fmt.Sprintf("  %s: {region_name: r, auth: {auth_url: %q, username: ci, password: word, project_name: p, user_domain_name: d, project_domain_name: d}}\n",
			name, nova.URL+"/v3")
		config += fmt.Sprintf(`  - name: %[1]s
    cloud: %[1]s
    rate: 0
    unanswered-create-timeout: 10
    cloud-images: [{name: image, image-id: 00000000-0000-4000-8000-00000000abcd}]
    pools:
      - name: main
        max-servers: 2
        host-key-checking: false
        labels: [{name: small, cloud-image: image, flavor-name: ci.small}]
`, name)
	}
	for file, text := range map[string]string{"clouds.yaml": clouds, "nodepool.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", filepath.Join(dir, "clouds.yaml"))
	cfg, err := configs.Load(filepath.Join(dir, "nodepool.yaml"), configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Novas that cut the connection of each creation, and make the server when all launchers
// that asked for it have been ended, twice, make one server a node.
func TestNovaThatTakesCreationsUpLate(t *testing.T) {
	root := zktest.Root(t)
	novas := map[string]*slowNova{"north": newSlowNova(t), "south": newSlowNova(t)}
	cfg := slowSite(t, novas, root)
	start := func(host string) (end func()) {
		client, err := app.Dial(cfg.ZooKeeper, hclog.NewNullLogger())
		if err != nil {
			t.Fatal(err)
		}
		l, err := newLauncher(t.Context(), site{cfg: cfg, client: client, log: hclog.NewNullLogger()},
			func(d *launcher.Deps) { d.Hostname, d.FQDN = host, host })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		done := make(chan struct{})
		go func() { defer close(done); _ = l.Run(ctx) }() // without its client it fails
		return func() {
			client.Close()
			cancel()
			<-done
		}
	}
	ends := map[string]func(){"one": start("one"), "two": start("two")}
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	asker, err := zuul.Dial(t.Context(), []string{zktest.Shared(t).Addr()}, root, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	var ids []string
	for range 4 {
		id, err := asker.Submit(zuul.Wish{Labels: []string{"small"}, Fresh: true})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	asked := func() (sum int) {
		for _, n := range novas {
			n.mu.Lock()
			sum += n.asked
			n.mu.Unlock()
		}
		return sum
	}
	zktest.Eventually(t, func() bool { return asked() > 0 }, "a cloud to be asked")
	for range 2 {
		for host := range ends {
			ends[host]()
			ends[host] = start(host)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, id := range ids {
		if out, err := asker.Wait(ctx, id); err != nil || out.State != "fulfilled" {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	for name, n := range novas {
		n.group.Wait()
		for node, most := range n.most {
			if node != "" && most > 1 || most > 2 {
				t.Errorf("%s had %d servers of node %q, %d in all", name, most, node, n.most[""])
			}
		}
	}
}
