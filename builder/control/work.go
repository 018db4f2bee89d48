package control

import (
	"maps"
	"slices"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// publish tells the tree what this builder is at, for those who explain what waits.
func (l *loop) publish() {
	w := zkmodel.BuilderWork{Host: l.FQDN, BuildWorkers: l.queue.builds, UploadWorkers: l.queue.uploads, ClockOff: l.clock.off().Round(time.Second)}
	for _, key := range slices.Sorted(maps.Keys(l.queue.running)) {
		switch t := l.queue.running[key]; t.Kind {
		case plan.Build:
			w.Builds = append(w.Builds, t.Image)
		case plan.Upload:
			w.Uploads = append(w.Uploads, zkmodel.BuilderTransfer{Image: t.Image, Build: t.Build, Provider: t.Provider})
		default: // takes no worker that an operator has set
		}
	}
	l.Self.At(w)
	l.Metrics.Waiting(l.queue.waits())
}

// queueOf is the queue of a builder that is at this.
func queueOf(w zkmodel.BuilderWork, cfg *configs.Config) *queue {
	q := newQueue(w.BuildWorkers, w.UploadWorkers)
	q.receivers = receivers(cfg)
	run := func(a plan.Action) {
		q.running[a.Key()] = &task{Action: a, key: a.Key()}
		q.count[lane(a)]++
	}
	for _, image := range w.Builds {
		run(plan.Action{Kind: plan.Build, Image: image})
	}
	for _, u := range w.Uploads {
		run(plan.Action{Kind: plan.Upload, Image: u.Image, Build: u.Build, Provider: u.Provider})
	}
	return q
}

// Room reports whether a builder that is at w has a worker free for an action; if it has
// none for an upload, reserved says whether those that are free are for other providers.
func Room(w zkmodel.BuilderWork, cfg *configs.Config, a plan.Action) (free, reserved bool) {
	q := queueOf(w, cfg)
	free = q.room(a)
	return free, !free && a.Kind == plan.Upload && len(q.running)-q.count[string(plan.Build)] < q.uploads
}
