package singleton

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/leak"
)

// LeakCloud is what Leaks does with a provider.
type LeakCloud interface {
	ListNodes(ctx context.Context) ([]providers.NodeInfo, error)
	// Remove deletes a machine of a node, given the proof that this is right.
	Remove(ctx context.Context, proof zkmodel.Proof, node, externalID string) error
	// CleanLeaks deletes what belongs to machines and has outlived them, where the
	// provider can; see providers.Cleaner.
	CleanLeaks(ctx context.Context, site string) (map[string]int, error)
	// Doubt notes which idle machines a complete list showed down or lacked, by external id.
	Doubt(doubts map[string]schedule.Doubt)
	// MoreRoom notes that the provider has more room than the records show.
	MoreRoom()
}

// LeakView is what Leaks sees of the tree.
type LeakView interface {
	Node(id string) *zkmodel.Node
	Nodes() []*zkmodel.Node
	Barrier(ctx context.Context) error
	Unread(path string) error
}

// LeakRecords reads and locks the records of nodes.
type LeakRecords interface {
	// Absent proves that there is no record of a node.
	Absent(ctx context.Context, node string) (zkmodel.Proof, error)
	// LaunchOf is the id of a node's launch, "" when nobody knows it.
	LaunchOf(ctx context.Context, n *zkmodel.Node) (string, error)
	// Locked calls work with a node's record, read under its lock, and a maker of the
	// proof for that.
	Locked(ctx context.Context, node string, work func(ctx context.Context, n *zkmodel.Node, prove func() (zkmodel.Proof, error)) error) error
}

// LeakMemory keeps what searches found for whoever makes the next one.
type LeakMemory interface {
	// Findings are the machines without a record, since when they were found so.
	Findings(ctx context.Context) (map[string]time.Time, error)
	// SaveFindings replaces them; none leaves nothing behind.
	SaveFindings(ctx context.Context, found map[string]time.Time) error
}

// Leaks deletes what is in one provider and belongs to no record.
type Leaks struct {
	// Rival says who else has the provider's nodes for himself; "" is nobody. As long as he is
	// there nothing is searched.
	Rival func() string

	provider, site string
	cloud          LeakCloud
	view           LeakView
	records        LeakRecords
	memory         LeakMemory
	deleted        func()                              // is called for each machine that was deleted
	deciding       func(context.Context) (done func()) // is called before each decision
	log            hclog.Logger
	now            func() time.Time

	age      time.Duration        // between two searches that count, at least
	recalled bool                 // the memory was read
	findings map[string]time.Time // machines without a record, since when
	saved    map[string]time.Time // what the memory has
}

// NewLeaks makes a Leaks for a provider of an installation.
func NewLeaks(provider, site string, cloud LeakCloud, view LeakView, records LeakRecords, memory LeakMemory, deleted func(), deciding func(context.Context) (done func()), log hclog.Logger, now func() time.Time) *Leaks {
	return &Leaks{Rival: func() string { return "" }, provider: provider, site: site, cloud: cloud, view: view, records: records, memory: memory, deleted: deleted, deciding: deciding, log: log, now: now}
}

// Run looks for leaks now and every so often, until ctx ends.
func (l *Leaks) Run(ctx context.Context, every time.Duration) error {
	l.age = every / 2 // another may have searched a moment ago; that half is left for a late tick
	tick := clock.NewTicker(ctx, every)
	defer tick.Stop()
	defer l.cloud.Doubt(nil) // another launcher reads the lists
	for {
		if err := l.pass(ctx); err != nil && ctx.Err() == nil {
			l.log.Warn("Cannot look for leaks", "provider", l.provider, "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (l *Leaks) pass(ctx context.Context) error {
	if l.Rival() != "" { // a search before, and one after it, are not two in a row
		forgotten := l.recall(ctx)
		l.findings = nil
		return errors.Join(forgotten, l.remember(ctx))
	}
	partial := l.collectMachines(ctx)
	if _, ok := errors.AsType[*providers.PartialError](partial); partial != nil && !ok {
		return partial
	}
	deleted, err := l.cloud.CleanLeaks(ctx, l.site)
	for kind, n := range deleted {
		l.log.Info("Leaked things are deleted", "provider", l.provider, "kind", kind, "count", n)
	}
	return errors.Join(partial, err)
}

// collectMachines deletes the machines of the provider that carry our name and the
// id of a node that is not in the tree. It takes two searches in a row, half a resync
// apart or more, whoever made the first: a machine is deleted when its record was missing in
// both, and is proven to be so right then.
func (l *Leaks) collectMachines(ctx context.Context) error {
	forgotten := l.recall(ctx)
	kept, err := l.search(ctx)
	if ctx.Err() != nil {
		return err // what was found counts for who goes on
	}
	l.findings = kept // the first search is none when the second one fails
	return errors.Join(forgotten, err, l.remember(ctx))
}

// recall reads what those before us have found. While that fails, our own searches count.
func (l *Leaks) recall(ctx context.Context) error {
	if l.recalled {
		return nil
	}
	found, err := l.memory.Findings(ctx)
	if err != nil {
		return err
	}
	l.recalled, l.saved = true, found
	if l.findings == nil {
		l.findings = found
	}
	return nil
}

// remember keeps what was found, where that has changed.
func (l *Leaks) remember(ctx context.Context) error {
	if maps.EqualFunc(l.findings, l.saved, time.Time.Equal) {
		return nil
	}
	if err := l.memory.SaveFindings(ctx, l.findings); err != nil {
		return err
	}
	l.saved = maps.Clone(l.findings)
	return nil
}

// search is one search: it deletes what an earlier one found too, and returns what it found.
//
// Errors: providers.PartialError beside what was found, where the provider could not list all.
func (l *Leaks) search(ctx context.Context) (kept map[string]time.Time, err error) {
	var partial error
	var idle []string
	list, err := leak.List(ctx, "machines", func(ctx context.Context) ([]providers.NodeInfo, error) {
		idle = l.idle()
		list, err := l.cloud.ListNodes(ctx)
		if _, ok := errors.AsType[*providers.PartialError](err); ok {
			partial, err = err, nil
		}
		return list, err
	}, l.view, zkmodel.NodesRoot)
	if err != nil {
		return nil, err
	}
	if partial == nil {
		l.cloud.Doubt(doubts(idle, list))
	}
	found, untold := l.leaked(ctx, list)
	kept, proven := leak.Confirm(found, func(m providers.NodeInfo) string { return m.ExternalID }, l.findings, l.now(), l.age)
	for _, m := range proven {
		if err := l.remove(ctx, m); err != nil {
			l.log.Warn("Cannot delete a leaked machine", "provider", l.provider, "external_id", m.ExternalID, "error", err)
			continue
		}
		l.deleted()
		delete(kept, m.ExternalID)
		l.cloud.MoreRoom()
	}
	return kept, errors.Join(partial, untold)
}

// leaked are those of some machines that look leaked. Where that cannot be told of one, the others are told all the same.
func (l *Leaks) leaked(ctx context.Context, list []providers.NodeInfo) ([]providers.NodeInfo, error) {
	defer l.deciding(ctx)()
	var found []providers.NodeInfo
	var failed error
	for _, m := range list {
		leaked, err := l.isLeaked(ctx, m)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("see whether machine %s has leaked: %w", m.ExternalID, err))
		} else if leaked {
			found = append(found, m)
		}
	}
	return found, failed
}

// isLeaked reports whether a machine is of this installation, and of a node that is not
// in the view or was launched anew.
func (l *Leaks) isLeaked(ctx context.Context, m providers.NodeInfo) (bool, error) {
	node := m.Metadata[providers.MetaNode]
	if node == "" || !providers.OfSite(m.Metadata, l.provider, l.site) {
		return false, nil
	}
	if n := l.view.Node(node); n != nil {
		if other, err := l.ofAnotherLaunch(ctx, n, m); err != nil || !other {
			return false, err
		}
	}
	return !l.parted(m), nil
}

// parted reports whether a machine that is not deleted has a record of its own, which its node's launch left.
func (l *Leaks) parted(m providers.NodeInfo) bool {
	return slices.ContainsFunc(l.view.Nodes(), func(n *zkmodel.Node) bool { return names(n, l.provider, m) })
}

// names reports whether a record that a launch left to its machine is that of a machine.
func names(n *zkmodel.Node, provider string, m providers.NodeInfo) bool {
	if n.Broken != nil || n.Provider != provider || n.State != zkmodel.NodeDeleting || n.ExternalID.IsNull() {
		return false
	}
	launch := m.Metadata[providers.MetaLaunch]
	return n.ExternalID.Text() == m.ExternalID || launch != "" && n.LaunchID == launch
}

// remove deletes a machine that has leaked.
func (l *Leaks) remove(ctx context.Context, m providers.NodeInfo) error {
	if l.view.Node(m.Metadata[providers.MetaNode]) != nil {
		return l.removeForeign(ctx, m)
	}
	return l.removeLeak(ctx, m)
}
