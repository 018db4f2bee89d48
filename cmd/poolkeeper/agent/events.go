package agent

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/observe"
	"poolkeeper/zkmodel/history"
)

// observe has a daemon tell what others write, as far as its mirror shows it.
func (s site) observe(tree *zkmodel.Mirror, daemon, host string, parts ...observe.Part) {
	for _, part := range parts {
		s.events.Beside(observe.New(part, observe.Deps{
			Client: s.client, Tree: tree, Member: daemon + " " + host, Logger: s.log, Hold: s.process.Hold,
		}).Run)
	}
}

// beside is what goes on beside a daemon, for as long as it runs.
type beside struct{ all []func(ctx context.Context) }

// record has a daemon keep what it sees end, where the configuration names a folder for that;
// else it returns nil. Nodes and requests are those of a daemon that follows all of the tree.
func (s site) record(metrics prometheus.Registerer, tree *zkmodel.Mirror, daemon string, all bool) *history.Store {
	settings := s.cfg.WebApp.History
	if settings.Dir == "" || s.beside == nil {
		return nil
	}
	dir := settings.Dir
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(configs.StateDir(os.LookupEnv), dir)
	}
	limits := history.DefaultLimits
	limits.Age, limits.Bytes = time.Duration(settings.Days)*24*time.Hour, settings.Size
	log := s.log.Named("history")
	store := history.New(filepath.Join(dir, daemon+".db"), limits, log)
	metrics.MustRegister(store)
	s.beside.all = append(s.beside.all, history.NewRecorder(history.Deps{
		Client: s.client, Tree: tree, Nodes: all, Requests: all, Store: store, Logger: log,
	}).Run)
	return store
}
