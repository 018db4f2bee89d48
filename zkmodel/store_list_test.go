package zkmodel_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// names shows an image's builds with their uploads, in the order of the listing.
func names(image *zkmodel.Image) []string {
	var list []string
	for _, b := range image.Builds {
		list = append(list, b.ID)
		for _, u := range b.Uploads {
			list = append(list, b.ID+" "+u.Provider+" "+u.ID)
		}
	}
	return list
}

// Ids of Nodepool's are random: creation makes the order.
func TestListsInTheOrderOfCreation(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	for _, path := range []string{
		zkmodel.BuildPath("image", "ffff"),
		zkmodel.BuildPath("image", "0000000001"),
		zkmodel.UploadPath("image", "0000000001", "b", "0000000002"),
		zkmodel.UploadPath("image", "0000000001", "b", "0000000001"),
		zkmodel.UploadPath("image", "0000000001", "a", "0000000003"),
		zkmodel.UploadsLockPath("image", "0000000001", "a"),
		zkmodel.BuildsLockPath("image"),
		zkmodel.LockPath(zkmodel.BuildPath("image", "0000000001")),
		zkmodel.BuildPath("image", "aaaa"),
		zkmodel.PausePath("other"),
	} {
		if err := s.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	images, err := st.Images(t.Context())
	if err != nil || len(images) != 2 {
		t.Fatalf("list %d images: %v", len(images), err)
	}
	want := []string{
		"ffff", "0000000001", "0000000001 a 0000000003", "0000000001 b 0000000002", "0000000001 b 0000000001", "aaaa",
	}
	if diff := cmp.Diff(want, names(images[0])); diff != "" {
		t.Errorf("all images (-want +got):\n%s", diff)
	}
	one, err := st.Image(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, names(one)); diff != "" {
		t.Errorf("one image (-want +got):\n%s", diff)
	}
	if images[0].Paused || !images[1].Paused || images[0].BuildsLocked {
		t.Errorf("flags: %+v, %+v", images[0], images[1])
	}
	if _, err := st.Image(t.Context(), "none"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("an image that is not there: %v", err)
	}
}

// A listing while others delete shows what is left, and never fails.
func TestListsWhileOthersDelete(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	const count = 40
	for i := range count {
		image := fmt.Sprintf("image-%02d", i)
		for _, path := range []string{
			zkmodel.UploadPath(image, "1", "p", "1"), zkmodel.RequestBuildPath(image), zkmodel.NodePath(image),
			zkmodel.LockPath(zkmodel.NodePath(image)), zkmodel.RequestPath("100-" + image),
		} {
			if err := s.EnsurePath(t.Context(), path); err != nil {
				t.Fatal(err)
			}
		}
	}
	var deleting sync.WaitGroup
	deleting.Go(func() {
		for i := range count {
			for _, path := range []string{
				zkmodel.ImagePath(fmt.Sprintf("image-%02d", i)),
				zkmodel.NodePath(fmt.Sprintf("image-%02d", i)),
				zkmodel.RequestPath(fmt.Sprintf("100-image-%02d", i)),
			} {
				if err := s.DeleteTree(t.Context(), path); err != nil && !errors.Is(err, recipe.ErrNoNode) {
					t.Errorf("delete %s: %v", path, err)
				}
			}
		}
	})
	for left := count; left > 0; {
		images, err := st.Images(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := st.Requests(t.Context()); err != nil {
			t.Fatal(err)
		}
		left = len(images)
	}
	deleting.Wait()
}
