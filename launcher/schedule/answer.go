package schedule

import (
	"poolkeeper/launcher/lesson"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// answer is what one pool says to one request: yes, later, never or others.
type answer interface {
	from() *Pool
	// launches is how many instances it would launch.
	launches() int
}

// said is what every answer has.
type said struct {
	pool   *Pool
	reason string
}

func (s said) from() *Pool   { return s.pool }
func (s said) launches() int { return 0 }

// yes: the pool can serve it now.
type yes struct {
	said
	places []Place
	zone   string
	needs  providers.Resources // of new nodes
	all    providers.Resources // of all nodes
	kind   lesson.Kind         // what speaks for the launches
}

func (y yes) launches() int { return y.needs[providers.Instances] }

// later: the pool may serve it when something has changed.
type later struct {
	said
	cause  Cause
	queued bool                // for room, so that those who come later queue behind it
	tenant bool                // for its tenant's other nodes to go
	full   bool                // the provider has refused as much
	shared bool                // queued: the provider is full, whatever room the pool has
	alone  bool                // queued: nobody waits for it, as it may never be served here
	evict  []string            // queued: idle nodes that stand in its way
	needs  providers.Resources // queued: what the new nodes take, where room is lacking
}

// never: the pool can never serve it.
type never struct {
	said
	imageless bool // as no image is ready there
}

// others: it is another pool's.
type others struct{ said }

// answers are those of our pools to one request, by kind.
type answers struct {
	yes    []yes
	later  []later
	never  []never
	others []others
}

// ask asks each of our pools that has not declined a request. The answers are valid until it asks for the next request.
func (a *assignment) ask(r *zkmodel.Request, able []candidate) *answers {
	all := &a.said
	all.yes, all.later, all.never, all.others = all.yes[:0], all.later[:0], all.never[:0], all.others[:0]
	for _, p := range a.Pools {
		if r.DeclinedByPool(p.ID) {
			continue
		}
		switch said := a.evaluate(p, r, able).(type) {
		case yes:
			all.yes = append(all.yes, said)
		case later:
			all.later = append(all.later, said)
		case never:
			all.never = append(all.never, said)
		case others:
			all.others = append(all.others, said)
		}
	}
	return all
}

// none reports whether no pool was asked.
func (s *answers) none() bool { return len(s.yes)+len(s.later)+len(s.never)+len(s.others) == 0 }
