package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inventory is an OpenStack that has one of everything, as far as config-validate asks.
func inventory(t *testing.T) (url string) {
	t.Helper()
	var server *httptest.Server
	answers := map[string]string{
		"/compute/v2.1/flavors/detail":       `{"flavors": [{"id": "1", "name": "ci.small", "ram": 1024, "vcpus": 1}]}`,
		"/compute/v2.1/os-keypairs":          `{"keypairs": [{"keypair": {"name": "infra"}}]}`,
		"/compute/v2.1/os-availability-zone": `{"availabilityZoneInfo": [{"zoneName": "az1", "zoneState": {"available": true}}]}`,
		"/network/v2.0/networks":             `{"networks": [{"id": "n1", "name": "public"}]}`,
		"/network/v2.0/security-groups":      `{"security_groups": [{"id": "g1", "name": "ssh"}]}`,
		"/image/v2/images":                   `{"images": []}`,
	}
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/auth/tokens") {
			w.Header().Set("X-Subject-Token", "token")
			w.WriteHeader(http.StatusCreated)
			var catalog []string
			for service, path := range map[string]string{"compute": "compute/v2.1", "network": "network", "image": "image"} {
				catalog = append(catalog, fmt.Sprintf(`{"type": %q, "name": %q, "endpoints": [{"interface": "public", "region": "r", "region_id": "r", "url": "%s/%s"}]}`,
					service, service, server.URL, path))
			}
			fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [%s]}}`, strings.Join(catalog, ","))
			return
		}
		answer, known := answers[r.URL.Path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = fmt.Fprint(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// config-validate --clouds asks each cloud, and names file, line and key of what is not
// there.
func TestConfigValidateAsksClouds(t *testing.T) {
	dir := t.TempDir()
	down := httptest.NewServer(nil)
	down.Close()
	clouds := filepath.Join(dir, "clouds.yaml")
	text := "clouds:\n"
	for name, url := range map[string]string{"north": inventory(t), "south": inventory(t), "east": down.URL} {
		text += fmt.Sprintf("  %s: {region_name: r, auth: {auth_url: %q, username: ci, password: secretive, project_name: p, user_domain_name: d, project_domain_name: d}}\n",
			name, url+"/v3")
	}
	if err := os.WriteFile(clouds, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", clouds)
	provider := `  - name: %[1]s
    cloud: %[1]s
    diskimages: [{name: debian}]
    pools:
      - name: main
        networks: [%[3]s]
        security-groups:
          - ssh
          - %[4]s
        labels:
          - name: small
            diskimage: debian
            flavor-name: %[2]s
            key-name: infra
          - name: large
            diskimage: debian
            flavor-name: ci.small
`
	validate := func(parts ...string) (code int, out, lines string) {
		file := filepath.Join(dir, "nodepool.yaml")
		head := "zookeeper-servers: [{host: 127.0.0.1}]\nlabels: [{name: small}, {name: large}]\ndiskimages: [{name: debian, elements: [vm]}]\nproviders:\n"
		if err := os.WriteFile(file, []byte(head+strings.Join(parts, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), []string{"-c", file, "config-validate", "--clouds"}, &stdout, &stderr)
		for line := range strings.Lines(strings.ReplaceAll(stderr.String(), dir+"/", "")) {
			if !strings.Contains(line, "warning") {
				lines += line
			}
		}
		return code, stdout.String(), lines
	}
	good := fmt.Sprintf(provider, "south", "ci.small", "public", "ssh")
	code, out, lines := validate(fmt.Sprintf(provider, "north", "ci.small", "public", "ssh"), good)
	if code != 0 || !strings.Contains(out, "2 clouds have all that is named") || lines != "" {
		t.Errorf("exit code %d of clouds that have all: %s%s", code, out, lines)
	}
	code, _, lines = validate(fmt.Sprintf(provider, "north", "ci.large", "private", "web"), good, fmt.Sprintf(provider, "east", "ci.small", "public", "ssh"))
	want := `poolkeeper: nodepool.yaml:10: providers[north].pools[main].networks[0]: provider north: the cloud has no network "private", it has public
poolkeeper: nodepool.yaml:13: providers[north].pools[main].security-groups[1]: provider north: the cloud has no security group "web", it has ssh
poolkeeper: nodepool.yaml:17: providers[north].pools[main].labels[small].flavor-name: provider north: the cloud has no flavor "ci.large", it has ci.small
poolkeeper: nodepool.yaml:40: providers[east].cloud: the cloud cannot be asked: `
	if code != 1 || !strings.HasPrefix(lines, want) || !strings.Contains(lines, "connection refused") || strings.Count(lines, "\n") != 4 {
		t.Errorf("exit code %d:\n%s\nwant 1 and\n%s", code, lines, want)
	}
	if strings.Contains(lines, "secretive") {
		t.Errorf("a password shows in %s", lines)
	}
}
