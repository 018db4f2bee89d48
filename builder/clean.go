package builder

import (
	"context"
	"errors"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// markBuild marks a build as deleting: its files go at once, its record when
// the clouds are done.
func (l *loop) markBuild(ctx context.Context, a plan.Action) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if _, _, err := l.confirm(ctx, a, func(*plan.Doing) {}); err != nil {
		return err
	}
	err := l.store.MarkBuildDeleting(ctx, a.Image, a.Build)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	l.deps.Step(StepBuildMarked)
	return nil
}

// deleteBuild removes the record of a build that has no uploads. Whoever wants
// to begin one meanwhile sees that the build is being deleted.
func (l *loop) deleteBuild(ctx context.Context, a plan.Action) error {
	if err := l.markBuild(ctx, a); err != nil {
		return err
	}
	_, in, err := l.confirm(ctx, a, func(*plan.Doing) {})
	if err != nil {
		return err
	}
	if err := l.store.DeleteBuild(ctx, a.Image, a.Build); err != nil {
		return err
	}
	l.log.Info("Build deleted", "image", a.Image, "build", a.Build, "why", a.Why, "left", len(in.Image.Builds)-1)
	l.deps.Step(StepBuildDeleted)
	return nil
}

// removeFiles removes a build's files from this host.
func (l *loop) removeFiles(ctx context.Context, a plan.Action) error {
	if err := l.images.Remove(ctx, nameOf(a)); err != nil {
		return err
	}
	l.log.Info("Files removed", "image", a.Image, "build", a.Build, "why", a.Why)
	l.deps.Step(StepFilesRemoved)
	return nil
}

// removeFormat removes a build's file of one format from this host.
func (l *loop) removeFormat(a plan.Action) error {
	if err := l.images.RemoveFormat(nameOf(a), a.Format); err != nil {
		return err
	}
	l.log.Info("File removed", "image", a.Image, "build", a.Build, "format", a.Format, "why", a.Why)
	l.deps.Step(StepFormatRemoved)
	return nil
}
