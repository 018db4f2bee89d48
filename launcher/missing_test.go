package launcher_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// An image that somebody deleted in the cloud is passed over at once, and marked
// for the builder.
func TestMissingImage(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	good := s.image()
	bad := s.build(zkmodel.BuildReady)
	upload := s.upload(bad, "cloud", zkmodel.UploadReady)
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		if c.Op != fake.OpCreate || c.Done {
			return nil
		}
		n, err := s.store.Node(ctx, c.ID)
		if err == nil && n.ImageID == upload.Path() {
			return fmt.Errorf("%w: no such image", providers.ErrNotFound)
		}
		return err
	})
	s.launch()
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"small"}}))
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	if n := s.node(out.Nodes[0]); !strings.HasPrefix(n.ImageID, good.Path()+"/") || n.Attempt != 2 {
		t.Errorf("booted from %s at attempt %d, want the build before at attempt 2", n.ImageID, n.Attempt)
	}
	zktest.Eventually(t, func() bool {
		u, err := s.store.Upload(t.Context(), upload.UploadKey)
		return err == nil && strings.Contains(u.Suspect, "does not have it")
	}, "the upload marked as suspect")
}
