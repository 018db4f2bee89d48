package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/plan"
	"poolkeeper/builder/step"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// act looks at the upload under its lock, and does what is decided. It says after what
// time to look again although nothing changes; 0 is never.
//
// Errors: errOver.
func (h *holder) act(ctx context.Context, lock *recipe.Held, log hclog.Logger) (again time.Duration, err error) {
	if _, served := h.Config().Provider(h.key.Provider); !served {
		return 0, errOver // another builder's
	}
	if err := errors.Join(h.Mirror.WaitValidations(ctx), h.Mirror.Barrier(ctx)); err != nil {
		return 0, err
	}
	u, err := h.Store.Upload(ctx, h.key)
	if err != nil {
		return 0, err
	}
	if !u.OnTrial() {
		return 0, errOver
	}
	t, decided := h.decide(ctx)
	if !decided {
		return 0, nil // part of the tree cannot be read: who holds it holds on
	}
	v, err := h.Store.Validation(ctx, h.key)
	switch {
	case errors.Is(err, zkmodel.ErrNotFound):
		v = nil
	case err != nil:
		return 0, err
	case !v.Of(u) && t.End == plan.TrialServes && t.Record != nil:
		return 0, fmt.Errorf("the trial that was decided by is another now: %w", zkmodel.ErrConflict)
	case v.Of(u) && t.End == plan.TrialLost:
		return firstPause, nil // it is there: the view is behind, or cannot read it
	}
	if t.End == plan.TrialGoesOn {
		if v == nil || !v.Of(u) {
			return firstPause, nil // the view is behind
		}
		return h.tellUntried(ctx, lock, u, v, log)
	}
	return 0, h.end(ctx, lock, u, v, t, log)
}

// decide says what becomes of the upload.
func (h *holder) decide(ctx context.Context) (plan.Trial, bool) {
	defer h.Deciding(ctx)()
	return plan.Decide(h.Snapshot(h.key.Image)).Trial(h.key)
}

// end does what was decided.
func (h *holder) end(ctx context.Context, lock *recipe.Held, u *zkmodel.Upload, v *zkmodel.Validation, t plan.Trial, log hclog.Logger) error {
	now := zkmodel.EpochOf(h.Now())
	var err error
	switch t.End {
	case plan.TrialLost:
		if v, err = h.Record(u); err != nil {
			return err
		}
		log.Warn("The record of a trial is gone; it begins anew", "external_id", u.ExternalID.Text())
		return h.Store.BeginValidation(ctx, lock, u, v)
	case plan.TrialServes:
		if err = zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, now); err == nil {
			err = h.serve(ctx, lock, u, v, t)
		}
	case plan.TrialRejected:
		u.Reason = t.Why
		if err = zkmodel.Move(u, zkmodel.UploadDeleting, zkmodel.ByUs, now); err == nil {
			err = h.Store.RejectValidation(ctx, lock, u, v, t.Why)
		}
	case plan.TrialLeaves:
		if err = zkmodel.Move(u, zkmodel.UploadDeleting, zkmodel.ByUs, now); err == nil {
			err = h.Store.EndValidation(ctx, lock, u, v, t.Why)
		}
	case plan.TrialGoesOn:
	}
	if err != nil {
		return err
	}
	h.Step(step.TrialEnded)
	h.trace(ctx, u, v, t)
	if waited := v != nil && v.Canary; !waited {
		h.Metrics.Tried(u, t.End)
	} else if t.End == plan.TrialServes {
		log.Info("Upload is ready: it waits no more", "external_id", u.ExternalID.Text(), "why", t.Why)
		return h.seen(ctx)
	}
	switch t.End {
	case plan.TrialServes:
		log.Info("Upload is ready after its trial", "external_id", u.ExternalID.Text(), "why", t.Why)
	case plan.TrialRejected:
		log.Error("Upload failed its trial; it is deleted, and the one before it serves on", "external_id", u.ExternalID.Text(), "reason", t.Why)
	default:
		log.Info("Upload on trial is deleted", "external_id", u.ExternalID.Text(), "why", t.Why)
	}
	return h.seen(ctx)
}

// serve ends a trial, or the waiting for a canary, with an upload that is ready. An image
// that has no canary reads and writes nothing of one.
func (h *holder) serve(ctx context.Context, lock *recipe.Held, u *zkmodel.Upload, v *zkmodel.Validation, t plan.Trial) error {
	if i, configured := h.Config().DiskImage(u.Image); configured && i.Canary == nil {
		return h.Store.EndValidation(ctx, lock, u, v, t.Why)
	}
	return h.Store.ServeValidation(ctx, lock, u, v, t.NoCanary, t.Why)
}

// seen returns once the end of the trial shows.
//
// Errors: errOver.
func (h *holder) seen(ctx context.Context) error {
	if err := h.Mirror.Barrier(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return errOver
}

// tellUntried tells once of an upload that is not tried for long.
func (h *holder) tellUntried(ctx context.Context, lock *recipe.Held, u *zkmodel.Upload, v *zkmodel.Validation, log hclog.Logger) (time.Duration, error) {
	since := v.Untried()
	if since.IsZero() || v.Told != 0 {
		return 0, nil
	}
	if left := since.Add(Untold).Sub(h.Now()); left > 0 {
		return left, nil
	}
	if err := h.Store.TellUntried(ctx, lock, u, v); err != nil {
		return 0, err
	}
	log.Warn("An upload is not tried for an hour; the one before it serves", "external_id", u.ExternalID.Text(), "why", v.Text())
	return 0, nil
}

// trace tells of a trial that has ended, and, where its upload was the last, of the build.
func (h *holder) trace(ctx context.Context, u *zkmodel.Upload, v *zkmodel.Validation, t plan.Trial) {
	if !h.Tracer.On() || v == nil || t.End == plan.TrialLost {
		return
	}
	b, err := h.Store.Build(ctx, u.Image, u.Build)
	if err != nil {
		return // it is gone: nobody asks any more
	}
	doing := "trial"
	if v.Canary {
		doing = "wait for the canary"
	}
	now := h.Now()
	span := h.Tracer.Build(b, doing, time.Time{}, v.Stat.Ctime.Add(clock.Since(ctx, now)), now).Set("provider", u.Provider).Set("upload", u.ID)
	if t.End != plan.TrialServes {
		span.Tell(errors.New(t.Why))
		return
	}
	if h.Mirror.Barrier(ctx) == nil && trace.Everywhere(h.Snapshot(u.Image).Image, h.Config().ReceiversOf(u.Image), u.UploadKey) {
		span.Over(string(u.State), "")
	}
	span.Tell(nil)
}
