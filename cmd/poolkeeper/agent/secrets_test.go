package agent

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
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
	var out diary
	a := &app.App{Flags: &app.Flags{Debug: true}, Stderr: &out}
	open := site{log: a.Logger(hclog.Debug), secrets: &a.Secrets}.providers().Open
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
		a.Logger(hclog.Debug).Error("Cannot list", "error", err, "echo", passwords[name])
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, text := range []string{said.String(), out.all()} {
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
