package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// lockWait is how long an action waits for the lock of a record, which others
// hold for moments only.
const lockWait = 5 * time.Second

// farewell is how long we take to tell the tree of what we were stopped in.
const farewell = 3 * time.Second

// act does what an action says.
func (l *loop) act(ctx context.Context, a plan.Action) error {
	switch a.Kind {
	case plan.Build:
		return l.build(ctx, a)
	case plan.Upload:
		return l.upload(ctx, a)
	case plan.ClearRequest:
		return l.clearRequest(ctx, a)
	case plan.DeleteUpload:
		return l.deleteUpload(ctx, a)
	case plan.ReclaimUpload:
		return l.reclaimUpload(ctx, a)
	case plan.MarkBuild:
		return l.markBuild(ctx, a)
	case plan.DeleteBuild:
		return l.deleteBuild(ctx, a)
	case plan.RemoveFiles:
		return l.removeFiles(ctx, a)
	case plan.RemoveFormat:
		return l.removeFormat(a)
	case plan.Adopt:
		return l.images.Adopt(nameOf(a))
	}
	return fmt.Errorf("action %q: %w", a.Kind, errors.ErrUnsupported)
}

func nameOf(a plan.Action) disk.Name { return disk.Name{Image: a.Image, ID: a.Build} }

func uploadOf(a plan.Action) zkmodel.UploadKey {
	return zkmodel.UploadKey{Image: a.Image, Build: a.Build, Provider: a.Provider, ID: a.Upload}
}

// release gives a lock up, also when the context of the work has ended.
func release(ctx context.Context, lock *recipe.Held) {
	ctx, cancel := parting(ctx)
	defer cancel()
	_ = lock.Release(ctx) // goes on in the background; or the session has ended
}

// parting is a context for the last words under a lock: it outlives the work.
// Should the lock be lost, its fence refuses them.
func parting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), farewell)
}

// stopped tells whether work ended because this builder ends, while the lock
// that it was done under is still held.
func stopped(ctx context.Context, lock *recipe.Held) bool {
	return ctx.Err() != nil && lock.Context().Err() == nil
}

// clearRequest removes a request for a build that has been served.
func (l *loop) clearRequest(ctx context.Context, a plan.Action) error {
	lock, err := l.store.LockBuilds(ctx, a.Image)
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	_, in, err := l.confirm(ctx, a, func(d *plan.Doing) { d.Locked = true })
	if err != nil {
		return err
	}
	return l.store.ClearBuildRequest(ctx, lock, a.Image, in.Image.BuildRequested.Czxid)
}
