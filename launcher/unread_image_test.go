package launcher_test

import (
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// Mistake: a request fails for want of an image that is there, and that the launcher may not read: rights of another
// program. It waits, says for what, and is served once the image can be read.
func TestImageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	r := s.rights()
	r.close(zkmodel.ImagePath("debian"))
	one := s.launch()
	id := s.submit(wish("small"))
	zktest.Eventually(t, func() bool {
		told := one.Requests()
		return len(told) == 1 && strings.Contains(told[0].Reason, "nobody can tell whether an image for label small is ready in provider cloud")
	}, "why it waits")
	r.open(zkmodel.ImagePath("debian"))
	if out := s.wait(id); out.State != "fulfilled" {
		t.Errorf("the request has %s: %s", out.State, out.Reason)
	}
}
