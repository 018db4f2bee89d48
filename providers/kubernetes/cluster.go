package kubernetes

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

const (
	defaultCallTime = 30 * time.Second
	callsPerSecond  = 50 // in one process; client-go's own 5 would make a burst of nodes wait
	callsAtOnce     = 100
)

// cluster speaks with one API server. It knows paths and JSON; client-go does the log-in, the
// TLS, the pace and the retries that the server asks for.
type cluster struct {
	config  *rest.Config
	http    *http.Client
	client  rest.Interface
	secrets *redact.Secrets
	calls   providers.CallCounter

	mu    sync.Mutex
	token string // that we logged in with last; "" without one
}

// connect makes a client for a context of the kubeconfig, or, where there is no kubeconfig, for
// the cluster that we run in.
func connect(name string, opts Options) (*cluster, error) {
	config, err := settings(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnusable, err)
	}
	config.Timeout = opts.CallTime
	if config.Timeout == 0 {
		config.Timeout = defaultCallTime
	}
	config.QPS, config.Burst = callsPerSecond, callsAtOnce
	config.UserAgent = "poolkeeper"
	config.WarningHandler = rest.NoWarnings{}
	config.APIPath = "/api"
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // what errors are
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c := &cluster{config: config, secrets: opts.Secrets}
	// client-go logs in outside of what is wrapped here, whichever way it does: with a token, a
	// file that holds one, or a program that gives one.
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &eavesdropper{c, next} })
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true // nobody is there to answer a question
	}
	if c.http, err = rest.HTTPClientFor(config); err == nil {
		c.http.Transport = &leaver{c.http.Transport}
		c.client, err = rest.RESTClientForConfigAndClient(config, c.http)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", providers.ErrUnusable, err)
	}
	return c, nil
}

// settings are those of a context; "" is the current one.
func settings(name string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	found := false
	for _, path := range rules.GetLoadingPrecedence() {
		_, err := os.Stat(path)
		found = found || err == nil
	}
	if !found {
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, fmt.Errorf("none of %s is there, and we do not run in a cluster", strings.Join(rules.GetLoadingPrecedence(), ", "))
		}
		return config, err
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
}

func (c *cluster) close() { utilnet.CloseIdleConnectionsFor(c.http.Transport) }

// leaver leaves a call whose context has ended. client-go waits for a program that logs in for as
// long as that runs, and its callers would hang with it.
type leaver struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l *leaver) RoundTrip(req *http.Request) (*http.Response, error) {
	type outcome struct {
		resp *http.Response
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		resp, err := l.next.RoundTrip(req) //nolint:bodyclose // by who gets it, or below
		done <- outcome{resp, err}
	}()
	select {
	case o := <-done:
		return o.resp, o.err
	case <-req.Context().Done():
		go func() {
			if o := <-done; o.resp != nil {
				_ = o.resp.Body.Close()
			}
		}()
		return nil, context.Cause(req.Context())
	}
}

// WrappedRoundTripper lets client-go see what is below.
func (l *leaver) WrappedRoundTripper() http.RoundTripper { return l.next }

// eavesdropper notes with which token client-go logs in.
type eavesdropper struct {
	cluster *cluster
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (e *eavesdropper) RoundTrip(req *http.Request) (*http.Response, error) {
	if token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer "); ok {
		e.cluster.loggedIn(token)
	}
	asked := clock.Now(req.Context())
	resp, err := e.next.RoundTrip(req)
	if err == nil {
		e.cluster.calls.Answered(operation(req), clock.Now(req.Context()).Sub(asked))
	}
	return resp, err
}

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

// WrappedRoundTripper lets client-go see what is below.
func (e *eavesdropper) WrappedRoundTripper() http.RoundTripper { return e.next }

func (c *cluster) loggedIn(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != token {
		c.token = token
		c.secrets.Add(token)
	}
}

// ourToken is the token that we log in with.
//
// Errors: providers.ErrUnusable when we log in without one.
func (c *cluster) ourToken(ctx context.Context) (string, error) {
	seen := func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.token
	}
	if token := seen(); token != "" {
		return token, nil
	}
	if err := c.client.Get().AbsPath("/version").Do(ctx).Error(); err != nil {
		return "", failure(err)
	}
	if token := seen(); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("%w: its context of the kubeconfig logs in without a token, and Zuul needs one", providers.ErrUnusable)
}

// ca is the PEM of the authority of the API server, in base64; "" is unknown.
func (c *cluster) ca() string {
	data := c.config.CAData
	if len(data) == 0 && c.config.CAFile != "" {
		data, _ = os.ReadFile(c.config.CAFile) // without it Zuul goes by its own authorities
	}
	return base64.StdEncoding.EncodeToString(data)
}

// answer is what the server said. Only Error reads what it says of a failure.
func answer(result rest.Result) ([]byte, error) {
	if err := result.Error(); err != nil {
		return nil, err
	}
	return result.Raw()
}

// get reads an object.
func (c *cluster) get(ctx context.Context, path string, into any) error {
	data, err := answer(c.client.Get().AbsPath(path).Do(ctx))
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// create makes an object below a path. into, when set, gets what the server made of it.
func (c *cluster) create(ctx context.Context, path string, body, into any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	data, err = answer(c.client.Post().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(data).Do(ctx))
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// remove asks for an object's deletion, if it is still the one of the uid.
func (c *cluster) remove(ctx context.Context, path, uid string) error {
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
		"preconditions": map[string]any{"uid": uid},
	})
	if err != nil {
		return err
	}
	return c.client.Delete().AbsPath(path).SetHeader("Content-Type", runtime.ContentTypeJSON).Body(body).Do(ctx).Error()
}

// page is one part of a list.
type page struct {
	Kind     string          `json:"kind"`
	Metadata metav1.ListMeta `json:"metadata"`
	Items    *[]object       `json:"items"`
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
		req := c.client.Get().AbsPath(path).Param("limit", fmt.Sprint(listPage))
		if selector != "" {
			req = req.Param("labelSelector", selector)
		}
		if next != "" {
			req = req.Param("continue", next)
		}
		data, err := answer(req.Do(ctx))
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
