package kubernetes

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

// loginSite is a folder with a kubeconfig for a server, which notes how it is asked.
type loginSite struct {
	dir    string
	server *httptest.Server
	last   atomic.Pointer[http.Request]
	answer atomic.Pointer[func(w http.ResponseWriter)] // nil is an empty list
}

func newLoginSite(t *testing.T) *loginSite {
	t.Helper()
	s := &loginSite{dir: t.TempDir()}
	s.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.last.Store(r)
		if answer := s.answer.Load(); answer != nil {
			(*answer)(w)
			return
		}
		_, _ = w.Write([]byte(`{"kind": "NamespaceList", "items": []}`))
	}))
	t.Cleanup(s.server.Close)
	return s
}

func (s *loginSite) write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // some are run
		t.Fatal(err)
	}
	return path
}

// kubeconfig writes a file with one context, which uses the authority of the server.
func (s *loginSite) kubeconfig(t *testing.T, name, user string) string {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
	return s.write(t, name, fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: %[1]s, clusters: [{name: %[1]s, cluster: {server: %[2]q, certificate-authority-data: %[3]q}}],"+
		" users: [{name: %[1]s, user: %[4]s}], contexts: [{name: %[1]s, context: {cluster: %[1]s, user: %[1]s}}]}",
		name, s.server.URL+"/prefix/", base64.StdEncoding.EncodeToString(ca), user))
}

// credential is a program that prints a token.
func (s *loginSite) credential(t *testing.T, token, until string) string {
	t.Helper()
	return s.write(t, "log-in", fmt.Sprintf("#!/bin/sh\necho \"$KUBERNETES_EXEC_INFO\" >%s/info\necho run >>%[1]s/runs\n"+
		"echo '{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", \"status\": {\"token\": %[2]q, \"expirationTimestamp\": %[3]q}}'\n", s.dir, token, until))
}

func (s *loginSite) runs(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(text), "run")
}

// Each way to log in that a kubeconfig has; sites use all of them.
func TestLogIns(t *testing.T) {
	s := newLoginSite(t)
	s.write(t, "token", "from-file\n")
	program := s.credential(t, "from-program", "2100-01-01T00:00:00Z")
	const run = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./log-in, provideClusterInfo: true, env: [{name: A, value: b}]}}"
	for user, want := range map[string]string{
		"{token: plain-token}":                  "Bearer plain-token",
		"{tokenFile: token}":                    "Bearer from-file",
		"{token: plain, tokenFile: token}":      "Bearer from-file",
		"{token: plain-token, tokenFile: none}": "Bearer plain-token",
		"{username: anna, password: secret}":    "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:secret")),
		run:                                     "Bearer from-program",
		"{exec: {command: " + program + "}}":    "Bearer from-program",
		"{token: t, as: bob, as-groups: [g]}":   "Bearer t",
		"{}":                                    "",
	} {
		t.Setenv("KUBECONFIG", filepath.Join(s.dir, "none")+":"+s.kubeconfig(t, "config", user))
		secrets := &redact.Secrets{}
		c, err := connect("", Options{Secrets: secrets})
		if err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		if _, err := c.list(t.Context(), "/api/v1/namespaces", "", ""); err != nil {
			t.Errorf("%s: %v", user, err)
			continue
		}
		r := s.last.Load()
		if got := r.Header.Get("Authorization"); got != want || r.URL.Path != "/prefix/api/v1/namespaces" {
			t.Errorf("%s logs in with %q at %s, want %q", user, got, r.URL.Path, want)
		}
		if as := r.Header.Get("Impersonate-User") + r.Header.Get("Impersonate-Group"); (as == "bobg") != strings.Contains(user, "bob") {
			t.Errorf("%s acts as %q", user, as)
		}
		token, isToken := strings.CutPrefix(want, "Bearer ")
		if isToken && len(token) > 4 && strings.Contains(secrets.Text("it is "+token), token) {
			t.Errorf("%s: the token is not kept out of logs", user)
		}
		c.close()
	}
	var info struct {
		Spec struct {
			Cluster map[string]any
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "info")); err != nil || json.Unmarshal(text, &info) != nil {
		t.Errorf("the program was called with %s, %v", text, err)
	}
}

// A token that the server refuses, or whose end has come, is asked for again; another is not.
func TestProgramsRunAgain(t *testing.T) {
	s := newLoginSite(t)
	s.credential(t, "one", "2100-01-01T00:00:00Z")
	t.Setenv("KUBECONFIG", s.kubeconfig(t, "config", "{exec: {command: ./log-in}}"))
	c, err := connect("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	ask := func() error {
		_, err := c.list(t.Context(), "/api/v1/namespaces", "", "")
		return err
	}
	if err := errors.Join(ask(), ask()); err != nil || s.runs(t) != 1 {
		t.Errorf("a good token: %v, after %d runs", err, s.runs(t))
	}
	refuses := func(w http.ResponseWriter) {
		if s.last.Load().Header.Get("Authorization") == "Bearer two" {
			_, _ = w.Write([]byte(`{"kind": "NamespaceList", "items": []}`))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}
	s.answer.Store(&refuses)
	if err := failure(ask()); !errors.Is(err, providers.ErrUnusable) || s.runs(t) != 2 {
		t.Errorf("a refused token: %v, after %d runs", err, s.runs(t))
	}
	s.credential(t, "two", "2100-01-01T00:00:00Z")
	if err := ask(); err != nil || s.runs(t) != 3 {
		t.Errorf("another token instead of a refused one: %v, after %d runs", err, s.runs(t))
	}
	s.credential(t, "one", "2100-01-01T00:00:00Z")
	c.login.current.until = time.Now()
	if err := failure(ask()); !errors.Is(err, providers.ErrUnusable) {
		t.Errorf("a refused token: %v", err)
	}
	s.credential(t, "two", time.Now().Format(time.RFC3339))
	before := s.runs(t)
	if err := errors.Join(ask(), ask()); err != nil || s.runs(t) <= before+1 || s.last.Load().Header.Get("Authorization") != "Bearer two" {
		t.Errorf("tokens that end: %v, after %d runs more", err, s.runs(t)-before)
	}
}

// A token file whose token was replaced is read again when the server refuses the old token, not a minute later.
func TestTokenThatWasReplaced(t *testing.T) {
	s := newLoginSite(t)
	s.write(t, "token", "old")
	t.Setenv("KUBECONFIG", s.kubeconfig(t, "config", "{tokenFile: token}"))
	c, err := connect("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	valid, asked := "Bearer old", 0
	answer := func(w http.ResponseWriter) {
		if asked++; s.last.Load().Header.Get("Authorization") != valid {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"kind": "NamespaceList", "items": []}`))
	}
	s.answer.Store(&answer)
	ask := func() error {
		_, err := c.list(t.Context(), "/api/v1/namespaces", "", "")
		return failure(err)
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	valid = "Bearer new"
	if err := ask(); !errors.Is(err, providers.ErrUnusable) || asked != 2 {
		t.Errorf("the same token in the file: %v, asked %d times", err, asked)
	}
	s.write(t, "token", "new")
	if err := ask(); err != nil || asked != 4 {
		t.Errorf("another token in the file: %v, asked %d times", err, asked)
	}
}

// A certificate that is not trusted is named as such, with the setting that helps.
func TestCertificateThatIsNotTrusted(t *testing.T) {
	s := newLoginSite(t)
	text, err := os.ReadFile(s.kubeconfig(t, "config", "{token: plain}"))
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), ", certificate-authority-data")
	_, after, _ := strings.Cut(string(text), `"}}], users`)
	t.Setenv("KUBECONFIG", s.write(t, "untrusted", before+"}}], users"+after))
	c, err := connect("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	_, err = c.list(t.Context(), "/api/v1/namespaces", "", "")
	host := strings.TrimPrefix(s.server.URL, "https://")
	if err = failure(err); !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), "the certificate of "+host+" is not trusted, name its authority with certificate-authority in the kubeconfig") {
		t.Errorf("%v", err)
	}
}

// Any refusal with Retry-After is one of the moment, whatever its status; a server that asks for long is left alone that long.
func TestServerThatAsksToWait(t *testing.T) {
	past := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		status int
		header string
	}{{503, past}, {503, "0"}, {500, "soon"}, {429, "0"}, {403, "0"}, {413, "0"}, {400, past}} {
		s := newLoginSite(t)
		t.Setenv("KUBECONFIG", s.kubeconfig(t, "config", "{token: plain}"))
		conn, err := connect("", Options{})
		if err != nil {
			t.Fatal(err)
		}
		asked, busy := 0, 1
		answer := func(w http.ResponseWriter) {
			if asked++; asked > busy {
				_, _ = w.Write([]byte(`{"kind": "NamespaceList", "items": []}`))
				return
			}
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.status)
		}
		s.answer.Store(&answer)
		ask := func() error {
			_, err := conn.list(t.Context(), "/api/v1/namespaces", "", "")
			return failure(err)
		}
		if err := ask(); err != nil || asked != 2 {
			t.Errorf("%d with Retry-After: %s: %v, asked %d times", c.status, c.header, err, asked)
		}
		asked, busy, c.header = 0, 1000, "120"
		for range 2 {
			if err := ask(); !errors.Is(err, providers.ErrTransient) || providers.PauseOf(err) < 100*time.Second || asked != 1 {
				t.Errorf("%d with Retry-After: 120: %v, pause %s, asked %d times", c.status, err, providers.PauseOf(err), asked)
			}
		}
		conn.close()
	}
}

// The server says when it wants to be asked again. A redirection would take the token elsewhere.
func TestAnswersThatAskForMore(t *testing.T) {
	s := newLoginSite(t)
	t.Setenv("KUBECONFIG", s.kubeconfig(t, "config", "{token: plain}"))
	c, err := connect("", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	var asked atomic.Int32
	busy := func(w http.ResponseWriter) {
		if asked.Add(1) < 3 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte(`{"kind": "NamespaceList", "items": []}`))
	}
	s.answer.Store(&busy)
	if _, err := c.list(t.Context(), "/api/v1/namespaces", "", ""); err != nil || asked.Load() != 3 {
		t.Errorf("a busy server: %v, asked %d times", err, asked.Load())
	}
	elsewhere := func(w http.ResponseWriter) {
		w.Header().Set("Location", "https://127.0.0.1:1/")
		w.WriteHeader(http.StatusFound)
	}
	s.answer.Store(&elsewhere)
	_, err = c.list(t.Context(), "/api/v1/namespaces", "", "")
	if e, ok := errors.AsType[*statusError](err); !ok || e.Code != http.StatusFound {
		t.Errorf("a redirection: %v", err)
	}
}

// A mistake in the kubeconfig is named when the provider is opened.
func TestKubeconfigsThatCannotBeUsed(t *testing.T) {
	s := newLoginSite(t)
	config := s.kubeconfig(t, "config", "{token: plain}")
	other := s.kubeconfig(t, "other", "{client-certificate: none, client-key: none}")
	for _, one := range []struct{ files, context, says string }{
		{config, "elsewhere", "elsewhere"},
		{config + ":" + other, "config", ""},
		{other + ":" + config, "config", ""},
		{s.write(t, "broken", "{"), "", "broken"},
		{s.write(t, "empty", "{}"), "", "current-context"},
		{s.write(t, "no-cluster", "{current-context: c, contexts: [{name: c, context: {cluster: gone}}]}"), "", "gone"},
		{s.kubeconfig(t, "plugin", "{auth-provider: {name: gcp}}"), "", "use exec"},
		{s.kubeconfig(t, "asks", "{exec: {command: ./log-in, interactiveMode: Always}}"), "", "terminal"},
	} {
		t.Setenv("KUBECONFIG", one.files)
		_, err := connect(one.context, Options{})
		if (err == nil) != (one.says == "") || err != nil && (!errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), one.says)) {
			t.Errorf("%s of %s: %v, want %q", one.context, one.files, err, one.says)
		}
	}
	t.Setenv("KUBECONFIG", config+":"+other)
	c, err := connect("other", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.list(t.Context(), "/api/v1/namespaces", "", ""); !errors.Is(err, providers.ErrUnusable) {
		t.Errorf("a client certificate that does not exist: %v", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.server.Certificate())
	if t2, ok := c.http.Transport.(*http.Transport); !ok || !t2.TLSClientConfig.RootCAs.Equal(pool) {
		t.Error("the authority of the kubeconfig is not used")
	}
}
