package builder

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A number that was made by hand, far above the others, ends no builds: they get the next number, and
// the log says so. Mistakes: an image that is never built again; a warning with each try.
func TestNumberMadeByHandEndsNoBuilds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	file := filepath.Join(s.config.ImagesDir, ".poolkeeper", "numbers.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"img": "2000000000"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := s.start()
	s.ready("img", 1, "north")
	if err := s.store.RequestBuild(t.Context(), "img"); err != nil {
		t.Fatal(err)
	}
	s.ready("img", 2, "north")
	stop()
	if n := strings.Count(s.log.String(), "Numbers of builds may come again"); n != 1 {
		t.Errorf("it was said %d times: %s", n, s.log)
	}
}
