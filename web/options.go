package web

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/web/actions"
	"poolkeeper/web/buildlog"
	"poolkeeper/web/site"
	"poolkeeper/zkmodel/history"
)

// Options say what is served, and where. What is left out is not served.
type Options struct {
	Access Access       // to what Nodepool does not show
	Addr   string       // host:port to listen on; port 0 takes a free one
	Logger hclog.Logger // nil logs nothing

	Daemon  string // what serves this, for the heading: "builder", "launcher"
	Host    string // and on which host
	Version string // and in which version

	// Config is the configuration of the moment; nil when nobody knows it.
	Config func() *configs.Config
	// Explain says what this host's builder has to do for an image, and why; nil where it builds nothing.
	Explain func(ctx context.Context, image string) ([]Reason, error)
	// Configured tells whether an image is configured; nil when nobody knows.
	Configured func(image string) bool
	// Ready is nil, or returns nil, when the daemon does its work; else why not.
	Ready func() error
	// Alive returns nil if the daemon's main loop is alive, whether or not ZooKeeper answers; nil is always alive.
	Alive    func(ctx context.Context) error
	Gatherer prometheus.Gatherer // of /metrics
	Tree     Tree
	Logs     buildlog.Logs // of this host; nil has none
	// History is what this daemon has kept of what has ended; nil has no page.
	History *history.Store
	Hooks   Hooks // nil takes nothing
	// Operator does what people may do on the pages, where the configuration names some; nil does nothing.
	Operator actions.Site
	// Guarded tells what of the daemon's configuration file is not in effect, a line
	// for each item; nil is nothing.
	Guarded func() []string

	Now func() time.Time // nil is time.Now
}

// Tree is what the daemon follows of the tree.
type Tree = site.Tree

// Reason is what a rule says of an image.
type Reason = site.Reason
