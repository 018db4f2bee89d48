package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/devenv"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// stopping tells of the end of a development environment while it goes on: what it
// waits for, and when it is over.
type stopping struct {
	a     *app.App
	once  sync.Once
	stage atomic.Value // string
	done  func()       // ends the telling; nil before it began
}

// begin says that the end has begun, once.
func (s *stopping) begin() {
	s.once.Do(func() {
		fmt.Fprintln(s.a.Stdout, "Stopping.")
		s.at("the builder and the launcher")
		s.done = app.NewTeller(s.a.Stderr).During(func() string {
			stage, _ := s.stage.Load().(string)
			return "stopping: waiting for " + stage
		})
	})
}

// at names what is waited for from now on.
func (s *stopping) at(stage string) { s.stage.Store(stage) }

// end says that nothing runs any more.
func (s *stopping) end() {
	s.begin()
	s.done()
	fmt.Fprintln(s.a.Stdout, "Stopped.")
}

// launchersWait is how long the end of an environment waits for launchers beside it,
// which may have been told to stop at the same moment.
const launchersWait = 10 * time.Second

// awaitLaunchers waits until no launcher is registered any more: one that is about to
// stop may still start a guest, which nobody would delete after us. A launcher that
// goes on is not waited for any longer.
func awaitLaunchers(ctx context.Context, s site, zookeeper *devenv.ZooKeeper) {
	ctx, cancel := context.WithTimeout(ctx, launchersWait)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		session, err := s.client.Session(ctx)
		if err != nil {
			return
		}
		left, err := recipe.Members(ctx, session, zkmodel.ComponentsRoot+"/"+zkmodel.KindLauncher)
		if err != nil || len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-zookeeper.Exited():
			return
		case <-ctx.Done():
			s.log.Warn("A launcher beside this environment goes on: what it starts from now on stays", "launchers", len(left))
			return
		}
	}
}
