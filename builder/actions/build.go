package actions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"poolkeeper/builder/buildlog"
	"poolkeeper/builder/command"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// build builds an image under its build lock, from the record to the record.
func (w *Worker) build(ctx context.Context, a plan.Action) error {
	began, since := clock.Now(ctx), a.Since
	ctx, giveBack, err := w.claim(ctx, zkmodel.BuildLimitPath, "builds "+a.Image, w.Config().MaxConcurrentBuilds)
	if err != nil {
		return err
	}
	defer giveBack()
	lock, err := w.Store.LockBuilds(ctx, a.Image)
	if err != nil {
		return err
	}
	defer Release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	w.Step(step.BuildLocked)
	w.Refresh(ctx)
	defer w.InFlight.Begin(a.Image)() // a drain waits for what does not see it yet
	w.Host.CanBuild()                 // else the plan says that the build is not ours
	a, in, err := w.confirm(ctx, a, func(d *plan.InFlight) { d.Locked = true })
	if err != nil {
		return err
	}
	image, ok := in.Config.DiskImage(a.Image)
	if !ok {
		return ErrStale
	}
	record := &zkmodel.Build{
		Image: a.Image, Builder: w.FQDN, BuilderID: w.BuilderID,
		Formats: in.Config.ImageFormats(a.Image),
	}
	if err := w.passNumbers(ctx, lock, a.Image); err != nil {
		return err
	}
	if err := w.Store.CreateBuild(ctx, lock, record); err != nil {
		return err
	}
	// Before a file or a cloud has it: it must not come again, whatever becomes of ZooKeeper and of us.
	if err := w.Images.Seen(disk.Name{Image: a.Image, ID: record.ID}); err != nil {
		w.Log.Debug("Cannot note a number; it is tried again", "error", err)
	}
	w.InFlight.Build(a.Image, record.ID)
	w.Step(step.BuildRecorded)
	span := w.Tracer.Build(record, "make", w.due(ctx, in, since), began, w.Now()).Waited("", time.Time{}, began).Set("why", a.Why)
	span.Next("lock")
	err = w.finishBuild(ctx, lock, a, in, image, record, span)
	span.Tell(err)
	return err
}

// passNumbers has the build get no number that there was before ZooKeeper went back in time. One
// that no tree has had must not end all builds of the image.
func (w *Worker) passNumbers(ctx context.Context, lock *recipe.Held, image string) error {
	newest, err := w.Images.Newest(image)
	if err != nil {
		return err
	}
	err = w.Store.PassNumbers(ctx, lock, image, newest)
	if !errors.Is(err, zkmodel.ErrFar) {
		return err
	}
	if _, told := w.far.LoadOrStore(image, true); !told {
		w.Log.Warn("Numbers of builds may come again; building goes on", "image", image, "error", err)
	}
	return nil
}

// due is when a build was due: when it was asked for, or came to the queue at since.
func (w *Worker) due(ctx context.Context, in plan.Input, since time.Time) time.Time {
	if w.Tracer.On() && in.Image.BuildRequested != nil {
		if asked := in.Image.BuildRequested.Ctime.Add(clock.Since(ctx, w.Now())); since.IsZero() || asked.Before(since) {
			return asked
		}
	}
	return since
}

// finishBuild makes the build of a record, and tells the tree how that ended.
func (w *Worker) finishBuild(ctx context.Context, lock *recipe.Held, a plan.Action, in plan.Input, image *configs.DiskImage, record *zkmodel.Build, span *trace.Span) error {
	log := span.Log(w.Log).With("image", record.Image, "build", record.ID)
	log.Info("Build begins", "why", a.Why, "formats", record.Formats)
	w.Metrics.BuildBegins(record.Image)
	defer w.Metrics.BuildEnds(record.Image)

	making, unbind := w.Cancels.Bind(ctx, record)
	making, kept := w.whileKept(making, record.Path(), func(data []byte, stat recipe.Stat) bool {
		return zkmodel.DecodeBuild(record.Image, record.ID, data, stat).State == zkmodel.BuildDeleting
	})
	command := span.Next("command")
	made, err := w.makeLogged(making, lock, in.Config, image, record)
	deleted := errors.Is(context.Cause(making), ErrDeleted)
	kept()
	unbind()
	command.Phases(made.Phases).End(err)
	span.Next("record")
	switch {
	case err == nil:
		if err := w.saveReady(ctx, lock, record, image, made); err != nil {
			// The tree may have it all the same, so the files stay: if it has
			// not, the record is a leftover, and they go with it.
			return err
		}
		log.Info("Build is ready", "sizes", sizes(record.Files))
		w.serveRequest(ctx, lock, in, record)
		w.tellReplaced(ctx, record)
		if len(in.Config.ProvidersOf(record.Image)) == 0 {
			span.Over(string(record.State), "")
		}
		return nil
	case stopped(ctx, lock):
		log.Info("Build is given up: this builder stops")
		span.Over("given up", "its builder stops")
		return w.giveUp(ctx, lock, record)
	case ctx.Err() == nil && deleted:
		log.Warn("Build canceled because its record was removed or marked for deletion")
		span.Over("cancelled", ErrDeleted.Error())
		w.serveRequest(ctx, lock, in, record)
		err = nil // the record that is marked goes by the next plan
	case ctx.Err() == nil && !made.Begun && !w.Host.CanBuild():
		log.Warn("Build is given up: it is left to other builders", "reason", Reason(err))
		span.Over("given up", Reason(err))
		return cmp.Or(w.giveUp(ctx, lock, record), ErrStale)
	case ctx.Err() == nil:
		log.Error("Build failed", "reason", Reason(err), "exit_code", made.Exit)
		span.Over("failed", Reason(err))
		cancelled := errors.Is(err, ErrCancelled)
		err = w.saveFailed(ctx, lock, record, made, err, a.Failures+1)
		if cancelled {
			w.serveRequest(ctx, lock, in, record) // nobody waits for it any more
			err = errors.Join(err, w.Store.ClearCancel(ctx, record.Image))
		}
	}
	// Failed: the files are of no use. Where the lock was lost, the next decision tells.
	proof, unproven := zkmodel.UnderLock(lock, record)
	if err != nil || unproven != nil {
		return err
	}
	return w.removeProven(ctx, plan.Action{Image: record.Image, Build: record.ID, Why: "there is no build"}, proof)
}

// tellReplaced tells the end of the build that a new one replaces before it was everywhere.
func (w *Worker) tellReplaced(ctx context.Context, by *zkmodel.Build) {
	if !w.Tracer.On() || w.Tree.Barrier(ctx) != nil {
		return
	}
	if b := trace.ReplacedBy(w.Tree.Image(by.Image), w.Config().ReceiversOf(by.Image), by); b != nil {
		w.Tracer.Replaced(b, by, w.Now())
	}
}

// makeLogged makes a build with a log that others can follow, of which the
// record tells them.
func (w *Worker) makeLogged(ctx context.Context, lock *recipe.Held, cfg *configs.Config, image *configs.DiskImage, record *zkmodel.Build) (command.Made, error) {
	log, err := w.openLog(cfg, record)
	if err != nil {
		return command.Made{}, err
	}
	grew, done := w.Logs.Writing(record.Image, record.ID)
	defer done()
	if record.Log = w.LogURL(record.Image, record.ID); record.Log != "" {
		if err := w.Store.SaveBuild(ctx, lock, record); err != nil {
			return command.Made{}, err
		}
	}
	return w.Commands.Make(ctx, command.Build{Config: cfg, Image: image, Record: record, Log: log, Grew: grew})
}

// openLog makes room for the log of a build, begins it and returns its path.
func (w *Worker) openLog(cfg *configs.Config, record *zkmodel.Build) (string, error) {
	dir, err := buildlog.MakeDir(cfg.BuildLogDir)
	if err != nil {
		return "", err
	}
	if err := buildlog.Prune(dir, record.Image, cfg.BuildLogRetention); err != nil {
		w.Log.Warn("Cannot remove old build logs", "error", err)
	}
	path, err := filepath.Abs(buildlog.Path(dir, record.Image, record.ID))
	if err != nil {
		return "", fmt.Errorf("open build log: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		return "", fmt.Errorf("open build log: %w", err)
	}
	return path, nil
}

// saveReady tells everybody that the build is there.
func (w *Worker) saveReady(ctx context.Context, lock *recipe.Held, record *zkmodel.Build, image *configs.DiskImage, m command.Made) error {
	record.Username, record.PythonPath, record.ShellType = image.Username, image.PythonPath, image.ShellType
	record.Formats, record.Filename = m.Formats, record.Name()
	record.Files = map[string]zkmodel.ImageFile{}
	for format, file := range m.Files {
		record.Files[format] = zkmodel.ImageFile{Size: file.Size, MD5: file.MD5, SHA256: file.SHA256}
	}
	record.Phases = m.Phases
	if err := zkmodel.Move(record, zkmodel.BuildReady, zkmodel.ByUs, zkmodel.EpochOf(w.Now())); err != nil {
		return err
	}
	if err := w.saveResult(ctx, lock, record); err != nil {
		return err
	}
	w.Metrics.Built(record, m.Files)
	w.Step(step.BuildReady)
	return nil
}

// saveResult saves the result of a build, which may have taken hours. It waits while the rights to the record are closed.
func (w *Worker) saveResult(ctx context.Context, lock *recipe.Held, record *zkmodel.Build) error {
	return lock.Session().UntilAllowed(ctx, func() error { return w.Store.SaveBuild(ctx, lock, record) })
}

// saveFailed tells everybody why there is no build.
func (w *Worker) saveFailed(ctx context.Context, lock *recipe.Held, record *zkmodel.Build, m command.Made, cause error, failures int) error {
	record.Formats = nil
	record.Reason, record.Tail, record.ExitCode = Reason(cause), m.Tail, m.Exit
	record.Phases, record.Failures = m.Phases, failures
	if err := zkmodel.Move(record, zkmodel.BuildFailed, zkmodel.ByUs, zkmodel.EpochOf(w.Now())); err != nil {
		return err
	}
	record.RetryAt = zkmodel.EpochOf(w.Policy.BuildAgain(record, w.Now()))
	if err := w.saveResult(ctx, lock, record); err != nil {
		return err
	}
	w.Metrics.FailedBuild(record)
	w.Step(step.BuildFailed)
	return nil
}

// serveRequest removes the request that this build has served. If that fails
// the next decision finds it again.
func (w *Worker) serveRequest(ctx context.Context, lock *recipe.Held, in plan.Input, record *zkmodel.Build) {
	flag := in.Image.BuildRequested
	if flag == nil {
		return
	}
	if err := w.Store.ClearBuildRequest(ctx, lock, record.Image, flag.Czxid); err != nil {
		w.Log.Warn("Cannot clear the request for a build", "image", record.Image, "error", err)
		return
	}
	w.Step(step.BuildServed)
}

// giveUp removes what there is of a build that is nobody's failure.
func (w *Worker) giveUp(ctx context.Context, lock *recipe.Held, record *zkmodel.Build) error {
	proof, err := zkmodel.UnderLock(lock, record)
	return errors.Join(err, w.Images.Remove(ctx, disk.Name{Image: record.Image, ID: record.ID}, proof), w.dropBuild(ctx, lock, record))
}

// dropBuild removes the record of a build that is nobody's failure, so that
// another builder can begin at once.
func (w *Worker) dropBuild(ctx context.Context, lock *recipe.Held, record *zkmodel.Build) error {
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	if err := w.Store.DropBuild(ctx, lock, record, "it is given up: its builder stops, or cannot build"); err != nil {
		return fmt.Errorf("give up build %s: %w", record.Name(), err)
	}
	return nil
}
