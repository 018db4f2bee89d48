package openstack

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/providers"
)

// Mistake: limits that may not be read look like a failure of the moment, so that pools that ignore them launch nothing.
func TestLimitsThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	s := newStub(t)
	p := s.open(t, section())
	s.fail("GET /compute/v2.1/limits", 1000, answer(403))
	_, err := p.Limits(t.Context(), nil)
	if !errors.Is(err, providers.ErrNoLimits) || !strings.Contains(err.Error(), "ignore-provider-quota: true") {
		t.Errorf("Limits gave %v", err)
	}
	if id, err := p.CreateNode(t.Context(), nodeSpec(upload(t, p))); err != nil {
		t.Errorf("CreateNode gave %q, %v", id, err)
	}
}

// Mistakes: a list of zones that fails keeps nodes from being created, is logged for each node, or in the words of
// the library; the zones are not used when they are listed again.
func TestZonesThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"400": answer(400), "500": answer(500), "no answer": hangUp,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t)
			p := s.open(t, section())
			p.pace.total = 50 * time.Millisecond
			var log strings.Builder
			p.log = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Warn})
			now := time.Now()
			p.now = func() time.Time { return now }
			image := upload(t, p)
			s.fail("GET /compute/v2.1/os-availability-zone", 1000, fault)
			for _, node := range []string{"0000000001", "0000000002"} {
				spec := nodeSpec(image)
				spec.NodeID = node
				if zone := ordered(t, s, p, spec)["availability_zone"]; zone != nil {
					t.Errorf("node %s is created in zone %v", node, zone)
				}
				now = now.Add(time.Minute)
			}
			if text := log.String(); strings.Count(text, "Failed to list availability zones") != 1 || strings.Contains(text, "http:") {
				t.Errorf("logged %q", text)
			}
			s.calm()
			spec := nodeSpec(image)
			spec.NodeID = "0000000003"
			if zone := ordered(t, s, p, spec)["availability_zone"]; zone != "az1" {
				t.Errorf("when the cloud lists its zones again, a node is created in zone %v", zone)
			}
		})
	}
}
