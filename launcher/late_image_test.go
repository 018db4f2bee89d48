package launcher_test

import (
	"testing"

	"poolkeeper/launcher"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// Mistake: a request that fails for want of an image that was ready before: the launcher hears of both at once, and
// reads the request with fewer questions than the image, which lies deep in the tree.
func TestImageThatIsSeenLate(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	s.launch(func(d *launcher.Deps) {
		client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: s.root})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		d.Client = client
	})
	if id := s.submit(wish("small")); s.wait(id).State != "failed" {
		t.Fatal("there is an image before it is made")
	}
	proxy.CutDown()
	s.image()
	id := s.submit(wish("small"))
	proxy.Heal()
	if out := s.wait(id); out.State != "fulfilled" {
		t.Fatalf("the request has %s: %s", out.State, out.Reason)
	}
}
