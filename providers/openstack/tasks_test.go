package openstack

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/statsdtest"
	"poolkeeper/test/zktest"
)

// Calls are sent to statsd under the keys of openstacksdk, which dashboards of Nodepool show. Mistakes: ids in keys, which make a
// key for each server; a call without an answer that is not counted; log-ins, which openstacksdk does not report.
func TestTasksOfStatsd(t *testing.T) {
	s := newStub(t)
	figures := statsdtest.Start(t)
	p := s.open(t, section())
	p.statsd = figures.Client(t)
	if _, err := p.ListNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = p.DeleteImage(t.Context(), "11111111-0000-0000-0000-000000000001") // that it is not there is an answer
	prefix := "nodepool.task." + p.Name() + "."
	for _, want := range []string{
		prefix + "compute.GET.servers_detail.200:1|c", prefix + "compute.GET.servers_detail.attempted:1|c",
		prefix + "image.DELETE.image.404:1|c", prefix + "image.DELETE.image.attempted:1|c",
	} {
		zktest.Eventually(t, func() bool { return slices.Contains(figures.Lines(), want) }, "%s", want)
	}
	zktest.Eventually(t, func() bool {
		return slices.ContainsFunc(figures.Lines(), func(line string) bool {
			return strings.HasPrefix(line, prefix+"compute.GET.servers_detail.200:") && strings.HasSuffix(line, "|ms")
		})
	}, "the time of a call")
	for _, line := range figures.Lines() {
		if strings.HasPrefix(line, prefix) && (strings.Contains(line, "tokens") || strings.Contains(line, "11111111")) {
			t.Errorf("sent %s", line)
		}
	}
	session, err := p.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, session.compute.ServiceURL("servers", "5f0c", "action"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	p.reportTask(session, r, nil, slowTask, http.ErrHandlerTimeout)
	p.reportTask(session, r, &http.Response{StatusCode: http.StatusAccepted}, slowTask+1, nil)
	for _, want := range []string{"failed", "over_1000", "202"} {
		line := prefix + "compute.POST.server_action." + want + ":1|c"
		zktest.Eventually(t, func() bool { return slices.Contains(figures.Lines(), line) }, "%s", line)
	}
}

// An operation is named by the words of a path, as openstacksdk names it.
func TestOperation(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"": "discovery", "v2.0": "discovery", "servers": "servers", "servers/detail": "servers_detail", "servers/5f0c": "server",
		"servers/5f0c/action": "server_action", "v2.0/networks": "networks", "v2.0/ports/5f0c.json": "port", "v2.0/floatingips.json": "floatingips",
		"v2/images/5f0c/file": "image_file", "os-availability-zone": "os-availability-zone", "limits": "limits", "a.b:c": "a_b_c",
	} {
		if got := operation(path); got != want {
			t.Errorf("%q is %q, want %q", path, got, want)
		}
	}
}
