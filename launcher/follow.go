package launcher

import (
	"context"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/recipe"
)

// follower turns what changes in the tree into looks at it. It remembers what
// kind of thing has changed, as some questions are too dear to ask each time.
type follower struct {
	images, verdicts, trials, canaries, pauses, nodes, requests, components *recipe.Subscription

	imagesChanged, canariesChanged, membersChanged bool
}

func (l *Launcher) follow() *follower {
	return &follower{
		images:     l.mirror.SubscribeImages(),
		verdicts:   l.mirror.SubscribeVerdicts(),
		trials:     l.mirror.SubscribeValidations(),
		canaries:   l.mirror.SubscribeCanaries(),
		pauses:     l.mirror.SubscribePauses(),
		nodes:      l.mirror.SubscribeNodes(),
		requests:   l.mirror.SubscribeRequests(),
		components: l.mirror.SubscribeComponents(),
		// Nothing is known at first.
		imagesChanged: true, membersChanged: true,
	}
}

// close ends the subscriptions.
func (f *follower) close() {
	for _, s := range []*recipe.Subscription{f.images, f.verdicts, f.trials, f.canaries, f.pauses, f.nodes, f.requests, f.components} {
		s.Close()
	}
}

// wait returns when something has changed, wake was called, or a time has
// come; it is false when ctx has ended.
func (f *follower) wait(ctx context.Context, wake <-chan struct{}, until time.Duration) bool {
	timer := clock.NewTimer(ctx, max(until, 0))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
	case <-wake:
	case <-f.images.C():
		f.imagesChanged = true
	case <-f.verdicts.C():
		f.imagesChanged = true
	case <-f.canaries.C():
		f.canariesChanged = true
	case <-f.components.C():
		f.membersChanged = true
	case <-f.trials.C():
	case <-f.pauses.C():
	case <-f.nodes.C():
	case <-f.requests.C():
	}
	return ctx.Err() == nil
}

// change waits as wait does, and takes what has changed.
func (f *follower) change(ctx context.Context, until time.Duration) bool {
	there := f.wait(ctx, nil, until)
	f.take()
	return there
}

// take empties the subscriptions; what changes from now on wakes again.
func (f *follower) take() {
	f.nodes.Take()
	f.requests.Take()
	f.trials.Take()
	f.pauses.Take()
	images, verdicts := f.images.Take(), f.verdicts.Take()
	f.imagesChanged = len(images)+len(verdicts) > 0 || f.imagesChanged
	f.canariesChanged = len(f.canaries.Take()) > 0 || f.canariesChanged
	f.membersChanged = len(f.components.Take()) > 0 || f.membersChanged
}
