package builder

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// build builds an image under its build lock, from the record to the record.
func (l *loop) build(ctx context.Context, a plan.Action) error {
	ctx, giveBack, err := l.claim(ctx, zkmodel.BuildLimitPath, l.config.Load().MaxConcurrentBuilds)
	if err != nil {
		return err
	}
	defer giveBack()
	lock, err := l.store.LockBuilds(ctx, a.Image)
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	l.deps.Step(StepBuildLocked)
	a, in, err := l.confirm(ctx, a, func(d *plan.Doing) { d.Locked = true })
	if err != nil {
		return err
	}
	image, ok := in.Config.DiskImage(a.Image)
	if !ok {
		return errStale
	}
	record := &zkmodel.Build{
		Image: a.Image, Builder: l.deps.FQDN, BuilderID: l.id,
		Formats: in.Config.ImageFormats(a.Image),
	}
	if err := l.store.CreateBuild(ctx, lock, record); err != nil {
		return err
	}
	l.doing.build(a.Image, record.ID)
	l.deps.Step(StepBuildRecorded)
	return l.finishBuild(ctx, lock, a, in, image, record)
}

// finishBuild makes the build of a record, and tells the tree how that ended.
func (l *loop) finishBuild(ctx context.Context, lock *recipe.Held, a plan.Action, in plan.Input, image *configs.DiskImage, record *zkmodel.Build) error {
	log := l.log.With("image", record.Image, "build", record.ID)
	log.Info("Build begins", "why", a.Why, "formats", record.Formats)
	l.metrics.buildBegins()
	defer l.metrics.buildEnds()

	making, unbind := l.cancels.bind(ctx, record)
	made, err := l.makeLogged(making, lock, in.Config, image, record)
	unbind()
	name := disk.Name{Image: record.Image, ID: record.ID}
	switch {
	case err == nil:
		if err := l.saveReady(ctx, lock, record, image, made); err != nil {
			// The tree may have it all the same, so the files stay: if it has
			// not, the record is a leftover, and they go with it.
			return err
		}
		log.Info("Build is ready", "sizes", sizes(record.Files))
		l.serveRequest(ctx, lock, in, record)
		return nil
	case stopped(ctx, lock):
		log.Info("Build is given up: this builder stops")
		return errors.Join(l.images.Remove(ctx, name), l.dropBuild(ctx, lock, record))
	case ctx.Err() == nil:
		log.Error("Build failed", "reason", reason(err), "exit code", made.exit)
		cancelled := errors.Is(err, errCancelled)
		err = l.saveFailed(ctx, lock, record, made, err, a.Failures+1)
		if cancelled {
			l.serveRequest(ctx, lock, in, record) // nobody waits for it any more
			err = errors.Join(err, l.store.ClearCancel(ctx, record.Image))
		}
	}
	// Failed, or nobody knows of the build: the files are of no use.
	return errors.Join(err, l.removeFiles(ctx, plan.Action{Image: record.Image, Build: record.ID, Why: "the build failed"}))
}

// saveReady tells everybody that the build is there.
func (l *loop) saveReady(ctx context.Context, lock *recipe.Held, record *zkmodel.Build, image *configs.DiskImage, m made) error {
	record.Username, record.PythonPath, record.ShellType = image.Username, image.PythonPath, image.ShellType
	record.Formats = m.formats
	record.Files = map[string]zkmodel.ImageFile{}
	for format, file := range m.files {
		record.Files[format] = zkmodel.ImageFile{Size: file.Size, MD5: file.MD5, SHA256: file.SHA256}
	}
	record.Phases = m.phases
	record.SetState(zkmodel.BuildReady, zkmodel.EpochOf(l.deps.Now()))
	if err := l.store.SaveBuild(ctx, lock, record); err != nil {
		return err
	}
	l.metrics.built(record)
	l.deps.Step(StepBuildReady)
	return nil
}

// saveFailed tells everybody why there is no build.
func (l *loop) saveFailed(ctx context.Context, lock *recipe.Held, record *zkmodel.Build, m made, cause error, failures int) error {
	record.Formats = nil
	record.Reason, record.Tail, record.ExitCode = reason(cause), m.tail, m.exit
	record.Phases, record.Failures = m.phases, failures
	record.SetState(zkmodel.BuildFailed, zkmodel.EpochOf(l.deps.Now()))
	record.RetryAt = zkmodel.EpochOf(l.deps.Policy.BuildAgain(record))
	if err := l.store.SaveBuild(ctx, lock, record); err != nil {
		return err
	}
	l.metrics.failedBuild(record)
	l.deps.Step(StepBuildFailed)
	return nil
}

// serveRequest removes the request that this build has served. If that fails
// the next decision finds it again.
func (l *loop) serveRequest(ctx context.Context, lock *recipe.Held, in plan.Input, record *zkmodel.Build) {
	flag := in.Image.BuildRequested
	if flag == nil {
		return
	}
	if err := l.store.ClearBuildRequest(ctx, lock, record.Image, flag.Czxid); err != nil {
		l.log.Warn("Cannot clear the request for a build", "image", record.Image, "error", err)
		return
	}
	l.deps.Step(StepBuildServed)
}

// dropBuild removes the record of a build that is nobody's failure, so that
// another builder can begin at once.
func (l *loop) dropBuild(ctx context.Context, lock *recipe.Held, record *zkmodel.Build) error {
	ctx, cancel := parting(ctx)
	defer cancel()
	if err := lock.DeleteTree(ctx, record.Path()); err != nil {
		return fmt.Errorf("give up build %s: %w", record.Name(), err)
	}
	return nil
}
