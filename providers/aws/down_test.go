package aws

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
)

// An instance that was stopped or ends cannot be used: lists say so. One that has ended is in no list.
func TestListsShowWhatIsDown(t *testing.T) {
	a := &amazon{}
	_, p := openOn(t, a)
	for state, want := range map[string]string{
		"pending": "", "running": "", "stopping": "its instance is stopping", "stopped": "its instance is stopped", "shutting-down": "its instance is shutting-down",
	} {
		p.forgetAll()
		a.set("DescribeInstances", http.StatusOK, []byte(strings.Replace(usual["DescribeInstances"], "running", state, 1)), func() {})
		nodes, err := p.ListNodes(t.Context())
		got := "missing"
		for _, n := range nodes {
			if n.ExternalID == ourNode {
				got = n.Down
			}
		}
		if err != nil || got != want {
			t.Errorf("%s: down is %q, %v, want %q", state, got, err, want)
		}
	}
	p.forgetAll()
	a.set("DescribeInstances", http.StatusOK, []byte(strings.Replace(usual["DescribeInstances"], "running", "terminated", 1)), func() {})
	if nodes, err := p.ListNodes(t.Context()); err != nil || len(nodes) != 1 || nodes[0].ExternalID != theirNode {
		t.Errorf("of a terminated instance: %+v, %v", nodes, err)
	}
}

// A user that may not list the account's quotas: pools that ignore them are limited by the configuration, others say so.
func TestQuotasThatCannotBeRead(t *testing.T) {
	a := &amazon{}
	_, p := openOn(t, a)
	a.set("ListServiceQuotas", http.StatusBadRequest, []byte(`{"__type": "AccessDeniedException", "message": "User u is not authorized"}`), func() {})
	p.own.MaxServers = 3
	if _, err := p.Limits(t.Context(), nil); !errors.Is(err, providers.ErrNoLimits) || !strings.Contains(err.Error(), "User u is not authorized") || !strings.Contains(err.Error(), "ignore-provider-quota: true") {
		t.Errorf("Limits: %v", err)
	}
	p.cfg.Pools[0].IgnoreProviderQuota = true
	if limits, err := p.Limits(t.Context(), nil); err != nil || len(limits) != 1 || limits[providers.Instances] != 3 {
		t.Errorf("with ignore-provider-quota: %v, %v", limits, err)
	}
}

// Mistake: when the zone that Amazon chose has no capacity and the zones cannot be listed, the launch fails for the list.
func TestZonesThatCannotBeListed(t *testing.T) {
	denied := `<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>not yours</Message></Error></Errors></Response>`
	a := &amazon{refuses: map[string]string{"DescribeAvailabilityZones": denied, "RunInstances": strings.Replace(denied, "UnauthorizedOperation", "InsufficientInstanceCapacity", 1)}}
	_, p := openOn(t, a)
	var log strings.Builder
	p.log = hclog.New(&hclog.LoggerOptions{Output: &log})
	create := func(node string) error {
		_, err := p.CreateNode(t.Context(), providers.NodeSpec{
			NodeID: node, Pool: "main", Label: "small", ImageID: ourImage, Asking: func(context.Context) error { return nil },
		})
		return err
	}
	for _, node := range []string{"1", "2"} {
		if err := create(node); !errors.Is(err, providers.ErrQuota) || errors.Is(err, providers.ErrUnusable) || strings.Contains(err.Error(), "list zones") {
			t.Errorf("without capacity: %v", err)
		}
	}
	if n := strings.Count(log.String(), "Failed to list availability zones"); n != 1 || !strings.Contains(log.String(), "not yours") {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}

// Mistake: an error of the network shows the address of a call and the library's words.
func TestNoAnswerIsNamed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	_, p := openOn(t, &amazon{})
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	p, err := New(p.cfg, Options{Logger: p.log, RetryTime: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = p.otherZones(t.Context()); !errors.Is(err, providers.ErrTransient) || strings.Contains(err.Error(), "Post ") || strings.Contains(err.Error(), "StatusCode") {
		t.Errorf("otherZones: %v", err)
	}
}

// A certificate that is not trusted is named as such, with the setting that helps; nothing was asked for then.
func TestCertificateThatIsNotTrusted(t *testing.T) {
	_, p := openOn(t, &amazon{})
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	p, err := New(p.cfg, Options{Logger: p.log})
	if err != nil {
		t.Fatal(err)
	}
	want := "the certificate of " + strings.TrimPrefix(server.URL, "https://") + " is not trusted, name its authority with AWS_CA_BUNDLE"
	_, err = p.ListNodes(t.Context())
	if !errors.Is(err, providers.ErrUnusable) || !strings.Contains(err.Error(), want) || unanswered(err) {
		t.Errorf("ListNodes: %v", err)
	}
}
