package singleton

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// LimitsCloud is what Limits asks a provider for.
type LimitsCloud interface {
	Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error)
	// Wanted reports whether a request waits for room in it; Hurried receives when one
	// begins to.
	Wanted() bool
	Hurried() <-chan struct{}
}

// LimitsView is what is in the tree of the limits.
type LimitsView interface {
	Get(path string) (recipe.Entry, bool)
	Barrier(ctx context.Context) error
}

// LimitsNodes are the nodes in the tree.
type LimitsNodes interface {
	Nodes() []*zkmodel.Node
	Node(id string) *zkmodel.Node
}

// LimitsRecord is where the limits are written.
type LimitsRecord interface {
	SaveLimits(ctx context.Context, provider string, data []byte) error
}

// Limits asks one provider for its limits, and writes them into the tree for all
// launchers. They are asked for again when they are old; sooner while a request
// waits for room, and when they were taken out of the tree, by a launcher that met a cloud
// that was fuller than it said.
type Limits struct {
	provider, site string
	cloud          LimitsCloud
	view           LimitsView
	nodes          LimitsNodes
	record         LimitsRecord
	log            hclog.Logger
	now            func() time.Time
}

// NewLimits makes a Limits for a provider of an installation.
func NewLimits(provider, site string, cloud LimitsCloud, view LimitsView, nodes LimitsNodes, record LimitsRecord, log hclog.Logger, now func() time.Time) *Limits {
	return &Limits{provider: provider, site: site, cloud: cloud, view: view, nodes: nodes, record: record, log: log, now: now}
}

// Run keeps the limits in the tree fresh, until ctx ends. changes are those of the
// limits in the tree.
func (l *Limits) Run(ctx context.Context, changes Changes) error {
	var asked asking
	warned := ""
	for ctx.Err() == nil {
		err := l.ask(ctx)
		asked.note(l.now(), err)
		switch {
		case err == nil:
			warned = ""
		case ctx.Err() == nil:
			level := hclog.Warn
			if kit.Cause(err) == warned {
				level = hclog.Debug // one warning for each cause
			}
			warned = kit.Cause(err)
			l.log.Log(level, "Provider does not tell its limits; the old ones count", "provider", l.provider, "error", err, "retry", asked.after(false))
		}
		if err := l.view.Barrier(ctx); err != nil { // shows what we wrote
			return err
		}
		for ctx.Err() == nil {
			changes.Take()
			_, there := l.view.Get(zkmodel.LimitsPath(l.provider))
			left := asked.last.Add(asked.after(!there || l.cloud.Wanted())).Sub(l.now())
			if left <= 0 {
				break
			}
			timer := clock.NewTimer(ctx, left)
			select {
			case <-timer.C:
			case <-changes.C():
			case <-l.cloud.Hurried():
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
	return nil
}

// ask asks once, and writes the answer down.
func (l *Limits) ask(ctx context.Context) error {
	limits, err := l.cloud.Limits(ctx, l.counted())
	if err != nil {
		return err
	}
	data, err := json.Marshal(limits)
	if err != nil {
		return err
	}
	return l.record.SaveLimits(ctx, l.provider, data)
}
