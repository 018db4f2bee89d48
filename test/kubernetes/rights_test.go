package kubernetes_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

func replace(text string, pairs ...string) string { return strings.NewReplacer(pairs...).Replace(text) }

// manifest is a block of YAML of docs/kubernetes.md, found by a word in it.
func manifest(t *testing.T, word string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range strings.Split(string(page), "```") {
		if text, ok := strings.CutPrefix(block, "yaml\n"); ok && i%2 == 1 && strings.Contains(text, word) {
			return text
		}
	}
	t.Fatalf("docs/kubernetes.md has no block with %q", word)
	return ""
}

// robot is the token of who has no rights but those that docs/kubernetes.md tells for the driver
// kubernetes. It stays as long as the cluster.
func robot(a *admin) string {
	a.t.Helper()
	if status, _ := a.ask("GET", "/api/v1/namespaces/poolkeeper", ""); status != http.StatusOK {
		a.apply(manifest(a.t, "kind: ClusterRole\n"))
	}
	return a.token("poolkeeper", "poolkeeper")
}

// limited makes a namespace for pods and has this test log in as who has no rights but those
// that docs/kubernetes.md tells for the driver openshiftpods. It returns the administrator.
func limited(t *testing.T, namespace string) *admin {
	t.Helper()
	a := newAdmin(t)
	a.namespace(namespace)
	a.apply(manifest(t, "kind: Role\n"), "NAMESPACE", namespace)
	a.kubeconfig(a.token(namespace, "poolkeeper"))
	return a
}
