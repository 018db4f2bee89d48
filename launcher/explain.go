package launcher

import (
	"slices"

	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// Requests are those of the tree, for people to look at: one that waits has as its
// reason why, in the words of this launcher's last look at it.
func (l *Launcher) Requests() []*zkmodel.Request {
	why := map[string]string{}
	for _, d := range l.Decisions() {
		switch d.(type) {
		case schedule.Wait, schedule.Yield:
			why[d.Of().ID] = d.Why()
		}
	}
	list := l.mirror.Requests()
	for i, r := range list {
		if reason := why[r.ID]; reason != "" && r.State == zkmodel.RequestRequested && !l.hasDeclined(r) {
			told := *r
			told.Reason = reason
			list[i] = &told
		}
	}
	return list
}

// hasDeclined tells whether a pool of ours has declined a request, and so told why.
func (l *Launcher) hasDeclined(r *zkmodel.Request) bool {
	return slices.ContainsFunc(l.pools, func(p *pool.Pool) bool { return r.DeclinedByPool(p.ID) })
}
