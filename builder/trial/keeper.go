package trial

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Mirror is the builder's view of the tree.
type Mirror interface {
	Barrier(ctx context.Context) error
	WaitValidations(ctx context.Context) error
	FollowValidations()
}

// Metrics counts how trials end.
type Metrics interface {
	Tried(u *zkmodel.Upload, end plan.TrialEnd)
}

// Deps is what a Keeper is given; all of it is required, but Tracer.
type Deps struct {
	Store    *zkmodel.Store
	Mirror   Mirror
	Config   func() *configs.Config
	Snapshot func(image string) plan.Input
	// Record is the trial of an upload as the configuration wants it.
	Record  func(u *zkmodel.Upload) (*zkmodel.Validation, error)
	Metrics Metrics
	Log     hclog.Logger
	Now     func() time.Time // by ZooKeeper's clock
	FQDN    string
	Step    func(step.Step)
	// Deciding is called before a decision, and done after it.
	Deciding func(ctx context.Context) (done func())
	Tracer   *trace.Tracer // nil is told nothing
}

// Untold is for how long an upload is not tried before an event says so.
const Untold = time.Hour

// How long a Keeper waits before it tries again what has failed.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// errOver: a trial is over, whatever it came to.
var errOver = errors.New("the trial is over")

// Keeper holds the uploads under trial in one session, or stands in line for them. The
// next in line goes on where a session has ended, so that the folder of an upload is
// never without a holder whom a Nodepool builder sees.
type Keeper struct {
	Deps
	ctx  context.Context //nolint:containedctx // that of the session, as which it lives
	work sync.WaitGroup

	mu   sync.Mutex
	held map[zkmodel.UploadKey]*holder
}

// holder is one upload.
type holder struct {
	*Keeper
	key  zkmodel.UploadKey
	wake chan struct{} // has room for one
}

// New makes a Keeper that works until ctx ends.
func New(ctx context.Context, deps Deps) *Keeper {
	return &Keeper{Deps: deps, ctx: ctx, held: map[zkmodel.UploadKey]*holder{}}
}

// Wait returns once all has come to its end, after ctx has ended.
func (k *Keeper) Wait() { k.work.Wait() }

// Look stands in line for the uploads under trial of an image, and has those looked at
// again that are held or waited for already. ctx is that of the session.
func (k *Keeper) Look(ctx context.Context, image string, trials []plan.Trial) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, h := range k.held {
		if key.Image == image {
			h.look()
		}
	}
	for _, t := range trials {
		if k.held[t.Key] == nil {
			h := k.holder(t.Key)
			k.work.Go(func() { h.run(ctx, nil) })
		}
	}
}

// Images are those of the uploads that are held or waited for.
func (k *Keeper) Images() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var images []string
	for key := range k.held {
		images = append(images, key.Image)
	}
	return images
}

// Reserve has nobody here stand in line for an upload that is about to be under trial.
// Keep hands over the lock of its build's uploads; or drop says that it came to nothing.
func (k *Keeper) Reserve(key zkmodel.UploadKey) (keep func(lock *recipe.Held), drop func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.holder(key)
	return func(lock *recipe.Held) { k.work.Go(func() { h.run(k.ctx, lock) }) }, h.gone
}

// holder makes one; k.mu is held.
func (k *Keeper) holder(key zkmodel.UploadKey) *holder {
	h := &holder{Keeper: k, key: key, wake: make(chan struct{}, 1)}
	k.held[key] = h
	return h
}

func (h *holder) gone() {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.held, h.key)
}

// look has it looked at again.
func (h *holder) look() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run holds the upload until its trial is over or the session ends. Without a lock it
// stands in line for it.
func (h *holder) run(ctx context.Context, lock *recipe.Held) {
	defer h.gone()
	log := h.Log.With("image", h.key.Image, "build", h.key.Build, "provider", h.key.Provider, "upload", h.key.ID)
	if lock == nil {
		var err error
		if lock, err = h.Store.InheritUploads(ctx, h.key, h.FQDN); err != nil {
			return // the folder is gone, or the session has ended
		}
		if u, err := h.Store.Upload(ctx, h.key); err == nil && u.OnTrial() {
			log.Info("Upload on trial is held here now", "external_id", u.ExternalID.Text())
			h.Step(step.TrialHeld)
		}
	}
	defer release(ctx, lock)
	ctx, unbind := lock.Bind(ctx)
	defer unbind()
	pause := firstPause
	for {
		again, err := h.act(ctx, lock, log)
		switch {
		case errors.Is(err, errOver), errors.Is(err, zkmodel.ErrNotFound), ctx.Err() != nil:
			return
		case err != nil:
			log.Warn("What becomes of an upload on trial cannot be written; it is tried again", "error", err, "pause", pause)
			again, pause = pause, min(2*pause, longestPause)
		default:
			pause = firstPause
		}
		h.wait(ctx, again)
	}
}

// wait returns when something has changed, or after a time if that is not 0.
func (h *holder) wait(ctx context.Context, after time.Duration) {
	var alarm <-chan time.Time
	if after > 0 {
		timer := clock.NewTimer(ctx, after)
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-h.wake:
	case <-alarm:
	case <-ctx.Done():
	}
}

// release gives a lock up, also when ctx has ended.
func release(ctx context.Context, lock *recipe.Held) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	_ = lock.Release(ctx) // goes on in the background; or the session has ended
}
