package singleton

import (
	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// idle are the external ids of the provider's ready nodes that are allocated to no request. It is
// called before a list is read, which then shows all their machines.
func (l *Leaks) idle() (ids []string) {
	for _, n := range l.view.Nodes() {
		if n.Broken == nil && n.Provider == l.provider && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.ExternalID.IsNull() {
			ids = append(ids, n.ExternalID.Text())
		}
	}
	return ids
}

// doubts are the idle machines that a complete list shows down or lacks.
func doubts(idle []string, list []providers.NodeInfo) map[string]schedule.Doubt {
	down := make(map[string]string, len(list))
	for _, m := range list {
		down[m.ExternalID] = m.Down
	}
	var found map[string]schedule.Doubt
	for _, id := range idle {
		why, there := down[id]
		if there && why == "" {
			continue
		}
		if found == nil {
			found = map[string]schedule.Doubt{}
		}
		if found[id] = (schedule.Doubt{Why: why}); !there {
			found[id] = schedule.Doubt{Why: "its machine is missing in the cloud", Missing: true}
		}
	}
	return found
}
