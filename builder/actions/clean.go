package actions

import (
	"context"
	"errors"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// markBuild marks a build as deleting: its files go at once, its record when
// the clouds are done.
func (w *Worker) markBuild(ctx context.Context, a plan.Action) error {
	ctx, cancel := clock.WithTimeout(ctx, lockWait)
	defer cancel()
	if _, _, err := w.confirm(ctx, a, func(*plan.InFlight) {}); err != nil {
		return err
	}
	err := w.Store.MarkBuildDeleting(ctx, zkmodel.ByUs, a.Image, a.Build, false)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	w.Step(step.BuildMarked)
	return nil
}

// deleteBuild removes the record of a build that has no uploads. Whoever wants
// to begin one meanwhile sees that the build is being deleted.
func (w *Worker) deleteBuild(ctx context.Context, a plan.Action) error {
	b, err := w.Store.Build(ctx, a.Image, a.Build)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err == nil && b.Leftover() {
		err = w.leftInClouds(ctx, a.Image, a.Build)
	}
	if err != nil {
		return err
	}
	if err := w.markBuild(ctx, a); err != nil {
		return err
	}
	_, in, err := w.confirm(ctx, a, func(*plan.InFlight) {})
	if err != nil {
		return err
	}
	err = w.Store.DeleteBuild(ctx, a.Image, a.Build)
	if errors.Is(err, zkmodel.ErrNotFound) { // another builder was quicker
		return nil
	}
	if err != nil {
		return err
	}
	w.Log.Info("Build deleted", "image", a.Image, "build", a.Build, "why", a.Why, "left", len(in.Image.Builds)-1)
	w.Step(step.BuildDeleted)
	return nil
}

// removeFiles removes a build's files from this host.
func (w *Worker) removeFiles(ctx context.Context, a plan.Action) error {
	proof, done, err := w.aboutFiles(ctx, a)
	if err != nil {
		return err
	}
	defer done()
	return w.removeProven(ctx, a, proof)
}

// removeProven does so with the proof that the record allows it.
func (w *Worker) removeProven(ctx context.Context, a plan.Action, proof zkmodel.Proof) error {
	if err := w.Images.Remove(ctx, nameOf(a), proof); err != nil {
		return err
	}
	w.Log.Info("Files removed", "image", a.Image, "build", a.Build, "why", a.Why)
	w.Step(step.FilesRemoved)
	return nil
}

// removeFormat removes a build's file of one format from this host.
func (w *Worker) removeFormat(ctx context.Context, a plan.Action) error {
	proof, done, err := w.aboutFiles(ctx, a)
	if err != nil {
		return err
	}
	defer done()
	if err := w.Images.RemoveFormat(nameOf(a), a.Format, proof); err != nil {
		return err
	}
	w.Log.Info("File removed", "image", a.Image, "build", a.Build, "format", a.Format, "why", a.Why)
	w.Step(step.FormatRemoved)
	return nil
}

// aboutFiles proves that a build's files may go: its record is not there, or is read
// again under its lock, and wants it still. done gives the lock back.
func (w *Worker) aboutFiles(ctx context.Context, a plan.Action) (proof zkmodel.Proof, done func(), err error) {
	bounded, cancel := clock.WithTimeout(ctx, lockWait)
	defer cancel()
	lock, build, err := w.Store.LockBuild(bounded, a.Image, a.Build)
	if errors.Is(err, zkmodel.ErrNotFound) {
		proof, err = w.Tree.Absent(ctx, w.Store.Session(), zkmodel.BuildPath(a.Image, a.Build))
		return proof, func() {}, err
	}
	if err != nil {
		return proof, nil, err
	}
	if _, _, err = w.confirm(bounded, a, func(*plan.InFlight) {}); err == nil {
		proof, err = zkmodel.UnderLock(lock, build)
	}
	if err != nil {
		Release(ctx, lock)
		return proof, nil, err
	}
	return proof, func() { Release(ctx, lock) }, nil
}
