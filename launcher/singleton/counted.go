package singleton

import (
	"cmp"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// counted reports which machines of the provider a record in our tree counts: all others count as used by others.
// A record may come or go while the cloud is asked, so those of before count too. The record of a machine that its
// node's launch went on without has another id than the machine's node.
func (l *Limits) counted() providers.Ours {
	before, parted := map[string]*zkmodel.Node{}, map[string]bool{} // by external id and launch id
	for _, n := range l.nodes.Nodes() {
		before[n.ID] = n
		if n.Broken == nil && n.Provider == l.provider && !n.ExternalID.IsNull() {
			parted[n.ExternalID.Text()], parted[n.LaunchID] = true, n.LaunchID != ""
		}
	}
	return func(m providers.NodeInfo) bool {
		id := m.Metadata[providers.MetaNode]
		n := before[id]
		if now := l.nodes.Node(id); now != nil {
			n = now
		}
		if !providers.OfSite(m.Metadata, l.provider, l.site) {
			return false
		}
		return n != nil && l.counts(n, m) || parted[cmp.Or(m.ExternalID, m.Metadata[providers.MetaLaunch])]
	}
}

// counts reports whether a record of a machine's node counts that machine, as schedule counts records: one that cannot be
// read counts everywhere, one that never held anything nowhere, and others at the provider that they name, for one machine.
func (l *Limits) counts(n *zkmodel.Node, m providers.NodeInfo) bool {
	switch machine := n.ExternalID.Text(); {
	case n.Broken != nil:
		return n.Unknown()
	case n.Provider != l.provider:
		return false
	case machine != "" && m.ExternalID != "":
		return machine == m.ExternalID
	}
	return providers.SameLaunch(m.Metadata, map[string]string{providers.MetaLaunch: n.LaunchID})
}
