package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
)

// PauseProvider has nothing begun in a provider: nothing is launched or uploaded there, and
// nobody is given a node of it. It ends by itself after a time; 0 is never. With drain, idle
// nodes are deleted. A pause that is there is replaced.
func (o *Operator) PauseProvider(ctx context.Context, provider, reason string, limit time.Duration, drain bool) (*zkmodel.ProviderPause, error) {
	pause, err := o.Halt(ctx, reason, limit)
	if err != nil {
		return nil, err
	}
	p := zkmodel.ProviderPause{Provider: provider, Pause: pause, Drain: drain}
	return &p, o.store.PauseProvider(ctx, p)
}

// ErrNotPaused says that there is nothing to resume.
var ErrNotPaused = errors.New("not paused")

// ResumeProvider ends the pause of a provider. It is an error when there is none.
func (o *Operator) ResumeProvider(ctx context.Context, provider string) error {
	was, err := o.store.ResumeProvider(ctx, provider, o.who, nil)
	if err == nil && !was {
		err = fmt.Errorf("provider %s is %w", provider, ErrNotPaused)
	}
	return err
}

// Halt is a pause or hold by this person, which begins now and ends by itself after a time, by
// ZooKeeper's clock; 0 is never.
func (o *Operator) Halt(ctx context.Context, reason string, limit time.Duration) (zkmodel.Pause, error) {
	p := zkmodel.Pause{By: o.who, Reason: reason, Since: o.epoch()}
	if limit > 0 {
		ahead, err := o.store.Ahead(ctx)
		if err != nil {
			return p, err
		}
		now := o.now().Add(ahead)
		p.Since, p.Until = zkmodel.EpochOf(now), zkmodel.EpochOf(now.Add(limit))
	}
	return p, nil
}

// InProvider are the nodes of a provider that are still to end: all but those that people
// hold, and machines that exist already and are idle.
func InProvider(nodes []*zkmodel.Node, provider string) []*zkmodel.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *zkmodel.Node) bool {
		return n.Provider != provider || n.State == zkmodel.NodeHold || n.Launcher == zkmodel.StaticLauncher && n.State == zkmodel.NodeReady && n.AllocatedTo == ""
	})
}

// StatesOf says how many nodes are in which state, such as "in-use: 2, used: 1".
func StatesOf(nodes []*zkmodel.Node) string {
	counts := map[zkmodel.NodeState]int{}
	for _, n := range nodes {
		counts[n.State]++
	}
	var list []string
	for _, state := range zkmodel.NodeStates() {
		if counts[state] > 0 {
			list = append(list, fmt.Sprintf("%s: %d", state, counts[state]))
		}
	}
	return strings.Join(list, ", ")
}
