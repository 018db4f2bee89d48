package actions

import (
	"context"
	"errors"

	"poolkeeper/builder/plan"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// clearRequest removes a request for a build that has been served.
func (w *Worker) clearRequest(ctx context.Context, a plan.Action) error {
	lock, err := w.Store.LockBuilds(ctx, a.Image)
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	_, in, err := w.confirm(ctx, a, func(d *plan.InFlight) { d.Locked = true })
	if err != nil {
		return err
	}
	return w.Store.ClearBuildRequest(ctx, lock, a.Image, in.Image.BuildRequested.Czxid)
}

// moveLog writes into a build's record where its log can be read now.
func (w *Worker) moveLog(ctx context.Context, a plan.Action) error {
	ctx, cancel := clock.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, b, err := w.Store.LockBuild(ctx, a.Image, a.Build)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	if _, _, err := w.confirm(ctx, a, func(*plan.InFlight) {}); err != nil {
		return err
	}
	b.Log = w.LogURL(a.Image, a.Build)
	return w.Store.SaveBuild(ctx, lock, b)
}

// forgetVerdicts forgets what people said of builds that are gone.
func (w *Worker) forgetVerdicts(ctx context.Context, a plan.Action) error {
	ctx, cancel := clock.WithTimeout(ctx, lockWait)
	defer cancel()
	if _, _, err := w.confirm(ctx, a, func(*plan.InFlight) {}); err != nil {
		return err
	}
	err := w.Store.ForgetVerdicts(ctx, a.Image)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	return err
}
