package site_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/aws/endpoint"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

// Amazon takes a spot instance back whose node is ready, and one whose node is in use: the first node goes, with that as its reason, and
// another one comes; the second goes when Zuul has done with it, with that reason, too. The image is not blamed.
func TestNodesAreTakenBack(t *testing.T) {
	s := newSite(t)
	text := strings.Replace(s.config, "{name: spot}", "{name: spot, min-ready: 1}", 1)
	if err := os.WriteFile(filepath.Join(s.dir, "nodepool.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e := s.amazon
	said := func(parts ...string) bool {
		log, _ := os.ReadFile(filepath.Join(s.dir, "daemons.log"))
		for line := range strings.Lines(string(log)) {
			all := true
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				return true
			}
		}
		return false
	}
	launcher := s.daemon("launcher")
	request, err := s.zuul.Submit(zuul.Wish{Labels: []string{"spot"}})
	if err != nil {
		t.Fatal(err)
	}
	used := s.take(request)
	var ready endpoint.Thing
	zktest.Eventually(t, func() bool {
		for _, ready = range e.Instances() {
			if id := ready.Tags["nodepool_node_id"]; id != used.ID && said("Node is ready", "node="+id) {
				return true
			}
		}
		return false
	}, "another one is ready")
	for _, i := range e.Instances() {
		e.Interrupt(i.ID)
	}
	for _, want := range [][]string{
		{"WARN", "Amazon has taken an instance back", "node=" + used.ID, "spot interruption"},
		{"WARN", "Amazon has taken an instance back", ready.ID, "spot interruption"},
		{"Deleting node", "node=" + ready.Tags["nodepool_node_id"], "spot interruption"},
	} {
		patiently(t, "the log says "+strings.Join(want, " "), func() bool { return said(want...) })
	}
	patiently(t, "another one comes", func() bool { return len(e.Instances()) == 1 })
	if err := s.zuul.Return(used); err != nil {
		t.Fatal(err)
	}
	patiently(t, "its reason is told", func() bool { return said("Deleting node", "node="+used.ID, "spot interruption") })
	if said("suspect") || said("Launch failed") {
		t.Error("the image is blamed")
	}
	s.kill(launcher)
}

// patiently waits for what a launcher looks for once a minute.
func patiently(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(4 * time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within four minutes: %s", what)
		}
	}
}
