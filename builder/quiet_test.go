package builder

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
)

// What a builder may not read or change is told of once, and the rest is done: the
// other images are built and sent, though an image has builds that it may not touch.
func TestUnreadableRecordsAreToldOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.config.Providers = nil
	names := []string{"img"}
	for _, name := range []string{"two", "three", "four"} {
		s.addImage(name)
		names = append(names, name)
	}
	s.addProvider("north", "qcow2", names...)
	stop := s.start()
	for _, name := range names {
		s.ready(name, 1, "north")
	}
	stop()
	for _, name := range names[:3] { // each has a build and an upload that are to go
		build := s.builds(name, zkmodel.BuildReady)[0]
		upload := s.uploads(name, "north", zkmodel.UploadReady)[0]
		for _, err := range []error{
			s.store.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, upload.UploadKey, false),
			s.store.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, name, build.ID, false),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		restrict := zktest.Protect
		if name == "two" {
			restrict = zktest.Forbid
		}
		allow := restrict(t, s.server.Addr(), s.root, build.Path())
		t.Cleanup(allow)
	}
	var out lines
	s.start(func(d *Deps) {
		d.Resync = 50 * time.Millisecond
		d.Logger = hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Warn})
	})
	if err := s.store.RequestBuild(t.Context(), "four"); err != nil {
		t.Fatal(err)
	}
	s.ready("four", 2, "north")
	s.ready("img", 1, "north") // anew
	for text, n := range map[string]int{"Action failed, retrying": 1, "Part of the tree cannot be read": 2} {
		if got := out.count(text); got > n {
			t.Errorf("%q stands %d times in the log:\n%s", text, got, out.text())
		}
	}
	if out.count("not authorised") == 0 {
		t.Errorf("what cannot be done is not told:\n%s", out.text())
	}
	if n := out.count("\n"); n > 10 {
		t.Errorf("%d lines of warnings:\n%s", n, out.text())
	}
}

// lines is a log that tests can read.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// count is how often a text stands in the log.
func (l *lines) count(text string) int { return strings.Count(l.text(), text) }
