package reaper

import (
	"context"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/reap"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
)

// Due starts a job for every node that needs one. The time is when to look again.
func (r *Reaper) Due(ctx context.Context, snap *schedule.Snapshot) time.Time {
	rules := r.rules()
	rules.Lag, rules.Frozen = reap.Behind(snap), snap.Frozen
	rules.Judged, rules.Drained, rules.Interrupted = snap.Judged, r.Drained(), r.idleInterrupted(snap.Nodes)
	r.left = reap.LeftToNodepool(snap, r.left)
	rules.LeftUntil = r.left
	list, again := reap.Due(snap, r.duties, r.Own.Mine, rules)
	for _, c := range list {
		r.Jobs.Start(inflight.Node(c.Node.ID), func() error { return r.Reap(ctx, c) })
	}
	return again
}

// rules are those of this launcher's configuration, and which providers are open and ours to
// look after.
func (r *Reaper) rules() reap.Rules {
	rules := r.configured
	rules.Served = map[string]bool{}
	for name, c := range r.Clouds {
		_, err := c.Use()
		rules.Served[name] = err == nil && r.Rival(name) == "" // it wakes us once it is open
	}
	return rules
}

// configuredRules are what the configuration alone says: made once, as every look needs it.
func configuredRules(cfg *configs.Config, stock []configs.Label) reap.Rules {
	rules := reap.Rules{Ages: agesOf(cfg), Disabled: map[schedule.PoolKey]bool{}, Stocked: map[schedule.PoolKey][]string{}}
	for _, p := range cfg.Providers {
		for _, pool := range p.Pools {
			key := schedule.PoolKey{Provider: p.Name, Pool: pool.Name}
			if pool.MaxServers == 0 {
				rules.Disabled[key] = true
				continue
			}
			rules.Stocked[key] = stockedIn(pool, stock)
		}
	}
	return rules
}

// stockedIn are the labels of a pool that are kept in stock.
func stockedIn(pool configs.Pool, stock []configs.Label) []string {
	has := map[string]bool{}
	for _, l := range supply.Labels(pool) {
		has[l.Name] = true
	}
	var labels []string
	for _, label := range stock {
		if has[label.Name] {
			labels = append(labels, label.Name)
		}
	}
	return labels
}

// Frozen are the nodes of pools and labels that are left out of the configuration:
// nothing may follow from what it says, or does not say, of these.
func Frozen(cfg *configs.Config, nodes []*zkmodel.Node) map[string]bool {
	if len(cfg.Frozen) == 0 {
		return nil
	}
	frozen := map[string]bool{}
	for _, n := range nodes {
		if n.Broken == nil && (cfg.FrozenPool(n.Provider, n.Pool) != "" || slices.ContainsFunc(n.Type, func(label string) bool {
			return cfg.FrozenLabel(n.Provider, n.Pool, label) != ""
		})) {
			frozen[n.ID] = true
		}
	}
	return frozen
}

func agesOf(cfg *configs.Config) reap.Ages {
	a := reap.Ages{Hold: cfg.MaxHoldAge, Ready: map[string]time.Duration{}}
	for _, l := range cfg.Labels {
		a.Ready[l.Name] = l.MaxReadyAge
	}
	return a
}
