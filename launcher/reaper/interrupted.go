package reaper

import (
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// interruptions are why a provider's cloud has taken machines back, by external id.
func (r *Reaper) interruptions(provider string) map[string]string {
	c, ours := r.Clouds[provider]
	if !ours {
		return nil
	}
	p, err := c.Use()
	if err != nil {
		return nil
	}
	if i, ok := p.(providers.Interrupter); ok {
		return i.Interruptions()
	}
	return nil
}

// interrupted says why the cloud has taken a node's machine back; "" when it has not, as far as
// is known.
func (r *Reaper) interrupted(n *zkmodel.Node) string {
	if n.ExternalID.IsNull() {
		return ""
	}
	return r.interruptions(n.Provider)[n.ExternalID.Text()]
}

// idleInterrupted are the ready nodes that are nobody's and whose machines were taken back, with why.
func (r *Reaper) idleInterrupted(nodes []*zkmodel.Node) map[string]string {
	all := map[string]map[string]string{}
	for name := range r.Clouds {
		if list := r.interruptions(name); len(list) > 0 {
			all[name] = list
		}
	}
	if len(all) == 0 {
		return nil
	}
	found := map[string]string{}
	for _, n := range nodes {
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.ExternalID.IsNull() {
			if why := all[n.Provider][n.ExternalID.Text()]; why != "" {
				found[n.ID] = why
			}
		}
	}
	return found
}

// Interrupted notes in a snapshot the idle nodes whose machines were taken back: nobody is given
// one, and Due takes them away.
func (r *Reaper) Interrupted(snap *schedule.Snapshot) {
	for id := range r.idleInterrupted(snap.Nodes) {
		snap.Evicted[id] = true
	}
}
