package schedule

import (
	"slices"

	"poolkeeper/zkmodel"
)

// owing are the nodes of requests whose machines may yet be made, by request and
// provider.
func owing(nodes []*zkmodel.Node) map[string]map[string]string {
	var all map[string]map[string]string
	for _, n := range nodes {
		if n.Broken != nil || n.AllocatedTo == "" || !n.Unanswered() {
			continue
		}
		if all == nil {
			all = map[string]map[string]string{}
		}
		if all[n.AllocatedTo] == nil {
			all[n.AllocatedTo] = map[string]string{}
		}
		all[n.AllocatedTo][n.Provider] = n.ID
	}
	return all
}

// muteProviders are the providers where machines are searched for that were asked for without
// an answer.
func muteProviders(nodes []*zkmodel.Node) map[string]bool {
	all := map[string]bool{}
	for _, n := range nodes {
		if n.Broken == nil && n.Unanswered() && n.Reason != "" { // else it was asked for just now
			all[n.Provider] = true
		}
	}
	return all
}

// Elsewhere reports whether a request that waits for an answer in one provider would be
// taken by another: one of ours that has room now, or one of others, of which we do not
// know. One that does not answer either is none: between two of them a request would go
// to and fro, and each time give up the machine that it waited for.
func Elsewhere(s *Snapshot, r *zkmodel.Request) bool {
	a := newAssignment(s)
	able, mute := a.candidates(r), muteProviders(s.Nodes)
	ours := map[string]bool{}
	for _, p := range a.Pools {
		ours[p.Provider] = true
		if p.Mute || mute[p.Provider] || r.DeclinedByPool(p.ID) {
			continue
		}
		if _, takes := a.evaluate(p, r, able).(yes); takes {
			return true
		}
	}
	return slices.ContainsFunc(able, func(c candidate) bool { return !c.paused && !ours[c.provider] && !mute[c.provider] })
}
