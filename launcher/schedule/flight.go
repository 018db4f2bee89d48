package schedule

import (
	"slices"
	"time"

	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// flightTime is how long a launch counts as under way that says nothing of itself.
const flightTime = time.Minute

// Uses is what is in some clouds, without one node. For each cloud it is told
// whether machines that it has accepted are sure.
func Uses(nodes []*zkmodel.Node, late map[string]bool, now time.Time, except string) map[string]*lesson.Use {
	uses := make(map[string]*lesson.Use, len(late))
	for name := range late {
		uses[name] = &lesson.Use{Held: providers.Resources{}, Flying: providers.Resources{}}
	}
	for _, n := range nodes {
		use := uses[n.Provider]
		if use == nil || n.Broken != nil || n.ID == except {
			continue
		}
		switch place := whereabouts(n, late[n.Provider], now); place {
		case flying:
			Plus(use.Flying, NodeResources(n, nil))
			use.Launches++
		case landed:
			Plus(use.Held, NodeResources(n, nil))
		case nowhere:
		}
	}
	return uses
}

// Hint is what a cloud tells, where it tells of less than the pool may use: then
// it was set, and it is worth something although it does not count.
func Hint(p *Pool, told providers.Resources) providers.Resources {
	size, limited := p.Limits[providers.Instances]
	for _, offer := range p.Offers {
		for name, n := range offer.Needs {
			if limit, tells := told[name]; tells && n > 0 && (!limited || limit < n*size) {
				return told
			}
		}
	}
	return nil
}

// place is where a node's machine is, as far as its record tells.
type place int

const (
	nowhere place = iota
	flying        // the cloud may yet make it, or has just refused it
	landed        // the cloud has made it
)

// whereabouts tells where a node's machine is. A refused one counts as under way
// until its record is gone: then all have heard what the refusal taught.
func whereabouts(n *zkmodel.Node, late bool, now time.Time) place {
	young := now.Sub(n.StateTime.Time()) < flightTime
	switch n.State {
	case zkmodel.NodeDeleted:
		return nowhere
	case zkmodel.NodeAborted:
		if young {
			return flying
		}
		return nowhere
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeFailed, zkmodel.NodeDeleting:
		if young && (n.ExternalID.IsNull() || late && n.State == zkmodel.NodeBuilding) {
			return flying
		}
	default:
	}
	return landed
}

// learned is what a pool's cloud taught about new machines for a request.
func (a *assignment) learned(p *Pool, r *zkmodel.Request, y yes) lesson.Answer {
	use := a.uses[p.Provider]
	if use == nil {
		return lesson.Answer{}
	}
	answer := p.Learned.Judge(*use, newMachines(y.places))
	if answer.Kind == lesson.Trial && len(r.NodeTypes) > 1 && a.singles(p) {
		// Requests for one node tell as much, and cost less.
		return lesson.Answer{Wait: true, Full: true, Never: true, Why: "it is tried with smaller requests first"}
	}
	return answer
}

// unlearned is the answer to a request that must wait for what its pool's cloud taught.
func (a *assignment) unlearned(p *Pool, r *zkmodel.Request, needs providers.Resources, learned lesson.Answer) later {
	no := later{said: said{p, "provider " + p.Provider + ": " + learned.Why}, cause: Refused, full: learned.Full}
	if !learned.Full || r.Requestor == MinReadyRequestor {
		return no
	}
	no.queued, no.shared, no.alone = true, true, learned.Never
	if !learned.Never {
		no.evict = a.evictions(p, func(left *usage) bool {
			_, lacks := short(left.providers[p.Provider], needs, p.Learned.Lesson.Holds)
			return lacks
		})
	}
	return no
}

// newMachines are the needs of the nodes that are to be launched.
func newMachines(places []Place) []providers.Resources {
	var machines []providers.Resources
	for _, place := range places {
		if place.Node == "" {
			machines = append(machines, place.Needs)
		}
	}
	return machines
}

// singles reports whether a request for one node waits that pool p could serve.
func (a *assignment) singles(p *Pool) bool {
	return slices.ContainsFunc(a.Requests, func(r *zkmodel.Request) bool {
		return r.Broken == nil && r.State == zkmodel.RequestRequested && len(r.NodeTypes) == 1 && !a.Busy[r.ID] && p.offers(r.NodeTypes)
	})
}
