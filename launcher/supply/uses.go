package supply

import (
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// Uses counts what is in the clouds whose room is not known, which take note of it: those
// that have refused, and those whose limits a pool ignores. waiting says that requests
// wait. again is when the first may be tried again.
func Uses(clouds map[string]*Provider, nodes []*zkmodel.Node, now time.Time, waiting bool) (uses map[string]*lesson.Use, again time.Time) {
	late := map[string]bool{}
	for name, c := range clouds {
		known := c.Lessons()
		if len(c.cfg.Pools) == 0 {
			continue // nothing is launched in it
		}
		ignored := slices.ContainsFunc(c.cfg.Pools, func(p configs.Pool) bool { return p.IgnoreProviderQuota })
		if known.Lesson.Failures > 0 || ignored {
			late[name] = known.Lesson.Late
		}
		if known.Due.After(now) {
			again = schedule.Earlier(again, known.Due)
		}
	}
	uses = schedule.Uses(nodes, late, now, "")
	for name, use := range uses {
		clouds[name].Seen(*use, waiting)
	}
	return uses, again
}
