package kubernetes_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/kubernetes"
)

// spec is the request of one node.
func spec(provider, pool, label, id string) providers.NodeSpec {
	return providers.NodeSpec{NodeID: id, Hostname: "np" + id, Pool: pool, Label: label, Metadata: map[string]string{
		providers.MetaProvider: provider, providers.MetaNode: id, providers.MetaPool: pool, providers.MetaSite: "here", providers.MetaLaunch: "1",
	}}
}

// launch makes a node, which ends with the test.
func launch(t *testing.T, p providers.Provider, node providers.NodeSpec) (providers.Instance, error) {
	t.Helper()
	id, err := p.CreateNode(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if status, answer := newAdmin(t).ask("DELETE", "/api/v1/namespaces/"+id, ""); status >= 300 && status != 404 {
			t.Errorf("delete %s: %v", id, answer["message"])
		}
	})
	return p.WaitNode(t.Context(), id)
}

// With the rights that docs/kubernetes.md tells, no other, and a token that ends after all who
// may hold the node.
func TestTokensThatEnd(t *testing.T) {
	a := newAdmin(t)
	a.kubeconfig(robot(a))
	cfg := section(t, replace(clusterSection, "POOL", "tokens", "context: kube-test", "token: request", "name: cluster", "name: tokens"))
	p := open(t, cfg)
	defer p.Close() //nolint:errcheck // nothing is left open
	for i, label := range []string{"space", "work"} {
		instance, err := launch(t, p, spec("tokens", "tokens", label, fmt.Sprintf("%010d", i)))
		if err != nil {
			t.Fatal(err)
		}
		c := instance.Connection
		if status, _ := a.as(c.Token).ask("GET", "/api/v1/namespaces/"+c.Namespace+"/pods", ""); status != 200 || c.CACert == "" {
			t.Errorf("%s: the token reads pods: %d", c, status)
		}
		answer := a.must("POST", "/apis/authentication.k8s.io/v1/tokenreviews",
			fmt.Sprintf(`{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: %q}}`, c.Token))
		if user, _ := at(answer, "status", "user", "username").(string); user != "system:serviceaccount:"+c.Namespace+":zuul-worker" {
			t.Errorf("%s: the token is of %q", c, user)
		}
	}
	// A cluster that gives shorter ones only has a launch fail that would lock people out.
	own := *configs.SettingsOf[configs.KubernetesDriver](&cfg)
	own.TokenLifetime = 100 * 365 * 24 * time.Hour
	cfg.Settings = &own
	_, err := launch(t, open(t, cfg), spec("tokens", "tokens", "space", "0000000009"))
	if !errors.Is(err, providers.ErrInvalid) || !strings.Contains(err.Error(), "service-account-max-token-expiration") {
		t.Errorf("a token that is too short: %v", err)
	}
}

// Ways to log in, of which sites use each.
func TestLogIns(t *testing.T) {
	a := newAdmin(t)
	token := robot(a)
	dir := t.TempDir()
	plugin := filepath.Join(dir, "log-in")
	write := func(path, text string, mode os.FileMode) {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(plugin, "#!/bin/sh\necho '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": \""+token+"\"}}'\n", 0o700)
	write(filepath.Join(dir, "token"), token, 0o600)
	users := map[string]string{
		"token": fmt.Sprintf("{token: %q}", token), "file": fmt.Sprintf("{tokenFile: %q}", filepath.Join(dir, "token")),
		"program": fmt.Sprintf("{exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, interactiveMode: Never}}", plugin),
		"wrong":   "{token: none}",
	}
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: wrong, clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}], users: [", a.config.Host, encoded(a.config.CAData))
	var contexts strings.Builder
	for name, user := range users {
		text += fmt.Sprintf("{name: %s, user: %s},", name, user)
		fmt.Fprintf(&contexts, "{name: %s, context: {cluster: c, user: %s}},", name, name)
	}
	write(filepath.Join(dir, "kubeconfig"), text+"], contexts: ["+contexts.String()+"]}", 0o600)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "kubeconfig"))
	for name := range users {
		p := open(t, section(t, replace(clusterSection, "POOL", "login", "kube-test", name)))
		_, err := p.ListNodes(t.Context())
		if wrong := name == "wrong"; wrong != errors.Is(err, providers.ErrUnusable) || !wrong && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	_, err := kubernetes.New(section(t, replace(clusterSection, "POOL", "login", "kube-test", "elsewhere")), kubernetes.Options{})
	if !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("a context that there is not: %v", err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	_, err = kubernetes.New(section(t, replace(clusterSection, "POOL", "login", "kube-test", "")), kubernetes.Options{})
	if !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "none") {
		t.Errorf("without a kubeconfig: %v", err)
	}
}
