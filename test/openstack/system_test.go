package openstack_test

import (
	"strings"
	"testing"

	"poolkeeper/test/zuul"
)

// wantMarks looks for what is ours as docs/openstack.md tells operators to.
func (s *site) wantMarks(node *zuul.Node) {
	s.t.Helper()
	lists := listings(s.t, siteCloud, "server list --long -c ID -c Name -c Properties",
		"image list --long --property nodepool_provider_name=stack-site")
	if len(lists[1]) != 1 {
		s.t.Errorf("images with our mark: %+v", lists[1])
	}
	for _, server := range lists[0] {
		if server.ID != node.Text("external_id") {
			continue
		}
		want := map[string]string{"nodepool_provider_name": "stack-site", "purpose": "test", "tenant": "tenant-one"}
		for key, value := range want {
			if server.Properties[key] != value {
				s.t.Errorf("server property %s is %q, want %q", key, server.Properties[key], value)
			}
		}
		return
	}
	s.t.Errorf("node %s is not in the list: %+v", node.Text("external_id"), lists[0])
}

// A node that nobody can log in to fails, its console is in the log, and its
// server goes.
func TestSiteConsole(t *testing.T) {
	s := newSiteOf(t, strings.NewReplacer("launch-timeout: 300", "launch-timeout: 300\n    launch-retries: 1\n    boot-timeout: 5",
		"host-key-checking: false", "host-key-checking: true", "key-name: ci-key", "key-name: ci-key\n            console-log: true",
	).Replace(plainSite))
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)
	if reason := s.refused("tiny"); !strings.Contains(reason, "198.51.100.") {
		t.Errorf("the request failed because of %q", reason)
	}
	s.awaitLog("launcher", "FAKE CONSOLE OUTPUT")
	s.await("no nodes", func() bool { return len(s.list("list")) == 0 })
	s.wantTruth()
}
