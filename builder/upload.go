package builder

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// upload sends a build to a provider under the lock of the build's uploads
// there, from the record to the record.
func (l *loop) upload(ctx context.Context, a plan.Action) error {
	cfg := l.config.Load()
	cloud, done, err := l.clouds.use(cfg, a.Provider) // before anybody is told that we try
	if err != nil {
		return err
	}
	defer done()
	ctx, giveBack, err := l.claim(ctx, zkmodel.UploadLimitPath, cfg.MaxConcurrentUploads)
	if err != nil {
		return err
	}
	defer giveBack()
	lock, err := l.store.LockUploads(ctx, a.Image, a.Build, a.Provider)
	if err != nil {
		return err
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	l.deps.Step(StepUploadLocked)
	a, in, err := l.confirm(ctx, a, func(d *plan.Doing) { d.Sending = a.Key() })
	if err != nil {
		return err
	}
	build, err := l.store.Build(ctx, a.Image, a.Build)
	if err != nil {
		return err
	}
	if build.State != zkmodel.BuildReady {
		return errStale
	}
	record := &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Image: a.Image, Build: a.Build, Provider: a.Provider},
		Username:  build.Username, PythonPath: build.PythonPath, ShellType: build.ShellType,
		Builder: l.deps.FQDN,
	}
	l.doing.upload(a.Key())
	if err := l.store.CreateUpload(ctx, lock, record); err != nil {
		return err
	}
	l.deps.Step(StepUploadRecorded)
	l.metrics.uploadBegins()
	defer l.metrics.uploadEnds()
	s := sending{loop: l, lock: lock, cloud: cloud, record: record, build: build, cfg: in.Config, format: a.Format}
	return s.run(ctx, a.Failures)
}

// sending is one upload under way.
type sending struct {
	*loop
	lock   *recipe.Held
	cloud  providers.Provider
	record *zkmodel.Upload
	build  *zkmodel.Build
	cfg    *configs.Config
	format string
}

// run sends the file and tells the tree how that ended.
func (s *sending) run(ctx context.Context, failures int) error {
	log := s.log.With("image", s.record.Image, "build", s.record.Build, "provider", s.record.Provider, "upload", s.record.ID)
	log.Info("Upload begins", "format", s.format)
	began := s.deps.Now()
	id, err := s.send(ctx)
	switch {
	case err == nil:
		s.deps.Step(StepUploadSent)
		if err := s.saveReady(ctx, id); err != nil {
			// Nobody will ever know of the image: take it back.
			return errors.Join(err, s.takeBack(ctx, id))
		}
		log.Info("Upload is ready", "external id", id)
		s.metrics.uploaded(s.record, s.deps.Now().Sub(began))
		return nil
	case stopped(ctx, s.lock):
		log.Info("Upload is given up: this builder stops")
		return s.drop(ctx)
	case ctx.Err() != nil:
		return err // the lock is lost, and others know it
	}
	log.Error("Upload failed", "reason", reason(err))
	s.record.Reason, s.record.Failures, s.record.Progress = reason(err), failures+1, nil
	s.record.SetState(zkmodel.UploadFailed, zkmodel.EpochOf(s.deps.Now()))
	s.record.RetryAt = zkmodel.EpochOf(s.deps.Policy.UploadAgain(s.record))
	if err := s.store.SaveUpload(ctx, s.lock, s.record); err != nil {
		return err
	}
	s.metrics.failedUpload(s.record)
	s.deps.Step(StepUploadFailed)
	return nil
}

// saveReady tells everybody that the image can be used.
func (s *sending) saveReady(ctx context.Context, id string) error {
	s.record.ExternalID = zkmodel.TextValue(id)
	s.record.Format, s.record.Progress = s.format, nil
	s.record.SetState(zkmodel.UploadReady, zkmodel.EpochOf(s.deps.Now()))
	if err := s.store.SaveUpload(ctx, s.lock, s.record); err != nil {
		return err
	}
	s.deps.Step(StepUploadReady)
	return nil
}

// takeBack removes an image from the cloud that was just sent. If that fails,
// the search for leaks finds it by its metadata.
func (s *sending) takeBack(ctx context.Context, id string) error {
	limit := takeBackTime
	if ctx.Err() != nil {
		limit = takeBackHaste
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := s.cloud.DeleteImage(ctx, id); err != nil {
		return fmt.Errorf("take back image %s of %s: %w", id, s.record.Provider, err)
	}
	return nil
}

// drop removes the record of an upload that is nobody's failure.
func (s *sending) drop(ctx context.Context) error {
	ctx, cancel := parting(ctx)
	defer cancel()
	if err := s.lock.DeleteTree(ctx, s.record.Path()); err != nil {
		return fmt.Errorf("give up upload %s: %w", s.record.Path(), err)
	}
	return nil
}
