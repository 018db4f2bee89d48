package schedule

import (
	"slices"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Room is what the limits leave for another machine.
type Room struct {
	Left       bool
	HoldsQuota bool         // only then Left counts
	Asked      lesson.Asked // of the cloud
}

// Beside returns whether the limits of the pool, the provider and the tenant, and what the cloud taught, leave room for
// another machine for node n beside the one that its record counts.
func Beside(s *Snapshot, n *zkmodel.Node) Room {
	i := slices.IndexFunc(s.Pools, func(p *Pool) bool { return p.Provider == n.Provider && p.Name == n.Pool })
	if i < 0 || s.Pools[i].Unavailable != "" || s.Pools[i].Paused != "" {
		return Room{}
	}
	p, a := s.Pools[i], newAssignment(s)
	need := NodeResources(n, p.Offers)
	if _, lacks := a.used.shortage(p, need); lacks {
		return Room{}
	}
	if _, lacks := short(a.tenants[n.TenantName], need, s.Tenants[n.TenantName]); lacks {
		return Room{}
	}
	room := Room{Left: true, HoldsQuota: p.HoldsQuota, Asked: lesson.Asked{Round: p.Learned.Lesson.Round}}
	if use := a.uses[p.Provider]; use != nil {
		answer := p.Learned.Judge(*use, []providers.Resources{need})
		room.Left, room.Asked.Kind = !answer.Wait && answer.Kind != lesson.Trial, answer.Kind
	}
	return room
}

// Count adds the record of a node, which was made of that of another one, to a snapshot.
func Count(s *Snapshot, n *zkmodel.Node) {
	s.Nodes = append(slices.Clip(s.Nodes), n)
	if use := s.Uses[n.Provider]; use != nil {
		Plus(use.Held, NodeResources(n, nil))
	}
}
