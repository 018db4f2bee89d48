package builder

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"poolkeeper/providers/fake"
)

// sixImages makes a site whose three providers get six images each: more than
// there are workers for uploads.
func sixImages(t *testing.T) (*site, []string) {
	t.Helper()
	s := newSite(t)
	s.config.Providers, s.config.DiskImages = nil, nil
	var images []string
	for n := range 6 {
		images = append(images, fmt.Sprintf("image-%d", n))
		s.addImage(images[n])
	}
	for _, provider := range []string{"bad", "worse", "good"} {
		s.addProvider(provider, "qcow2", images...)
	}
	return s, images
}

// Providers that take for ever, or refuse after a while, hold up no upload to
// another. Catches: one lane of workers for the uploads of all providers.
func TestUploadsOfOneProviderHoldUpNoOther(t *testing.T) {
	hang := func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpUpload {
			return nil
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	refuse := func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpUpload || c.Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(300 * time.Millisecond):
			return errors.New("service unavailable")
		}
	}
	for name, hooks := range map[string][2]fake.Hook{
		"slow": {hang, nil}, "two slow": {hang, hang}, "slow and refusing": {hang, refuse}, "refusing": {refuse, refuse},
	} {
		t.Run(name, func(t *testing.T) {
			s, images := sixImages(t)
			s.cloud("bad").SetHook(hooks[0])
			if hooks[1] != nil {
				s.cloud("worse").SetHook(hooks[1])
			}
			s.start(func(d *Deps) { d.BuildWorkers, d.UploadWorkers = 6, 4 })
			for _, image := range images {
				s.ready(image, 1, "good")
			}
		})
	}
}
