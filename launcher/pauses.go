package launcher

import (
	"context"
	"time"

	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// pauseOver is by whom a pause is ended whose time is over.
const pauseOver = "its end"

// heedPauses notes which providers people have paused. The time is when the first pause
// ends, by our clock.
func (s *session) heedPauses(ctx context.Context, snap *schedule.Snapshot) (again time.Time) {
	list := s.mirror.ProviderPauses()
	now := snap.Now.Add(snap.Lag)
	paused := zkmodel.Paused(list, now)
	for name, c := range s.clouds {
		why := ""
		if p := paused[name]; p != nil {
			why = p.Text()
		} else {
			why = s.rival(name)
		}
		c.Pause(why)
	}
	for _, p := range list {
		if p.Over(now) {
			s.jobs.Start(inflight.Task("pause of "+p.Provider), func() error {
				_, err := s.store.ResumeProvider(ctx, p.Provider, pauseOver, p)
				return err
			})
			continue
		}
		if end := p.Ends(); !end.IsZero() {
			again = schedule.Earlier(again, end.Add(-snap.Lag))
		}
	}
	return again
}

// rival says who else has all nodes of a provider for himself as long as he is there:
// Nodepool's launcher, where they are slots; "" is nobody.
func (l *Launcher) rival(provider string) string {
	if l.backing[provider] == nil {
		return ""
	}
	return zkmodel.BackingRival(l.mirror.Components(zkmodel.KindPool), provider)
}

// drained are the providers whose idle nodes are to go, and who wants that.
func (l *Launcher) drained() map[string]string {
	drained := map[string]string{}
	for name, p := range zkmodel.Paused(l.mirror.ProviderPauses(), l.now().Add(l.ahead())) {
		if p.Drain {
			drained[name] = p.Text()
		}
	}
	return drained
}
