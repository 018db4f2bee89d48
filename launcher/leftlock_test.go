package launcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// A request whose lock another session has kept waits until that session lets go, and
// the log says so; then it is served.
func TestLockThatIsNoLaunchersIsTold(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	log := &book{}
	before := zkmodel.EpochOf(time.Now().Add(-2 * time.Minute))
	locks := map[string]*recipe.Held{}
	for _, state := range []zkmodel.RequestState{zkmodel.RequestPending, zkmodel.RequestRequested} {
		r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, Requestor: "zuul-test", State: state, StateTime: before}
		if err := s.store.CreateRequest(t.Context(), "200", r); err != nil {
			t.Fatal(err)
		}
		lock, _, err := s.store.LockRequest(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		locks[r.ID] = lock
	}
	s.launch(func(d *launcher.Deps) {
		d.Resync, d.Logger = 200*time.Millisecond, hclog.New(&hclog.LoggerOptions{Output: log})
	})
	for id, lock := range locks {
		zktest.Eventually(t, func() bool {
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "no launcher's") && strings.Contains(line, id) {
					return true
				}
			}
			return false
		}, "the log tells of request %s", id)
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if out := s.wait(id); out.State != "fulfilled" {
			t.Errorf("%+v", out)
		}
	}
}
