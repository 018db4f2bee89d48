package openstack_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zuul"
)

// retention is for how long a backing node is kept in any case.
const retention = 90 * time.Second

// slotSite is plainSite with a provider whose nodes are slots on the stack's.
var slotSite = strings.Replace(plainSite, "  - name: tiny\n", "  - name: tiny\n  - name: slot\n", 1) + fmt.Sprintf(`
  - name: slots
    driver: metastatic
    pools:
      - name: main
        labels: [{name: slot, backing-label: tiny, max-parallel-jobs: 2, grace-time: 1, min-retention-time: %d}]
`, int(retention.Seconds()))

// Slots on servers of a real cloud: a server is asked for, shared by jobs, outlives launchers
// that are killed while it boots and while jobs run on it, is kept, and goes.
func TestSiteSlots(t *testing.T) {
	s := newSiteOf(t, slotSite)
	s.start("builder")
	s.start("launcher")
	s.awaitImages(1)

	asked := time.Now()
	request := s.submitLabel("slot")
	s.await("a server in launch", func() bool {
		rows := s.nodesOf("tiny")
		return len(rows) == 1 && rows[0]["state"] == "building"
	})
	s.kill("launcher")
	s.start("launcher")
	first := s.job(request)
	second := s.job(s.submitLabel("slot"))
	backing := first.Object("driver_data")["backing_node"]
	if second.Object("driver_data")["backing_node"] != backing || first.Text("interface_ip") != second.Text("interface_ip") || !strings.HasPrefix(first.Text("interface_ip"), "198.51.100.") {
		t.Errorf("the jobs are on %v of %v and %v of %v", first.Object("driver_data"), first.Text("interface_ip"), second.Object("driver_data"), second.Text("interface_ip"))
	}
	s.wantServers(1)

	s.kill("launcher") // below both jobs
	for _, n := range []*zuul.Node{first, second} {
		if row := s.row(n.ID); row["state"] != "in-use" || row["locked"] != "locked" {
			t.Errorf("without a launcher the job's node is %v", row)
		}
	}
	s.start("launcher")
	third := s.job(s.submitLabel("slot"))
	if third.Object("driver_data")["backing_node"] == backing {
		t.Errorf("three jobs on %v", third.Object("driver_data"))
	}
	s.wantServers(2)

	if err := s.zuul.Return(first, second); err != nil {
		t.Fatal(err)
	}
	s.await("the slots free", func() bool { return len(s.nodesOf("slot")) == 1 })
	if row := s.row(fmt.Sprint(backing)); time.Since(asked) < retention-5*time.Second && row["state"] != "in-use" {
		t.Errorf("within min-retention-time the backing node is %v", row)
	}
	s.giveBack(third)
	if took := time.Since(asked); took < retention {
		t.Errorf("all are gone after %s", took)
	}
	s.wantTruth()
	s.wantServers(0)
}

// job takes over the node of a request, and uses it, as Zuul does.
func (s *site) job(request string) *zuul.Node {
	s.t.Helper()
	n := s.take(request)
	if err := s.zuul.Use(n); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// nodesOf lists the nodes of a label.
func (s *site) nodesOf(label string) (rows []map[string]any) {
	s.t.Helper()
	for _, row := range s.list("list") {
		if strings.Contains(fmt.Sprint(row["label"], row["labels"]), label) {
			rows = append(rows, row)
		}
	}
	return rows
}

// row is what the list says of a node; nothing when it is gone.
func (s *site) row(id string) map[string]any {
	s.t.Helper()
	for _, row := range s.list("list") {
		if row["id"] == id {
			return row
		}
	}
	return nil
}

// wantServers counts the servers of the project, as the official client sees them.
func (s *site) wantServers(n int) {
	s.t.Helper()
	if servers := listings(s.t, s.cloud, listServers)[0]; len(servers) != n {
		s.t.Errorf("there are %d servers, want %d: %v", len(servers), n, servers)
	}
}
