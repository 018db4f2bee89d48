package request

import (
	"context"

	"poolkeeper/launcher/reap"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// FindOrphans looks for pending requests that nobody has locked: their launcher has
// died. It is asked when a launcher came or went, and now and then.
func (s *Server) FindOrphans(ctx context.Context) {
	s.orphans.Find(s.Tree.Requests(), s.Own.Requests(), s.launchedElsewhere(), func(r *zkmodel.Request) (bool, error) {
		locked, err := recipe.Locked(ctx, s.Store.Session(), zkmodel.RequestLockPath(r.ID))
		if err != nil && s.Store.Session().Context().Err() == nil {
			s.Troubled.Failed(s.Log, err, "Cannot tell whether a request is lost; the next look asks again", "request", r.ID, "event", r.EventID)
		}
		return locked, err
	})
}

// Lost are the requests that nobody has locked, as far as was found.
func (s *Server) Lost() map[string]bool { return s.orphans.All() }

// launchedElsewhere holds the requests whose nodes are of providers that others
// serve and we do not: those others take them up.
func (s *Server) launchedElsewhere() map[string]bool {
	served := map[string]bool{}
	for _, c := range s.Tree.Components(zkmodel.KindPool) {
		served[c.ProviderName] = true
	}
	theirs := map[string]bool{}
	for _, n := range s.Tree.Nodes() {
		if n.AllocatedTo != "" && !parted(n) && s.Clouds[n.Provider] == nil && served[n.Provider] {
			theirs[n.AllocatedTo] = true
		}
	}
	return theirs
}

// parted tells whether a request goes on without a node, whose machine may yet be made.
func parted(n *zkmodel.Node) bool { return n.Unanswered() && !reap.InLaunch(n) }

// markOrphan notes a request of our own that could not be brought to an end.
func (s *Server) markOrphan(id string) {
	s.orphans.Mark(id)
	s.Notify()
}
