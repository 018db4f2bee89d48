package kubernetes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// admin is the cluster's administrator, or who else has logged in: a second client
// beside the driver, which says what is really there.
type admin struct {
	t      *testing.T
	config *rest.Config
	client *http.Client
}

func newAdmin(t *testing.T) *admin {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	return (&admin{t: t}).with(config)
}

func (a *admin) with(config *rest.Config) *admin {
	a.t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		a.t.Fatal(err)
	}
	return &admin{a.t, config, client}
}

// as is who has a token.
func (a *admin) as(token string) *admin {
	config := rest.AnonymousClientConfig(a.config)
	config.BearerToken = token
	return a.with(config)
}

// ask sends one request, with a body of YAML or JSON, and gives the status and the answer.
func (a *admin) ask(method, path, body string) (status int, answer map[string]any) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.config.Host+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if req.Header.Set("Content-Type", "application/yaml"); method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	_ = json.NewDecoder(bytes.NewReader(data)).Decode(&answer) // logs are no JSON
	return resp.StatusCode, answer
}

// must is ask for what must succeed.
func (a *admin) must(method, path, body string) map[string]any {
	a.t.Helper()
	status, answer := a.ask(method, path, body)
	if status >= 300 {
		a.t.Fatalf("%s %s: %d %v", method, path, status, answer["message"])
	}
	return answer
}

// may reports whether something is allowed.
func (a *admin) may(method, path string) bool {
	a.t.Helper()
	status, _ := a.ask(method, path, "")
	return status != http.StatusForbidden && status != http.StatusUnauthorized
}

// at is a value below keys of an answer.
func at(answer map[string]any, keys ...string) any {
	var value any = answer
	for _, key := range keys {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

// wait waits for a while, or until the test has to end.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for tick := time.NewTicker(100 * time.Millisecond); !ok(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within 2 minutes: %s", what)
		}
	}
}

// namespace makes a namespace with a default service account, which ends with the test.
func (a *admin) namespace(name string) {
	a.t.Helper()
	a.must("POST", "/api/v1/namespaces", fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}", name))
	a.t.Cleanup(func() { a.ask("DELETE", "/api/v1/namespaces/"+name, "") })
	await(a.t, "default service account", func() bool {
		status, _ := a.ask("GET", "/api/v1/namespaces/"+name+"/serviceaccounts/default", "")
		return status == http.StatusOK
	})
}

// apply makes what the manifests of a document are, with words replaced. It ends with its
// namespace, or the cluster.
func (a *admin) apply(text string, replace ...string) {
	a.t.Helper()
	for doc := range strings.SplitSeq(strings.NewReplacer(replace...).Replace(text), "\n---\n") {
		field := func(key string) string {
			for line := range strings.Lines(doc) {
				if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+":"); ok {
					return strings.TrimSpace(value)
				}
			}
			return ""
		}
		path := map[string]string{
			"Namespace": "/api/v1/namespaces", "ServiceAccount": "/api/v1/namespaces/NS/serviceaccounts", "Secret": "/api/v1/namespaces/NS/secrets",
			"ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles", "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			"Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/roles", "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/NS/rolebindings",
		}[field("kind")]
		path = strings.ReplaceAll(path, "NS", field("namespace"))
		a.must("POST", path, doc)
	}
}

// token is that of a service account.
func (a *admin) token(namespace, account string) string {
	a.t.Helper()
	answer := a.must("POST", "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		"{apiVersion: authentication.k8s.io/v1, kind: TokenRequest, spec: {expirationSeconds: 7200}}")
	token, _ := at(answer, "status", "token").(string)
	return token
}

// kubeconfig writes one in which a token logs in, and has the process use it in this test.
func (a *admin) kubeconfig(token string) {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: limited,
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}],
users: [{name: u, user: {token: %q}}],
contexts: [{name: limited, context: {cluster: c, user: u}}]}`,
		a.config.Host, encoded(a.config.CAData), token)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	a.t.Setenv("KUBECONFIG", path)
}
