package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
)

// echo is a cloud that answers with what it was sent.
func echo(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "cannot take %s of %v", body, r.Header)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// logged is a log that tests can read.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// What a cloud echoes of our credentials reaches no log and no error.
func TestEchoedCredentialsAreMasked(t *testing.T) {
	passwords := map[string]string{"north": "the northern \"password\"", "south": "pässwörd/of+south"}
	var clouds strings.Builder
	clouds.WriteString("clouds:\n")
	for name, password := range passwords {
		fmt.Fprintf(&clouds, "  %s: {auth: {auth_url: %q, username: ci, password: %q, project_name: p, user_domain_name: d, project_domain_name: d}}\n",
			name, echo(t)+"/v3", password)
	}
	file := filepath.Join(t.TempDir(), "clouds.yaml")
	if err := os.WriteFile(file, []byte(clouds.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OS_CLIENT_CONFIG_FILE", file)
	var out logged
	a := &app{flags: &cli{Debug: true}, stderr: &out}
	open := site{log: a.logger(hclog.Debug), secrets: &a.secrets}.providers().Open
	var said strings.Builder
	for name := range passwords {
		p, err := open(configs.Provider{Name: name, Driver: configs.DriverOpenStack, Cloud: name})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err = p.ListNodes(ctx)
		cancel()
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		said.WriteString(err.Error())
		a.logger(hclog.Debug).Error("Cannot list", "error", err, "echo", passwords[name])
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{said.String(), out.String()} {
		if !strings.Contains(text, "********") {
			t.Errorf("nothing was masked, so nothing was echoed: %s", text)
		}
		for _, part := range []string{"northern", "rd/of", "of+south"} {
			if strings.Contains(text, part) {
				t.Errorf("%q shows in %s", part, text)
			}
		}
	}
}

// What looks like a secret by its name is one, whatever file it stands in.
func TestSecretsOfTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	main := write("nodepool.yaml", `
zookeeper-servers: [{host: 127.0.0.1}]
diskimages:
  - name: base
    abstract: true
    env-vars: {MIRROR_TOKEN: value-of-mirror, DIB_RELEASE: bookworm}
  - {name: a, parent: base, elements: [vm], env-vars: {DIB_DEV_USER_PASSWORD: value-of-password, TOKENIZER: value-of-tokenizer}}
  - {name: b, parent: base, elements: [vm], env-vars: {AWS_SECRET_ACCESS_KEY: value-of-aws, SSH_KEYS: value-of-keys}}
`)
	secure := write("secure.yaml", `
zookeeper-auth: {user: u, password: value-of-zookeeper}
webapp: {token: value-of-the-token}
diskimages: [{name: a, env-vars: {PLAIN: value-of-plain}}]
`)
	a := &app{flags: &cli{Config: main, Secure: secure}}
	if _, err := a.config(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]bool{
		"mirror": true, "password": true, "aws": true, "zookeeper": true, "the-token": true, "plain": true,
		"tokenizer": false, "keys": false,
	} {
		if got := a.secrets.Has("value-of-" + name); got != secret {
			t.Errorf("value-of-%s: is a secret: %t, want %t", name, got, secret)
		}
	}
}
