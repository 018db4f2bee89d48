package builder

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// saving is a cloud that has part of each image already.
type saving struct{ kept }

func (c saving) UploadImage(ctx context.Context, up providers.ImageUpload) (string, error) {
	id, err := c.kept.UploadImage(ctx, up)
	if err == nil {
		up.Sent(3, 5)
	}
	return id, err
}

// The record of an upload has how much was sent, and how much the cloud had already.
func TestRecordHasWhatWasSent(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(func(d *Deps) {
		d.Open = func(c configs.Provider) (providers.Provider, error) { return saving{kept{s.cloud(c.Name)}}, nil }
	})
	s.ready("img", 1, "north")
	ready := s.uploads("img", "north", zkmodel.UploadReady)
	if diff := cmp.Diff(&zkmodel.Transfer{Sent: 3, Saved: 5}, ready[0].Transfer); diff != "" {
		t.Error(diff)
	}
}
