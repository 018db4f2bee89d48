package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"poolkeeper/builder/waves"
	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/web"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/action"
	"poolkeeper/zkmodel/figures"
	"poolkeeper/zkmodel/hook"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/trace"
	"poolkeeper/zkmodel/wave"
)

// webFlags say where a daemon serves its status, build logs and metrics.
type webFlags struct {
	Web      string `placeholder:"ADDR:PORT" help:"Where to serve status, build logs and metrics. By default webapp of the configuration; a builder takes the port after that."`
	NoWebapp bool   `name:"no-webapp" help:"Serve no status, build logs and metrics."`
}

// listen makes the web server of a daemon; nil when it is to have none. offset is
// added to the configured port, so that daemons with one configuration can share
// a host. When the configured address is taken the daemon works without a server:
// to build and to launch is worth more than to tell of it. An address that was
// asked for on the command line must be free.
func (f webFlags) listen(ctx context.Context, s site, offset int, o web.Options) (*web.Server, error) {
	if f.NoWebapp {
		return nil, nil //nolint:nilnil // none is what was asked for
	}
	o.Addr, o.Logger, o.Version = f.Web, s.log.Named("web"), app.Version
	if s.hooks != nil {
		o.Hooks = s.hooks
	}
	if s.client != nil {
		o.Operator = &action.Site{Client: s.client, Config: o.Config, Job: waves.Job, Logger: o.Logger}
	}
	o.Access = web.Access{Open: s.cfg.WebApp.AddressWritten, Token: s.cfg.WebApp.Token}
	if o.Addr == "" {
		o.Addr = configuredAddr(s.cfg.WebApp.ListenAddress, s.cfg.WebApp.Port, offset)
	}
	server, err := web.New(ctx, o)
	if errors.Is(err, syscall.EADDRINUSE) && f.Web == "" {
		s.log.Error("Serving no status, logs and metrics: the address is taken; --web takes another", "address", o.Addr)
		return nil, nil //nolint:nilnil // see above
	}
	return server, err
}

// hookPriorities are those of deliveries, by the priority of a hook's waves; the others are normal.
var hookPriorities = map[string]int{string(wave.High): hook.PriorityHigh, string(wave.Low): hook.PriorityLow}

// hookSettings are the hooks that are served: those that have a secret.
func hookSettings(cfg *configs.Config) []hook.Settings {
	var list []hook.Settings
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; h.Secret != "" {
			list = append(list, hook.Settings{Name: h.Name, Secret: h.Secret, Events: h.Events, Refs: h.Refs, Priority: hookPriorities[h.Priority]})
		}
	}
	return list
}

// configuredAddr is the address for the daemon with an offset; port 0 is a free
// one for each.
func configuredAddr(host string, port, offset int) string {
	if port > 0 {
		port += offset
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// hostOf is the host under which others find what listens on an address: ours,
// unless it listens on one address only.
func hostOf(addr, us string) string {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || at.Addr().IsUnspecified() {
		return us
	}
	return at.Addr().String()
}

// wholeTree shows all of a mirror that follows everything.
func wholeTree(m *zkmodel.Mirror) web.Tree {
	return web.Tree{
		Images: m.Images, Nodes: m.Nodes, Requests: m.Requests, Components: m.Components, Validations: m.Validations, ProviderPauses: m.ProviderPauses, Watch: m.Watch,
		WaitSynced: m.WaitSynced, WaitFor: m.WaitFor,
	}
}

// withBeside is a tree with what the mirror does not have, which is read while pages are asked for.
func (s site) withBeside(tree web.Tree) web.Tree {
	if s.beside == nil {
		return tree
	}
	follower := overview.NewFollower(s.client, s.log.Named("web"))
	s.beside.all = append(s.beside.all, follower.Run)
	tree.Beside, tree.WatchBeside, tree.WatchSession = follower.Look, follower.Watch, follower.WatchSession
	return tree
}

// newMetrics makes the registry of a process, with what Go and Linux know of it, and
// what of its configuration is guarded.
func newMetrics(s site) *prometheus.Registry {
	r := prometheus.NewRegistry()
	if s.guarded != nil {
		r.MustRegister(s.guarded)
	}
	if s.fleet != nil {
		r.MustRegister(app.FleetMetrics{Agent: s.fleet})
	}
	if s.events != nil {
		r.MustRegister(s.events)
	}
	if s.hooks != nil {
		r.MustRegister(s.hooks)
	}
	if s.client != nil {
		r.MustRegister(figures.NewZooKeeper(s.client))
	}
	tellTraces(r, s.tracer)
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// tellTree has a daemon's registry tell of its configuration and of the images in the tree.
func tellTree(r prometheus.Registerer, s site, config func() *configs.Config, tree *zkmodel.Mirror) error {
	return r.Register(figures.New(figures.Source{
		Version: app.Version, Config: config, Tree: tree, Reloads: s.reloads,
	}))
}

// tellTraces has a registry tell what became of spans; t is nil where none are told.
func tellTraces(r prometheus.Registerer, t *trace.Tracer) {
	lost := func(why string) prometheus.CounterOpts {
		return prometheus.CounterOpts{
			Name: "poolkeeper_traces_spans_lost_total", Help: "Spans that the collector of traces has not taken.", ConstLabels: prometheus.Labels{"why": why},
		}
	}
	r.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "poolkeeper_traces_spans_sent_total", Help: "Spans that the collector of traces has taken."},
			func() float64 { return float64(t.Counts().Sent) }),
		prometheus.NewCounterFunc(lost("refused"), func() float64 { return float64(t.Counts().Refused) }),
		prometheus.NewCounterFunc(lost("queue"), func() float64 { return float64(t.Counts().Dropped) }),
	)
}
