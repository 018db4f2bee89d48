package web

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/web/buildlog"
	"poolkeeper/zkmodel"
)

// Options say what is served, and where. What is left out is not served.
type Options struct {
	Access Access       // to what Nodepool does not show
	Addr   string       // host:port to listen on; port 0 takes a free one
	Logger hclog.Logger // nil logs nothing

	Daemon  string // what serves this, for the heading: "builder", "launcher"
	Host    string // and on which host
	Version string // and in which version

	// Configured tells whether an image is configured; nil when nobody knows.
	Configured func(image string) bool
	// Ready is nil, or returns nil, when the daemon does its work; else why not.
	Ready    func() error
	Gatherer prometheus.Gatherer // of /metrics
	Tree     Tree
	Logs     buildlog.Logs // of this host; nil has none
	Hooks    Hooks         // nil takes nothing
	// Guarded tells what of the daemon's configuration file is not in effect, a line
	// for each item; nil is nothing.
	Guarded func() []string

	Now func() time.Time // nil is time.Now
}

// Tree is what the daemon follows of the tree; a zkmodel.Mirror has these as
// methods. A nil part is not followed, and so has no pages. What is returned
// is only read.
type Tree struct {
	Images     func() []*zkmodel.Image
	Nodes      func() []*zkmodel.Node
	Requests   func() []*zkmodel.Request
	Components func(kind string) []*zkmodel.Component
	// Validations are the uploads under trial in a provider, or in all for "". Where they
	// are not followed, or cannot be read, it has fewer than there are.
	Validations func(provider string) ([]*zkmodel.Validation, error)
	// WaitSynced returns once all parts have been read in the session that
	// lives; nil when that is always so.
	WaitSynced func(context.Context) error
	// WaitFor returns once the tree is shown as it was at a logical time, or
	// later; nil when it always is.
	WaitFor func(ctx context.Context, ltime int64) error
}
