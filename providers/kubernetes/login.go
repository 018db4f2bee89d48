package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

const (
	tokenFileAge = time.Minute      // how long the content of a token file is used
	renewBefore  = 30 * time.Second // before the end of credentials
	programEnd   = time.Second      // how long a killed program may keep its output open
)

// credentials are what a call logs in with.
type credentials struct {
	token string
	cert  *tls.Certificate
	until time.Time // when they are read again; zero is never
}

// authenticator provides credentials. All calls to one cluster share it.
type authenticator struct {
	settings settings
	secrets  *redact.Secrets
	renewed  func()        // is called when the certificate has changed
	turn     chan struct{} // holds one value while no call uses what is below

	current *credentials
	heard   string // the token that was reported last to secrets
}

func newAuthenticator(s settings, secrets *redact.Secrets) *authenticator {
	a := &authenticator{settings: s, secrets: secrets, turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// credentials returns credentials that are valid now. It reads files and runs the program of the
// kubeconfig when they are due; the program is killed when ctx ends.
func (a *authenticator) credentials(ctx context.Context) (*credentials, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-a.turn:
	}
	defer func() { a.turn <- struct{}{} }()
	if now := clock.Now(ctx); a.current == nil || !a.current.until.IsZero() && now.After(a.current.until) {
		next, err := a.read(ctx, now)
		if err != nil {
			return nil, err
		}
		if a.current != nil && (next.cert != nil || a.current.cert != nil) {
			a.renewed() // open connections use the old one
		}
		a.current = next
	}
	if token := a.current.token; token != a.heard && token != "" {
		a.heard = token
		a.secrets.Add(token)
	}
	return a.current, nil
}

// renew forgets credentials that the server has refused, so that the next call reads them again. It reports whether they are
// others by now: files may have changed since they were read, and a program may print new ones.
func (a *authenticator) renew(ctx context.Context, which *credentials) bool {
	<-a.turn
	if a.current == which {
		a.current = nil
	}
	a.turn <- struct{}{}
	if u := &a.settings.user; which == nil || u.Exec == nil && u.TokenFile == "" && u.CertFile == "" {
		return false
	}
	next, err := a.credentials(ctx)
	return err == nil && (next.token != which.token || next.cert != nil && (which.cert == nil || !slices.EqualFunc(next.cert.Certificate, which.cert.Certificate, bytes.Equal)))
}

func (a *authenticator) read(ctx context.Context, now time.Time) (*credentials, error) {
	u := &a.settings.user
	if u.Exec != nil {
		return a.run(ctx)
	}
	c := &credentials{token: u.Token}
	if u.TokenFile != "" {
		text, err := os.ReadFile(u.TokenFile)
		switch token := strings.TrimSpace(string(text)); {
		case token != "":
			c.token = token
		case c.token == "":
			return nil, fmt.Errorf("%w: read token: %w", providers.ErrUnusable, cmp.Or(err, errors.New(u.TokenFile+" is empty")))
		}
		c.until = now.Add(tokenFileAge)
	}
	if u.CertFile != "" {
		c.until = now.Add(tokenFileAge)
	}
	cert, err := content(u.CertData, u.CertFile)
	if err != nil || cert == nil {
		return c, unusable("read client certificate", err)
	}
	key, err := content(u.KeyData, u.KeyFile)
	if err == nil {
		c.cert, err = pair(cert, key)
	}
	return c, unusable("read client certificate and key", err)
}

func pair(cert, key []byte) (*tls.Certificate, error) {
	p, err := tls.X509KeyPair(cert, key)
	return &p, err
}

// unusable says that the kubeconfig cannot be used.
func unusable(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %w", providers.ErrUnusable, doing, err)
}

// run runs the program of the kubeconfig, as client.authentication.k8s.io defines it.
func (a *authenticator) run(ctx context.Context) (*credentials, error) {
	p := a.settings.user.Exec
	spec := map[string]any{"interactive": false}
	if p.ProvideCluster {
		s := &a.settings.server
		ca, _ := content(s.CAData, s.CAFile) // was read before, by connect
		spec["cluster"] = map[string]any{
			"server": s.Server, "tls-server-name": s.TLSName, "insecure-skip-tls-verify": s.Insecure,
			"certificate-authority-data": ca, "proxy-url": s.Proxy,
		}
	}
	info, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": spec})
	if err != nil {
		return nil, err
	}
	var out, words bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Command, p.Args...)
	cmd.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	for _, v := range p.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &words, programEnd
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: run %s: %w", providers.ErrTransient, p.Command, context.Cause(ctx))
		}
		if errors.Is(err, exec.ErrNotFound) {
			err = fmt.Errorf("%w %s", err, p.InstallHint)
		}
		return nil, fmt.Errorf("get credentials: run %s: %w %s", p.Command, err, providers.Words(words.String()))
	}
	var answer struct {
		Kind   string
		Status struct {
			Token, ClientCertificateData, ClientKeyData string
			ExpirationTimestamp                         time.Time
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return nil, fmt.Errorf("get credentials: %s does not print an ExecCredential: %w", p.Command, err)
	}
	c := &credentials{token: answer.Status.Token, until: answer.Status.ExpirationTimestamp}
	if cert := answer.Status.ClientCertificateData; cert != "" {
		if c.cert, err = pair([]byte(cert), []byte(answer.Status.ClientKeyData)); err != nil {
			return nil, fmt.Errorf("get credentials: certificate of %s: %w", p.Command, err)
		}
	}
	if answer.Kind != "ExecCredential" || c.token == "" && c.cert == nil {
		return nil, fmt.Errorf("get credentials: %s prints neither a token nor a certificate", p.Command)
	}
	if !c.until.IsZero() {
		c.until = c.until.Add(-renewBefore)
	}
	return c, nil
}

// authorize adds credentials to a call.
func (a *authenticator) authorize(req *http.Request, c *credentials) {
	u := &a.settings.user
	switch {
	case c.token != "":
		req.Header.Set("Authorization", "Bearer "+c.token)
	case u.Username != "":
		req.SetBasicAuth(u.Username, u.Password)
	}
	if u.As == "" {
		return
	}
	req.Header.Set("Impersonate-User", u.As)
	if u.AsUID != "" {
		req.Header.Set("Impersonate-Uid", u.AsUID)
	}
	for _, group := range u.AsGroups {
		req.Header.Add("Impersonate-Group", group)
	}
	for key, values := range u.AsExtra {
		for _, value := range values {
			req.Header.Add("Impersonate-Extra-"+key, value)
		}
	}
}
