package largesite_test

import (
	"testing"
	"time"

	"poolkeeper/test/largesite"
	"poolkeeper/zkmodel"
)

// The site is what it says it is. Mistakes: a configuration of which the half is left out, so that pages show a site
// without labels; records that nobody can read.
func TestLargeSite(t *testing.T) {
	site := largesite.New(largesite.Overview, time.Now())
	cfg, err := site.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Frozen) > 0 || len(cfg.DiskImages) != 25 || len(cfg.Providers) != 5 {
		t.Errorf("%d images, %d providers, left out: %v", len(cfg.DiskImages), len(cfg.Providers), cfg.Frozen)
	}
	tree := site.Tree()
	if len(tree.Images) != 25 || len(tree.Nodes) != 60 || len(tree.Requests) != 40 || len(tree.Pauses) != 1 || len(tree.Components(zkmodel.KindPool)) != 10 {
		t.Errorf("%d images, %d nodes, %d requests, %d pauses", len(tree.Images), len(tree.Nodes), len(tree.Requests), len(tree.Pauses))
	}
	for _, i := range tree.Images {
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				if u.Broken != nil {
					t.Error(u.Broken)
				}
			}
			if b.Broken != nil {
				t.Error(b.Broken)
			}
		}
	}
	for _, n := range tree.Nodes {
		if n.Broken != nil {
			t.Error(n.Broken)
		}
	}
	for _, r := range tree.Requests {
		if r.Broken != nil {
			t.Error(r.Broken)
		}
	}
}
