package actions

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/command"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Deps is what a Worker is given: all of it is required, but Tracer.
type Deps struct {
	Config   func() *configs.Config
	Store    *zkmodel.Store
	Tree     Tree
	Images   *disk.Images
	Commands *command.Runner
	// Use lends a provider of a configuration until done is called.
	Use       func(cfg *configs.Config, provider string) (p providers.Provider, done func(), err error)
	Snapshots Snapshots
	Host      Host
	InFlight  InFlight
	Trials    Trials
	Cancels   Cancels
	Metrics   Metrics
	Tracer    *trace.Tracer // nil is told nothing
	Log       hclog.Logger

	Now      func() time.Time     // by ZooKeeper's clock
	ClockOff func() time.Duration // by how much the clock of this host is early

	FQDN, BuilderID, Site string

	Policy  plan.Policy
	LeakAge time.Duration // see builder.Deps, and what follows
	Refresh func(context.Context)
	// Deciding is called before a decision, and done after it.
	Deciding func(ctx context.Context) (done func())
	Logs     Logs
	Hold     func(share string) (release func()) // notes what this builder does for all
	LogURL   func(image, build string) string
	Step     func(step.Step)
}

// Tree is the view of the tree that actions have.
type Tree interface {
	Barrier(ctx context.Context) error
	Images() []*zkmodel.Image
	Image(name string) *zkmodel.Image
	Unread(path string) error
	Absent(ctx context.Context, s *recipe.Session, path string) (zkmodel.Proof, error)
}

// Snapshots gathers all that a decision about an image depends on, as it is now.
type Snapshots interface {
	Snapshot(image string) plan.Input
}

// Host checks whether this host can build at all.
type Host interface {
	CanBuild() bool
}

// InFlight is told of what runs here, so that no decision takes it for a leftover.
type InFlight interface {
	Begin(image string) (end func())
	BeginUpload(key string) (end func())
	Build(image, id string)
	Upload(key string)
}

// Trials holds uploads that are tried before they serve, with the lock of their builds'
// uploads: from keep on it is theirs. drop says that nothing came of it.
type Trials interface {
	Reserve(key zkmodel.UploadKey) (keep func(lock *recipe.Held), drop func())
}

// Cancels lets an operator end a build's context, with ErrCancelled, until unbind.
type Cancels interface {
	Bind(ctx context.Context, build *zkmodel.Build) (bound context.Context, unbind func())
}

// Metrics counts what actions come to.
type Metrics interface {
	BuildBegins(image string)
	BuildEnds(image string)
	Built(b *zkmodel.Build, files map[string]disk.File)
	FailedBuild(b *zkmodel.Build)
	UploadBegins(image, provider string)
	UploadEnds(image, provider string)
	Uploaded(u *zkmodel.Upload, took time.Duration)
	FailedUpload(u *zkmodel.Upload)
	Leaked(provider string)
}

// Logs is told of the logs of builds, so that others can follow them.
type Logs interface {
	// Writing tells that a build's log is written from now on. Grew is called
	// whenever there is more to read, and done, once, after the last of it.
	Writing(image, build string) (grew, done func())
}

// Worker does what plans ask for, in one session.
type Worker struct {
	Deps
	far sync.Map // images of which ErrFar was told
}

// NewWorker makes one. It begins nothing.
func NewWorker(deps Deps) *Worker { return &Worker{Deps: deps} }

// Do does what an action says, under the lock of what it is about.
//
// Errors: ErrStale, when it is no longer wanted, or another builder was quicker.
func (w *Worker) Do(ctx context.Context, a plan.Action) error {
	err := w.do(ctx, a)
	if a.Build == "" || !errors.Is(err, recipe.ErrFenceLost) {
		return err
	}
	record := zkmodel.BuildPath(a.Image, a.Build)
	if a.Upload != "" {
		record = uploadOf(a).Path()
	}
	if _, exists, readErr := w.Store.Session().Exists(ctx, record); readErr == nil && !exists {
		return fmt.Errorf("%s: another builder removed the record with its lock: %w", a.Key(), ErrStale)
	}
	return err
}

func (w *Worker) do(ctx context.Context, a plan.Action) error {
	switch a.Kind {
	case plan.Build:
		return w.build(ctx, a)
	case plan.Upload:
		return w.upload(ctx, a)
	case plan.ClearRequest:
		return w.clearRequest(ctx, a)
	case plan.DeleteUpload:
		return w.deleteUpload(ctx, a)
	case plan.ReclaimUpload:
		return w.reclaimUpload(ctx, a)
	case plan.MarkBuild:
		return w.markBuild(ctx, a)
	case plan.DeleteBuild:
		return w.deleteBuild(ctx, a)
	case plan.RemoveFiles:
		return w.removeFiles(ctx, a)
	case plan.RemoveFormat:
		return w.removeFormat(ctx, a)
	case plan.ForgetVerdicts:
		return w.forgetVerdicts(ctx, a)
	case plan.ForgetTrial:
		return w.Store.ForgetValidation(ctx, uploadOf(a))
	case plan.MoveLog:
		return w.moveLog(ctx, a)
	case plan.Adopt:
		return w.Images.Adopt(nameOf(a))
	}
	return fmt.Errorf("action %q: %w", a.Kind, errors.ErrUnsupported)
}

func nameOf(a plan.Action) disk.Name { return disk.Name{Image: a.Image, ID: a.Build} }

func uploadOf(a plan.Action) zkmodel.UploadKey {
	return zkmodel.UploadKey{Image: a.Image, Build: a.Build, Provider: a.Provider, ID: a.Upload}
}

// confirm asks again whether an action is wanted, now that its lock is held and
// nobody else can change what it is about. The tree is seen as it is by now.
func (w *Worker) confirm(ctx context.Context, a plan.Action, change func(*plan.InFlight)) (plan.Action, plan.Input, error) {
	if err := w.Tree.Barrier(ctx); err != nil {
		return a, plan.Input{}, err
	}
	defer w.Deciding(ctx)()
	in := w.Snapshots.Snapshot(a.Image)
	change(&in.InFlight)
	now, ok := plan.Decide(in).Find(a.Key())
	if !ok {
		return a, in, fmt.Errorf("%s: %w", a.Key(), ErrStale)
	}
	return now, in, nil
}
