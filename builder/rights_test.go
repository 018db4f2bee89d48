package builder

import (
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// The rights to the whole tree are closed during a build, and the record of the builder changes meanwhile. The builder
// reports the refusal, keeps its build and its record, and writes both when the rights return.
func TestBuilderOutlivesClosedRights(t *testing.T) {
	t.Parallel()
	s, goOn := waitingSite(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(s.log)
		}
	})
	b := s.pausable("one")
	build := s.underWay()
	record := func() zkmodel.Component {
		list, err := s.store.Daemons(t.Context())
		if err != nil || len(list) != 1 {
			return zkmodel.Component{}
		}
		return list[0].Component
	}
	s.eventually("the builder is registered", func() bool { return record().State == zkmodel.ComponentRunning })
	before := record().Name

	allow := zktest.Forbid(t, s.server.Addr(), s.root, zkmodel.Root)
	b.Pause("closed")
	refused := func(what string) {
		t.Helper()
		s.eventually("the refusal of a write to "+what+" is reported", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			for line := range strings.Lines(s.log.String()) {
				if strings.Contains(line, "ZooKeeper refused an operation, will retry") && strings.Contains(line, what) {
					return true
				}
			}
			return false
		})
	}
	refused(zkmodel.ComponentsRoot)
	goOn()
	refused(build.Path())
	allow()

	s.eventually("the record shows the pause", func() bool { return record().Reason == "closed" })
	if after := record().Name; after != before {
		t.Errorf("the builder is registered as %s, was %s", after, before)
	}
	s.eventually("the build is ready", func() bool {
		ready := s.builds("img", zkmodel.BuildReady)
		return len(ready) == 1 && ready[0].ID == build.ID
	})
}
