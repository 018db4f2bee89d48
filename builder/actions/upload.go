package actions

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/builder/trial"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/configs/planted"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// upload sends a build to a provider under the lock of the build's uploads
// there, from the record to the record.
func (w *Worker) upload(ctx context.Context, a plan.Action) error {
	began, cfg := clock.Now(ctx), w.Config()
	cloud, done, err := w.use(cfg, a.Provider) // before anybody is told that we try
	if err != nil {
		return err
	}
	defer done()
	ctx, giveBack, err := w.claim(ctx, zkmodel.UploadLimitPath, "uploads "+a.Image+"-"+a.Build+" to "+a.Provider, cfg.MaxConcurrentUploads)
	if err != nil {
		return err
	}
	defer giveBack()
	lock, err := w.Store.LockUploads(ctx, a.Image, a.Build, a.Provider)
	if err != nil {
		return err
	}
	kept := false // by who holds uploads under trial
	defer func() {
		if !kept {
			Release(ctx, lock)
		}
	}()
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	w.Step(step.UploadLocked)
	defer w.InFlight.BeginUpload(a.Key())() // a drain waits for what does not see it yet
	a, in, err := w.confirm(ctx, a, func(d *plan.InFlight) { d.Sending = a.Key() })
	if err != nil {
		return err
	}
	build, err := w.Store.Build(ctx, a.Image, a.Build)
	if err != nil {
		return err
	}
	if build.State != zkmodel.BuildReady {
		return ErrStale
	}
	record := &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Image: a.Image, Build: a.Build, Provider: a.Provider},
		Username:  build.Username, PythonPath: build.PythonPath, ShellType: build.ShellType,
		Builder: w.FQDN,
	}
	tried, err := w.trialOf(in.Config, a)
	if err != nil {
		return err
	}
	w.InFlight.Upload(a.Key())
	sendEarly(ctx, sending{Worker: w, lock: lock, cloud: cloud, record: record, build: build, cfg: in.Config, format: a.Format})
	if err := w.Store.CreateUpload(ctx, lock, record); err != nil {
		return err
	}
	w.Step(step.UploadRecorded)
	w.Metrics.UploadBegins(a.Image, a.Provider)
	defer w.Metrics.UploadEnds(a.Image, a.Provider)
	span := w.Tracer.Build(build, "upload", time.Time{}, began, w.Now()).Waited(a.Provider, dueSince(in.Image, build, a.Provider), w.Now()).Set("provider", a.Provider).Set("upload", record.ID)
	span.Next("lock")
	s := sending{Worker: w, span: span, lock: lock, cloud: cloud, record: record, build: build, cfg: in.Config, format: a.Format, trial: tried, noCanary: in.NoCanary[a.Provider]}
	kept, err = s.run(ctx, a.Failures)
	if err == nil && w.Tracer.On() && record.State == zkmodel.UploadReady && w.everywhere(ctx, record.UploadKey) {
		span.Over(string(record.State), "")
	}
	span.Tell(err)
	return toldBy(record, err)
}

// toldBy is how the sending of an upload ended: without an error that is told by its record.
func toldBy(record *zkmodel.Upload, err error) error {
	if err == nil && record.State == zkmodel.UploadFailed {
		return ErrRecorded
	}
	return err
}

// dueSince is since when a build was to be sent to a provider: it was ready, or has failed
// there.
func dueSince(i *zkmodel.Image, b *zkmodel.Build, provider string) time.Time {
	since := b.StateTime
	for _, one := range i.Builds {
		for _, u := range one.Uploads {
			if one.ID == b.ID && u.Provider == provider && u.Broken == nil {
				since = max(since, u.StateTime)
			}
		}
	}
	return since.Time()
}

// everywhere reports whether a build is in service wherever our configuration has its image,
// and this upload was the last.
func (w *Worker) everywhere(ctx context.Context, u zkmodel.UploadKey) bool {
	if err := w.Tree.Barrier(ctx); err != nil {
		return false
	}
	return trace.Everywhere(w.Tree.Image(u.Image), w.Config().ReceiversOf(u.Image), u)
}

// trialOf is the trial of an upload that is about to begin; nil when it serves at once.
func (w *Worker) trialOf(cfg *configs.Config, a plan.Action) (*zkmodel.Validation, error) {
	if !a.Tried {
		return nil, nil //nolint:nilnil // there is none
	}
	return trial.Wanted(cfg, a.Image, a.Provider)
}

// sending is one upload under way.
type sending struct {
	*Worker
	span   *trace.Span // nil where nothing is told
	lock   *recipe.Held
	cloud  lent
	record *zkmodel.Upload
	build  *zkmodel.Build
	cfg    *configs.Config
	format string
	trial  *zkmodel.Validation // nil when it serves at once
	// noCanary says that no build is going to be a canary there.
	noCanary bool
}

// sendEarly is the mistake to send a file before anybody can know of it.
func sendEarly(ctx context.Context, s sending) {
	if planted.Bug("upload") {
		s.record.ID = "0000000001"
		_, _ = s.send(ctx)
	}
}

// run sends the file and tells the tree how that ended. It reports whether the upload is
// tried now, and its lock kept.
func (s *sending) run(ctx context.Context, failures int) (kept bool, err error) {
	key := s.record.UploadKey // the watch reads it while the record is saved
	ctx, stopWatching := s.whileKept(ctx, s.record.Path(), func(data []byte, stat recipe.Stat) bool {
		return zkmodel.DecodeUpload(key, data, stat).State == zkmodel.UploadDeleting
	})
	defer stopWatching()
	log := s.span.Log(s.Log).With("image", s.record.Image, "build", s.record.Build, "provider", s.record.Provider, "upload", s.record.ID)
	log.Info("Upload begins", "format", s.format)
	began := s.Now()
	sent := s.span.Next("send")
	id, err := s.send(ctx)
	sent.End(err)
	s.span.Next("record")
	switch {
	case err == nil:
		s.Step(step.UploadSent)
		if err := s.lock.Session().UntilAllowed(ctx, func() error { return s.save(ctx, id) }); err != nil {
			// Nobody will ever know of the image: take it back.
			return false, errors.Join(err, s.takeBack(ctx, id))
		}
		s.Metrics.Uploaded(s.record, s.Now().Sub(began))
		switch {
		case s.trial == nil:
			log.Info("Upload is ready", "external_id", id)
		case s.trial.Canary:
			log.Info("Upload is sent, and waits", "external_id", id, "why", s.trial.Text())
		default:
			log.Info("Upload is sent, and is tried before it serves", "external_id", id)
		}
		return s.trial != nil, nil
	case stopped(ctx, s.lock) && s.record.Asked != 0:
		log.Info("Upload stopped before the cloud answered; its record stays until the cloud can no longer create the image",
			"external_id", s.record.AskedID, "why", context.Cause(ctx))
		return false, nil
	case stopped(ctx, s.lock):
		log.Info("Upload is given up, its record goes", "why", context.Cause(ctx))
		return false, s.drop(ctx)
	case ctx.Err() != nil:
		return false, err // the lock is lost, and others know it
	}
	log.Error("Upload failed", "reason", Reason(err))
	defer s.span.End(err)
	s.record.Reason, s.record.Failures, s.record.Progress = Reason(err), failures+1, nil
	if err := zkmodel.Move(s.record, zkmodel.UploadFailed, zkmodel.ByUs, zkmodel.EpochOf(s.Now())); err != nil {
		return false, err
	}
	s.record.RetryAt = zkmodel.EpochOf(s.retryAt(err))
	if err := s.lock.Session().UntilAllowed(ctx, func() error { return s.Store.SaveUpload(ctx, s.lock, s.record) }); err != nil {
		return false, err
	}
	s.Metrics.FailedUpload(s.record)
	s.Step(step.UploadFailed)
	return false, nil
}

// retryAt is when an upload that failed with err is tried again. A cloud that refused the image itself, because of its size or of a
// quota, is not sent the same bytes again within minutes.
func (s *sending) retryAt(err error) time.Time {
	pause := providers.PauseOf(err)
	if errors.Is(err, providers.ErrQuota) || errors.Is(err, providers.ErrInvalid) {
		pause = max(pause, s.Policy.RefusedUpload(s.record))
	}
	again := s.Policy.UploadAgain(s.record, s.Now())
	if asked := s.Now().Add(pause); asked.After(again) {
		return asked
	}
	return again
}

// save tells everybody that the image is there: ready, or as one that is tried, or waits.
func (s *sending) save(ctx context.Context, id string) error {
	s.record.ExternalID = zkmodel.TextValue(id)
	s.record.Format, s.record.Progress = s.format, nil
	if s.trial != nil {
		return s.beginTrial(ctx, id)
	}
	var err error
	for range saves {
		var c *zkmodel.Canary
		if c, err = s.canary(ctx); err != nil {
			return err
		}
		var why string
		if why, err = s.waits(ctx, c); err != nil {
			return err
		}
		if why != "" {
			s.trial = zkmodel.WaitingValidation(why)
			return s.beginTrial(ctx, id)
		}
		if err = s.saveReady(ctx, c); !errors.Is(err, recipe.ErrVersion) && !errors.Is(err, zkmodel.ErrNotFound) {
			return err
		}
	}
	return err
}

// saves is how often a write is tried that a canary's beginning, or its record's end, has made void.
const saves = 5

// canary is how builds of the image come into service where it is sent; nil where each does
// at once, or nobody can read it.
func (s *sending) canary(ctx context.Context) (*zkmodel.Canary, error) {
	if s.Config().CanaryOf(s.record.Image) == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	c, err := s.Store.Canary(ctx, s.record.Provider, s.record.Image)
	if c != nil && c.Broken != nil || recipe.Unreadable(err) {
		c, err = nil, nil // then the newest serves
	}
	return c, err
}

// waits says why the image is not to be ready yet, by the record c; "" when it may be.
func (s *sending) waits(ctx context.Context, c *zkmodel.Canary) (string, error) {
	if c == nil || c.Trial != nil {
		return c.Holds(s.build), nil
	}
	i, err := s.Store.BesideCanary(ctx, c)
	if err != nil {
		return "", err
	}
	return i.Waits(s.build, s.record.Provider, s.noCanary), nil
}

// saveReady tells everybody that the image can be used, if no canary has begun since c was read.
func (s *sending) saveReady(ctx context.Context, c *zkmodel.Canary) error {
	ready := *s.record
	if err := zkmodel.Move(&ready, zkmodel.UploadReady, zkmodel.ByUs, zkmodel.EpochOf(s.Now())); err != nil {
		return err
	}
	if err := s.Store.SaveReady(ctx, s.lock, &ready, c); err != nil {
		return err
	}
	*s.record = ready
	s.Step(step.UploadReady)
	return nil
}

// beginTrial tells everybody that the image is there, and is tried before it serves, or
// waits. The lock is another's from then on.
func (s *sending) beginTrial(ctx context.Context, id string) error {
	v := s.trial
	v.BuildCzxid = s.build.Stat.Czxid
	v.ExternalID, v.ExternalName, v.Format = id, s.record.ExternalName, s.format
	v.Username, v.PythonPath, v.ShellType = s.record.Username, s.record.PythonPath, s.record.ShellType
	keep, drop := s.Trials.Reserve(s.record.UploadKey)
	if err := s.Store.BeginValidation(ctx, s.lock, s.record, v); err != nil {
		drop()
		return err
	}
	s.Step(step.TrialBegun)
	keep(s.lock)
	return nil
}

// takeBack removes an image from the cloud that was just sent. If that fails, or the
// lock was lost, so that the record may say ready, whoever reclaims the upload finds
// the image by its metadata, or the search for leaks.
func (s *sending) takeBack(ctx context.Context, id string) error {
	limit := takeBackTime
	if ctx.Err() != nil {
		limit = takeBackHaste
	}
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	now, err := s.voidLateWrite(ctx)
	if err != nil {
		return err
	}
	if now.State == zkmodel.UploadReady || now.OnTrial() {
		return nil // it is there, and known
	}
	proof, err := zkmodel.UnderLock(s.lock, now)
	if err != nil {
		return err
	}
	if err := s.cloud.remove(ctx, proof, s.record.UploadKey, id); err != nil {
		return fmt.Errorf("take back image %s of %s: %w", id, s.record.Provider, err)
	}
	return nil
}

// voidLateWrite makes sure that the record does not come to name the image any more, or returns the record as
// another process has changed it. A write that we have given up, when we were to stop, may still come, and behind a read; one of
// ours before it makes it void.
func (s *sending) voidLateWrite(ctx context.Context) (*zkmodel.Upload, error) {
	s.record.ExternalID, s.record.Progress = zkmodel.Value{}, nil
	err := s.Store.SaveUpload(ctx, s.lock, s.record)
	if errors.Is(err, recipe.ErrVersion) {
		return s.Store.Upload(ctx, s.record.UploadKey)
	}
	return s.record, err
}

// drop removes the record of an upload that is nobody's failure.
func (s *sending) drop(ctx context.Context) error {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	if err := s.Store.DropUpload(ctx, s.lock, s.record, "it is given up: its builder stops"); err != nil {
		return fmt.Errorf("give up upload %s: %w", s.record.Path(), err)
	}
	return nil
}
