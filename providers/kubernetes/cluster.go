package kubernetes

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"poolkeeper/providers"
)

const (
	defaultCallTime = 30 * time.Second
	callsPerSecond  = 50 // in one process
	callsAtOnce     = 100

	dialTime        = 30 * time.Second
	handshakeTime   = 10 * time.Second
	idleTime        = 90 * time.Second
	idleConnections = 25
)

// cluster speaks with one API server.
type cluster struct {
	settings settings
	address  *url.URL
	login    *authenticator
	http     *http.Client
	pace     *rate.Limiter
	polite   providers.Courtesy
	callTime time.Duration
	calls    providers.CallCounter
}

// connect makes a client for a context of the kubeconfig, or, where there is no kubeconfig, for
// the cluster that we run in.
func connect(name string, opts Options) (*cluster, error) {
	s, err := readSettings(name)
	if err != nil {
		return nil, unusable("read the kubeconfig", err)
	}
	c := &cluster{
		settings: s, login: newAuthenticator(s, opts.Secrets), callTime: cmp.Or(opts.CallTime, defaultCallTime),
		pace: rate.NewLimiter(callsPerSecond, callsAtOnce),
	}
	if c.address, err = url.Parse(s.server.Server); err != nil {
		return nil, unusable("read the server of the kubeconfig", err)
	}
	t, err := c.transport()
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.login.renewed = t.CloseIdleConnections
	return c, nil
}

// transport makes the connections.
func (c *cluster) transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: dialTime, KeepAlive: dialTime}).DialContext,
		TLSHandshakeTimeout: handshakeTime, IdleConnTimeout: idleTime, MaxIdleConnsPerHost: idleConnections,
		DisableCompression: c.settings.server.PlainData, ForceAttemptHTTP2: true,
		HTTP2:           &http.HTTP2Config{SendPingTimeout: dialTime, PingTimeout: handshakeTime},
		TLSClientConfig: &tls.Config{ServerName: c.settings.server.TLSName, InsecureSkipVerify: c.settings.server.Insecure, MinVersion: tls.VersionTLS12}, //nolint:gosec // as the kubeconfig says
	}
	if proxy := c.settings.server.Proxy; proxy != "" {
		address, err := url.Parse(proxy)
		if err != nil {
			return nil, unusable("read proxy-url of the kubeconfig", err)
		}
		t.Proxy = http.ProxyURL(address)
	}
	ca, err := content(c.settings.server.CAData, c.settings.server.CAFile)
	if err != nil {
		return nil, unusable("read the certificate authority", err)
	}
	if len(ca) > 0 {
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(ca) {
			return nil, unusable("read the certificate authority", errors.New("it is no certificate in PEM"))
		}
	}
	t.TLSClientConfig.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		login, err := c.login.credentials(info.Context())
		if err != nil || login.cert == nil {
			return &tls.Certificate{}, err
		}
		return login.cert, nil
	}
	return t, nil
}

func (c *cluster) close() { c.http.CloseIdleConnections() }

// isSecure reports whether we log in at all: without TLS, credentials are not sent.
func (c *cluster) isSecure() bool { return c.address.Scheme == "https" }

// resources are what calls are told apart by, below a namespace.
var resources = []string{"pods", "secrets", "serviceaccounts", "roles", "rolebindings"}

// operation is the method of a call and what it is about.
func operation(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	at := slices.Index(parts, "namespaces")
	if at < 0 {
		return req.Method + " other"
	}
	if below := at + 2; below < len(parts) && slices.Contains(resources, parts[below]) {
		return req.Method + " " + parts[below]
	}
	return req.Method + " namespaces"
}

// Calls implements providers.Asker.
func (p *Provider) Calls() []providers.Calls { return p.cluster.calls.Calls() }

// ourToken is the token that we log in with.
//
// Errors: providers.ErrUnusable when we log in without one.
func (c *cluster) ourToken(ctx context.Context) (string, error) {
	if c.isSecure() {
		login, err := c.login.credentials(ctx)
		if err != nil {
			return "", failure(err)
		}
		if login.token != "" {
			return login.token, nil
		}
	}
	return "", fmt.Errorf("%w: its context of the kubeconfig logs in without a token, and Zuul needs one", providers.ErrUnusable)
}

// ca is the PEM of the authority of the API server, in base64; "" is unknown.
func (c *cluster) ca() string {
	data, _ := content(c.settings.server.CAData, c.settings.server.CAFile) // without it Zuul goes by its own authorities
	return base64.StdEncoding.EncodeToString(data)
}

// get reads an object.
func (c *cluster) get(ctx context.Context, path string, into any) error {
	data, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// create makes an object below a path. into, when set, gets what the server made of it.
func (c *cluster) create(ctx context.Context, path string, body, into any) error {
	data, err := c.do(ctx, request{method: http.MethodPost, path: path, body: body})
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// remove asks for an object's deletion, if it is still the one of the uid.
func (c *cluster) remove(ctx context.Context, path, uid string) error {
	_, err := c.do(ctx, request{method: http.MethodDelete, path: path, body: map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
		"preconditions": map[string]any{"uid": uid},
	}})
	return err
}

// page is one part of a list.
type page struct {
	Kind     string
	Metadata struct{ Continue string }
	Items    *[]object
}

const (
	listPage  = 500    // how many objects one answer holds at most
	mostPages = 10_000 // more than any list has
)

// list reads all objects of a selector in a namespace, or outside of all. It is complete, or an error.
func (c *cluster) list(ctx context.Context, path, namespace, selector string) ([]object, error) {
	var all []object
	asked := map[string]bool{}
	for next := ""; ; {
		query := url.Values{"limit": {fmt.Sprint(listPage)}}
		if selector != "" {
			query.Set("labelSelector", selector)
		}
		if next != "" {
			query.Set("continue", next)
		}
		data, err := c.do(ctx, request{method: http.MethodGet, path: path, query: query})
		if err != nil {
			return nil, err
		}
		var one page
		if err := json.Unmarshal(data, &one); err != nil {
			return nil, err
		}
		switch {
		case one.Items != nil:
			if slices.ContainsFunc(*one.Items, func(o object) bool { return o.Metadata.Namespace != namespace }) {
				return nil, fmt.Errorf("%w: the list has what is elsewhere", providers.ErrTransient)
			}
			all = append(all, *one.Items...)
		case !strings.HasSuffix(one.Kind, "List"): // an empty list would give up all that is there
			return nil, fmt.Errorf("%w: the answer has no list", providers.ErrTransient)
		}
		if next = one.Metadata.Continue; next == "" {
			return all, nil
		}
		if asked[next] || len(asked) == mostPages {
			return nil, fmt.Errorf("%w: the list has no end", providers.ErrTransient)
		}
		asked[next] = true
	}
}
