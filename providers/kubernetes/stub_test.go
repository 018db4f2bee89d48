package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

const (
	node        = "0000000001"
	ourSpace    = "main-" + node // of a node of the driver kubernetes
	ourPod      = "work-" + node // of one of the driver openshiftpods, in the namespace main
	podInSpace  = "/api/v1/namespaces/" + ourSpace + "/pods/work"
	ourLabels   = `"labels": {"nodepool_provider_name": "cluster", "poolkeeper_site": "a", "nodepool_pool_name": "main", "nodepool_node_label": "work", "nodepool_node_id": "` + node + `"}`
	theirLabels = `"labels": {"nodepool_provider_name": "cluster", "poolkeeper_site": "b", "nodepool_pool_name": "main", "nodepool_node_label": "work", "nodepool_node_id": "` + node + `"}`
	otherLabels = `"labels": {"nodepool_provider_name": "other", "poolkeeper_site": "a", "nodepool_node_id": "` + node + `"}`
)

// usual are answers of a cluster in which all is well, by path; of what is listed one is ours, one another installation's, and one
// another provider's.
var usual = map[string]string{
	"GET /api/v1/namespaces": `{"kind": "NamespaceList", "items": [{"metadata": {"name": "` + ourSpace + `", "uid": "1", ` + ourLabels + `}}, ` +
		`{"metadata": {"name": "main-0000000002", "uid": "2", ` + theirLabels + `}}, {"metadata": {"name": "kept", "uid": "3", ` + otherLabels + `}}]}`,
	"GET /api/v1/namespaces/" + ourSpace: `{"metadata": {"name": "` + ourSpace + `", "uid": "1", ` + ourLabels + `}}`,
	"GET /api/v1/namespaces/main/pods": `{"kind": "PodList", "items": [{"metadata": {"name": "` + ourPod + `", "namespace": "main", "uid": "4", ` + ourLabels + `}}, ` +
		`{"metadata": {"name": "work-0000000002", "namespace": "main", "uid": "5", ` + theirLabels + `}}]}`,
	"GET /api/v1/namespaces/main/pods/" + ourPod:                                 `{"metadata": {"name": "` + ourPod + `", "namespace": "main", "uid": "4", ` + ourLabels + `}, "spec": {"nodeName": "host"}, "status": {"phase": "Running"}}`,
	"GET " + podInSpace:                                                          `{"metadata": {"name": "work", "namespace": "` + ourSpace + `", "uid": "6"}, "spec": {"nodeName": "host"}, "status": {"phase": "Running"}}`,
	"GET /api/v1/namespaces/" + ourSpace + "/secrets/zuul-worker":                `{"data": {"token": "dG9rZW4=", "ca.crt": "Y2E="}}`,
	"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":                `{"status": {"allowed": true}}`,
	"POST /api/v1/namespaces":                                                    `{}`,
	"POST /api/v1/namespaces/main/pods":                                          `{}`,
	"POST /api/v1/namespaces/" + ourSpace + "/pods":                              `{}`,
	"POST /api/v1/namespaces/" + ourSpace + "/serviceaccounts/zuul-worker/token": `{"status": {"token": "token", "expirationTimestamp": "2100-01-01T00:00:00Z"}}`,
	"DELETE /api/v1/namespaces/" + ourSpace:                                      `{}`,
	"DELETE /api/v1/namespaces/main/pods/" + ourPod:                              `{}`,
}

// apiServer answers as usual, but for one call.
type apiServer struct {
	most int // calls, behind which it says that it is asked without end

	mu      sync.Mutex
	instead string // the call with another answer
	status  int
	body    []byte
	calls   []string
	enough  func() // ends what asks without end
}

// set has a call be answered otherwise.
func (s *apiServer) set(call string, status int, body []byte, enough func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead, s.status, s.body, s.enough, s.calls = call, status, body, enough, nil
}

// made reports whether a call was made, and how many there were.
func (s *apiServer) made(call string) (bool, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.calls, call), len(s.calls)
}

// changes are the calls that change something.
func (s *apiServer) changes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(call string) bool { return strings.HasPrefix(call, "GET ") })
}

// served is how a call is answered.
func (s *apiServer) served(call string) (status int, body []byte) {
	if call == s.instead {
		return s.status, s.body
	}
	return http.StatusOK, []byte(usual[call])
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := r.Method + " " + r.URL.Path
	if s.calls = append(s.calls, call); len(s.calls) == s.most {
		s.enough()
	}
	w.Header().Set("Content-Type", "application/json")
	answer, known := usual[call]
	path, isGet := strings.CutPrefix(call, "GET ")
	switch {
	case call == s.instead:
		w.WriteHeader(s.status)
		_, _ = w.Write(s.body)
	case isGet && (!known || slices.Contains(s.calls, "DELETE "+path)): // deleted
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	default:
		_, _ = io.WriteString(w, answer)
	}
}

// fast is a clock by which two minutes are 60 ms.
type fast struct{ began time.Time }

const timesFaster = 2000

// Now implements clock.Source.
func (f fast) Now() time.Time { return f.began.Add(time.Since(f.began) * timesFaster) }

// AfterFunc implements clock.Source.
func (f fast) AfterFunc(d time.Duration, call func()) clock.Stopper {
	return time.AfterFunc(d/timesFaster, call)
}

// within is a context that goes by a fast clock, and ends in two minutes of it where something is waited for.
func within(ctx context.Context, waits bool) (context.Context, context.CancelFunc) {
	ctx = clock.With(ctx, clock.From(fast{time.Now()}))
	if waits {
		return clock.WithTimeout(ctx, 2*time.Minute)
	}
	return context.WithTimeout(ctx, 20*time.Second)
}

// openOn opens a provider of each driver, as daemons do: of namespaces with a pod in each, and of pods.
func openOn(f *testing.F, s *apiServer) (spaces, inPools providers.Provider) {
	f.Helper()
	server := httptest.NewTLSServer(s) // without TLS no token is sent
	f.Cleanup(server.Close)
	path := filepath.Join(f.TempDir(), "config")
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q, insecure-skip-tls-verify: true}}],"+
		" users: [{name: u, user: {token: secret-token}}], contexts: [{name: c, context: {cluster: c, user: u}}]}", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Setenv("KUBECONFIG", path)
	cfg := section("main")
	cfg.Pools[0].Labels[0].Settings = &configs.KubernetesLabel{Type: configs.LabelPod}
	open := func(open func(configs.Provider, Options) (*Provider, error)) providers.Provider {
		secrets := &redact.Secrets{}
		p, err := open(cfg, Options{Secrets: secrets, CallTime: 20 * time.Second})
		if err != nil {
			f.Fatal(err)
		}
		p.cluster.pace.SetLimit(rate.Inf) // as many calls as there are
		p.OfInstallation("a")
		return providers.Redacted(p, secrets)
	}
	return open(New), open(NewPods)
}

// thing is an object of an answer, as far as it tells whose it is.
type thing struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels               map[string]string
		Annotations          map[string]string
	}
}

// isNamed reports whether an answer is the object that was asked for.
func isNamed(body []byte, name string) bool {
	var one thing
	return json.NewDecoder(strings.NewReader(string(body))).Decode(&one) == nil && one.Metadata.Name == name
}

// isMissing reports whether an answer is the API server's word that there is no such thing.
func isMissing(body []byte) bool {
	var one struct {
		Kind, Reason string
		Code         int
	}
	return json.NewDecoder(strings.NewReader(string(body))).Decode(&one) == nil && one.Kind == "Status" && (one.Reason == "NotFound" || one.Code == http.StatusNotFound)
}

// isOurs reports whether an answer is the object that was asked for, and tells that it is our installation's.
func isOurs(body []byte, name string) bool {
	var one thing
	if json.NewDecoder(strings.NewReader(string(body))).Decode(&one) != nil || one.Metadata.Name != name {
		return false
	}
	mark := func(key string) string {
		if annotated, ok := one.Metadata.Annotations["poolkeeper/"+key]; ok {
			return annotated
		}
		return one.Metadata.Labels[key]
	}
	return mark(providers.MetaProvider) == "cluster" && (mark(providers.MetaSite) == "" || mark(providers.MetaSite) == "a")
}

// listed is how many objects an answer lists; -1 where it is no list.
func listed(body []byte) int {
	var answer struct {
		Kind  string
		Items *[]any
	}
	if json.NewDecoder(strings.NewReader(string(body))).Decode(&answer) != nil || answer.Items == nil && !strings.HasSuffix(answer.Kind, "List") {
		return -1
	}
	if answer.Items == nil {
		return 0
	}
	return len(*answer.Items)
}
