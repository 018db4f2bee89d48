package openstack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/providers/imagefile"
)

// undoTime is how long the removal of a failed upload may take, when the
// upload's own time is over.
const undoTime = time.Minute

// UploadImage implements providers.Images. We choose the image's id ourselves:
// so the request that makes its record can be repeated, and an upload that is
// called off knows what to remove even if Glance's answer never came.
func (p *Provider) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	ctx, cancel := p.uploadTime(ctx)
	defer cancel()
	op := "upload image " + up.Name
	s, err := p.session(ctx)
	if err != nil {
		return "", err
	}
	reader, err := imagefile.Open(ctx, up) // before anything is made
	if err != nil {
		return "", p.failure(ctx, op, err)
	}
	if err := reader.Close(); err != nil {
		return "", p.failure(ctx, op, err)
	}
	id := newUUID()
	q := &question{asking: func(ctx context.Context) error {
		if up.Asking == nil {
			return nil
		}
		return up.Asking(ctx, id)
	}}
	if err := p.fill(ctx, s, q, id, up); err != nil {
		found, undone := p.discard(ctx, s, id)
		if q.open() && !found {
			undone = errors.Join(undone, fmt.Errorf("%w: image %s", providers.ErrUnanswered, id))
		}
		return "", errors.Join(p.failure(ctx, op, err), undone)
	}
	return id, nil
}

// uploadTime bounds an upload as the configuration says.
func (p *Provider) uploadTime(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := p.cfg.ImageUploadTimeout
	if limit <= 0 {
		return context.WithCancel(ctx)
	}
	over := fmt.Errorf("%w: image-upload-timeout of %s is over", providers.ErrTransient, limit)
	return context.WithTimeoutCause(ctx, limit, over)
}

// fill makes the record and brings the data into it.
func (p *Provider) fill(ctx context.Context, s *session, q *question, id string, up providers.ImageUpload) error {
	opts, err := record(id, up)
	if err != nil {
		return err
	}
	if err := queue(ctx, s, q, opts); err != nil {
		return err
	}
	if err := p.transfer(ctx, s, id, up); err != nil {
		return err
	}
	image, err := p.waitActive(ctx, s, id)
	if err != nil {
		return err
	}
	if err := verify(image, up); err != nil {
		return err
	}
	if up.Progress != nil {
		up.Progress(up.Size) // the cloud may have fetched it without us
	}
	return nil
}

// queue makes the record. That it exists already means that the answer to an
// earlier try was lost: nobody else knows the id.
func queue(ctx context.Context, s *session, q *question, opts images.CreateOpts) error {
	_, err := images.Create(hearing(repeating(ctx), q), s.image, opts).Extract()
	if is(err, 409) && !lacksCapacity(err.Error()) {
		err = nil
	}
	if err == nil {
		q.sent.Store(false)
	}
	return failure(ctx, "create its record", err)
}

// discard removes what a failed upload left, although its time may be over. It reports whether Glance knew the image.
func (p *Provider) discard(ctx context.Context, s *session, id string) (found bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	err = images.Delete(ctx, s.image, id).ExtractErr()
	if err == nil || missing(err) {
		return err == nil, nil
	}
	return false, failure(ctx, "remove what is left of it, image "+id, err)
}

// waitActive waits until Glance has taken the image in. After a plain upload
// it has; an import goes on for a while.
func (p *Provider) waitActive(ctx context.Context, s *session, id string) (*images.Image, error) {
	bear := patience{limit: p.pace.patience}
	for start := time.Now(); ; {
		image, err := images.Get(ctx, s.image, id).Extract()
		err = failure(ctx, "look at it", err)
		if why := bear.over(ctx, time.Now(), err); why != nil {
			return nil, why
		}
		if err == nil {
			if done, err := settled(image); done || err != nil {
				return image, err
			}
		}
		if err := clock.Sleep(ctx, p.pollAfter(time.Since(start))); err != nil {
			return nil, err
		}
	}
}

// settled reports whether an image is ready, or why it never will be.
func settled(image *images.Image) (bool, error) {
	switch image.Status {
	case images.ImageStatusActive:
		return true, nil
	case images.ImageStatusKilled, images.ImageStatusDeleted, images.ImageStatusPendingDelete,
		images.ImageStatusDeactivated:
		return false, fmt.Errorf("%w: Glance gave up on it: it is %s", providers.ErrTransient, image.Status)
	}
	// An import that fails leaves the image queued, and says so here.
	if stores, _ := image.Properties["os_glance_failed_import"].(string); stores != "" {
		return false, fmt.Errorf("%w: Glance cannot import it into store %s", providers.ErrTransient, stores)
	}
	return false, nil
}
