package singleton

import (
	"context"
	"fmt"

	"poolkeeper/launcher/reap"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Node ids come again when ZooKeeper goes back in time: its data was wiped, or a
// snapshot restored. Then a machine may carry the id of a node that another launch made.
// The launch id, which machine, record and a node below /poolkeeper carry, tells them
// apart: a machine of the record's launch is the record's, also where a person has named another
// provider there. Where it is missing on either side the node's id decides, but in four cases: a
// record of another provider that does not name the machine, as a node never moves; a machine
// that Nodepool made, which says neither launch nor installation, beside a record of a launch of
// ours that has its machine: ours say both; a machine of ours beside a record of Nodepool's that
// has its machine; and a record that stands for no machine, and goes when none has its id: one that
// never held anything, which a lock has made that came too late, or one that is to be deleted and
// names no provider.

// ofAnotherLaunch reports whether a machine is surely not the one that a node's record
// stands for, although it carries the node's id.
func (l *Leaks) ofAnotherLaunch(ctx context.Context, n *zkmodel.Node, m providers.NodeInfo) (bool, error) {
	switch {
	case n.Leftover(), reap.NoProvider(n):
		return true, nil
	case n.Unknown():
		return false, nil
	}
	elsewhere := n.Provider != "" && n.Provider != l.provider
	made, machine := m.Metadata[providers.MetaLaunch], n.ExternalID.Text()
	byNodepool := made == "" && m.Metadata[providers.MetaSite] == "" && machine != ""
	switch {
	case elsewhere && made == "":
		return machine != m.ExternalID, nil
	case !elsewhere && (machine == m.ExternalID || made == "" && !byNodepool):
		return false, nil
	}
	launch, err := l.records.LaunchOf(ctx, n)
	if err != nil {
		return false, err
	}
	switch {
	case elsewhere:
		return launch != made && (launch != "" || machine != m.ExternalID), nil
	case launch == "":
		return made != "" && machine != "", nil
	case byNodepool:
		return true, nil
	}
	return !providers.SameLaunch(m.Metadata, map[string]string{providers.MetaLaunch: launch}), nil
}

// removeLeak deletes a machine whose node is proven to have no record.
func (l *Leaks) removeLeak(ctx context.Context, m providers.NodeInfo) error {
	node := m.Metadata[providers.MetaNode]
	decided := l.deciding(ctx)
	proof, err := l.records.Absent(ctx, node)
	decided()
	if err != nil {
		return err
	}
	l.log.Warn("Deleting a machine without a record", "provider", l.provider, "node", node, "external_id", m.ExternalID)
	return l.cloud.Remove(ctx, proof, node, m.ExternalID)
}

// removeForeign deletes a machine whose node's record, read again under its lock, was
// made by another launch. One that is locked is looked at again later.
func (l *Leaks) removeForeign(ctx context.Context, m providers.NodeInfo) error {
	node := m.Metadata[providers.MetaNode]
	return l.records.Locked(ctx, node, func(ctx context.Context, n *zkmodel.Node, prove func() (zkmodel.Proof, error)) error {
		proof, err := l.proveForeign(ctx, n, m, prove)
		if err != nil {
			return err
		}
		l.log.Warn("Deleting a machine that the node's record did not make", "provider", l.provider, "node", node,
			"external_id", m.ExternalID, "launch", m.Metadata[providers.MetaLaunch])
		return l.cloud.Remove(ctx, proof, node, m.ExternalID)
	})
}

// proveForeign decides that a machine is not that of its node's record.
func (l *Leaks) proveForeign(ctx context.Context, n *zkmodel.Node, m providers.NodeInfo, prove func() (zkmodel.Proof, error)) (zkmodel.Proof, error) {
	defer l.deciding(ctx)()
	other, err := l.ofAnotherLaunch(ctx, n, m)
	if err != nil {
		return zkmodel.Proof{}, err
	}
	if !other {
		return zkmodel.Proof{}, fmt.Errorf("node %s has a record: %w", n.ID, zkmodel.ErrConflict)
	}
	return prove()
}
