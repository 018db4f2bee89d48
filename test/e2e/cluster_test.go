package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cluster stands in for the API server of a Kubernetes cluster: it keeps what is made, gives
// tokens, and has each pod run at once. test/kubernetes has a real one; here it is one cloud of many.
type cluster struct {
	*httptest.Server

	mu      sync.Mutex
	objects map[string]map[string]any // by path
	made    int
}

// clusterToken is what everybody logs in with.
const clusterToken = "token-of-the-robot"

// startCluster starts one in which some namespaces are there.
func startCluster(t *testing.T, namespaces ...string) *cluster {
	t.Helper()
	c := &cluster{objects: map[string]map[string]any{}}
	for _, name := range namespaces {
		c.add("/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": name}})
	}
	c.Server = httptest.NewTLSServer(c) // no client gives its token to one without TLS
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

// nodes are the paths of namespaces and pods, but for the namespaces that stay.
func (c *cluster) nodes(stay ...string) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.objects {
		kind := path.Base(path.Dir(name))
		kept := false
		for _, s := range stay {
			kept = kept || kind == "namespaces" && path.Base(name) == s
		}
		if !kept && (kind == "namespaces" || kind == "pods") {
			list = append(list, name)
		}
	}
	return list
}

// ServeHTTP implements http.Handler.
func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	code, body := c.answer(r)
	data, err := json.Marshal(body) // what is in it changes
	c.mu.Unlock()
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

func (c *cluster) answer(r *http.Request) (code int, body any) {
	at := r.URL.Path
	object, there := c.objects[at]
	switch {
	case r.Header.Get("Authorization") != "Bearer "+clusterToken:
		return refusal(http.StatusUnauthorized, "Unauthorized", at)
	case r.Method == http.MethodPost:
		var asked map[string]any
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			return refusal(http.StatusBadRequest, "BadRequest", err.Error())
		}
		return c.add(at, asked)
	case !there && r.Method == http.MethodGet && (path.Base(at) == "namespaces" || path.Base(at) == "pods"):
		return http.StatusOK, map[string]any{"metadata": map[string]any{}, "items": c.list(at, r.URL.Query().Get("labelSelector"))}
	case !there:
		return refusal(http.StatusNotFound, "NotFound", at)
	case r.Method == http.MethodDelete:
		for name := range c.objects {
			// All that is in a namespace goes with it, of whichever group.
			if name == at || strings.Contains(name, strings.TrimPrefix(at, "/api/v1")+"/") {
				delete(c.objects, name)
			}
		}
		return http.StatusOK, map[string]any{}
	}
	return http.StatusOK, object
}

// refusal is an answer that something cannot be done.
func refusal(code int, reason, text string) (status int, body any) {
	return code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": reason + ": " + text,
	}
}

// add makes an object below a path, as far along as it gets by itself.
func (c *cluster) add(below string, object map[string]any) (code int, body any) {
	meta, _ := object["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	at := path.Join(below, name)
	_, rest, inside := strings.Cut(below, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	switch {
	case name == "":
		return refusal(http.StatusUnprocessableEntity, "Invalid", "no name")
	case c.objects[at] != nil:
		return refusal(http.StatusConflict, "AlreadyExists", at)
	case inside && c.objects["/api/v1/namespaces/"+namespace] == nil:
		return refusal(http.StatusNotFound, "NotFound", "namespace "+namespace)
	case inside:
		meta["namespace"] = namespace
	}
	c.made++
	meta["uid"] = fmt.Sprint(c.made)
	switch path.Base(below) {
	case "pods":
		if spec, ok := object["spec"].(map[string]any); ok {
			spec["nodeName"] = "machine"
		}
		object["status"] = map[string]any{"phase": "Running"}
	case "secrets":
		object["data"] = map[string]any{"token": "dG9rZW4=", "ca.crt": "Y2E="}
	}
	c.objects[at] = object
	return http.StatusCreated, object
}

// list are the objects of a collection that have a label.
func (c *cluster) list(at, selector string) []any {
	key, value, _ := strings.Cut(selector, "=")
	list := []any{}
	for name, object := range c.objects {
		meta, _ := object["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if path.Dir(name) == at && (selector == "" || labels[key] == value) {
			list = append(list, object)
		}
	}
	return list
}

// writeKubeconfig has a context for each cluster.
func writeKubeconfig(t *testing.T, dir string, clusters map[string]*cluster) (file string) {
	t.Helper()
	servers, contexts := []any{}, []any{}
	for name, c := range clusters {
		servers = append(servers, map[string]any{"name": name, "cluster": map[string]any{
			"server": c.URL, "certificate-authority-data": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate().Raw}),
		}})
		contexts = append(contexts, map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": "robot"}})
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "clusters": servers, "contexts": contexts,
		"users": []any{map[string]any{"name": "robot", "user": map[string]any{"token": clusterToken}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
