package singleton

import (
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// counted reports which machines of the provider a record in our tree counts: all others count as used by others.
// A record may come or go while the cloud is asked, so those of before count too.
func (l *Limits) counted() providers.Ours {
	before := map[string]*zkmodel.Node{}
	for _, n := range l.nodes.Nodes() {
		before[n.ID] = n
	}
	return func(m providers.NodeInfo) bool {
		id := m.Metadata[providers.MetaNode]
		n := before[id]
		if now := l.nodes.Node(id); now != nil {
			n = now
		}
		return n != nil && providers.OfSite(m.Metadata, l.provider, l.site) && l.counts(n, m)
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
