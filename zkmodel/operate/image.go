package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// RequestBuild asks for a build of an image now, and reports whether the image is
// paused, so that the build waits.
func (o *Operator) RequestBuild(ctx context.Context, image string) (paused bool, err error) {
	if err := o.store.RequestBuild(ctx, image); err != nil {
		return false, err
	}
	return o.store.ImagePaused(ctx, image)
}

// Pause stops builds of an image. It ends by itself after a time; 0 is never. A pause that is
// there is replaced.
func (o *Operator) Pause(ctx context.Context, image, reason string, limit time.Duration) (zkmodel.Pause, error) {
	p, err := o.Halt(ctx, reason, limit)
	if err != nil {
		return p, err
	}
	return p, o.store.PauseImageBy(ctx, image, p)
}

// Unpause lets an image be built again; one that is not paused is no error.
func (o *Operator) Unpause(ctx context.Context, image string) error {
	return o.store.UnpauseImageBy(ctx, image, o.who, nil)
}

// Cancelled says what CancelBuild ended.
type Cancelled struct {
	Build string // the id of the build; "" when the request for one was withdrawn
	// Waves are those of image-build whose request waited as all waves are held; they are
	// cancelled.
	Waves []string
	// Again says that another build was asked for since the one that is given up began.
	Again bool
}

// CancelBuild gives up the build of an image that is under way, or withdraws the
// request for one, whichever there is: a build may begin between the two questions. A
// request that was taken back as all waves are held, so that it is made later, goes too.
// After an error Cancelled.Build may be set: that build is being given up.
func (o *Operator) CancelBuild(ctx context.Context, image string) (Cancelled, error) {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	again := clock.NewTicker(ctx, 100*time.Millisecond)
	defer again.Stop()
	for {
		id, err := o.store.CancelBuild(ctx, image)
		if err == nil {
			asked, err := o.askedAgain(ctx, image)
			return Cancelled{Build: id, Again: asked}, err
		}
		if !errors.Is(err, zkmodel.ErrNotFound) {
			return Cancelled{}, err
		}
		switch err := o.store.WithdrawBuild(ctx, image); {
		case err == nil, errors.Is(err, zkmodel.ErrNotFound):
			waves, held := wave.NewStore(o.store.Session()).Withdraw(ctx, image, wave.Word{By: o.who, Reason: "the request for its build was withdrawn"})
			if err != nil && held == nil && len(waves) == 0 {
				held = fmt.Errorf("image %s is not being built, and nobody asks for a build of it", image)
			}
			return Cancelled{Waves: waves}, held
		case !errors.Is(err, recipe.ErrLocked):
			return Cancelled{}, err
		}
		select {
		case <-again.C: // a build begins, or ends, at this moment
		case <-ctx.Done():
			return Cancelled{}, fmt.Errorf("cancel build of %s: its build lock is held, and no build of it is under way", image)
		}
	}
}

// askedAgain reports whether the build that was cancelled is not all that was asked for.
func (o *Operator) askedAgain(ctx context.Context, image string) (bool, error) {
	i, err := o.store.Image(ctx, image)
	if err != nil || i.BuildRequested == nil || len(i.Builds) == 0 {
		return false, err
	}
	return i.BuildRequested.Czxid > i.Builds[len(i.Builds)-1].Stat.Czxid, nil
}

// Deletion says how a build or an upload is deleted.
type Deletion struct {
	Broken bool // also one whose record cannot be decoded
	Pause  bool // of a build: pause its image first, so that the build before this one stays in use
}

// DeleteBuild marks a build for deletion; builders do the rest.
//
// Errors: zkmodel.ErrNotFound, zkmodel.ErrInProgress, zkmodel.ErrUndecodable, ErrPinned.
func (o *Operator) DeleteBuild(ctx context.Context, image, build string, d Deletion) error {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	if err := o.pinned(ctx, image, build, ""); err != nil {
		return err
	}
	if d.Pause {
		if _, err := o.store.Build(ctx, image, build); err != nil { // nothing is paused for a build that is not there
			return err
		}
		paused, err := o.store.ImagePaused(ctx, image)
		if err == nil && !paused { // else who paused it has said until when
			_, err = o.Pause(ctx, image, "build "+build+" is deleted", 0)
		}
		if err != nil {
			return err
		}
	}
	return o.store.MarkBuildDeleting(ctx, zkmodel.ByOperator, image, build, d.Broken)
}

// DeleteUpload marks an upload for deletion; a builder that has its provider does the
// rest. d.Pause has no meaning here.
//
// Errors: as DeleteBuild.
func (o *Operator) DeleteUpload(ctx context.Context, key zkmodel.UploadKey, d Deletion) error {
	ctx, cancel := clock.WithTimeout(ctx, LockWait)
	defer cancel()
	if err := o.pinned(ctx, key.Image, key.Build, key.Provider); err != nil {
		return err
	}
	return o.store.MarkUploadDeleting(ctx, zkmodel.ByOperator, key, d.Broken)
}
