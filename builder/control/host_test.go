package control

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/presence"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// A host that cannot build says so once, decides anew when it can again, and is not ready
// meanwhile. Catches: a line of the log and a new decision about all images with each
// check, and a builder that does not begin to build when the folder is mended.
func TestCanBuild(t *testing.T) {
	dir := t.TempDir()
	images, err := disk.Open(filepath.Join(dir, "images"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = images.Close() })
	inTheWay := filepath.Join(dir, "no folder")
	if err := os.WriteFile(inTheWay, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := &configs.Config{BuildLogDir: filepath.Join(inTheWay, "logs")}
	metrics := &fakeMetrics{}
	var log strings.Builder
	c := New(Deps{
		Config: func() *configs.Config { return cfg }, Metrics: metrics, Now: time.Now,
		Log:    hclog.New(&hclog.LoggerOptions{Output: &log}),
		Paused: func() string { return "" }, Self: presence.NewSelf(nil, "host", "", nil, nil, zkmodel.BuilderWork{}),
	})
	c.images = images
	c.working.Store(true)
	for n := range 3 {
		if c.CanBuild() {
			t.Fatal("it can build without a folder for logs")
		}
		if n == 0 {
			<-c.woken
		}
	}
	if err := c.Ready(); err == nil || !strings.Contains(err.Error(), "build-log-dir") {
		t.Errorf("ready: %v", err)
	}
	if n := strings.Count(log.String(), "cannot build"); n != 1 {
		t.Errorf("it was said %d times:\n%s", n, log.String())
	}
	select {
	case <-c.woken:
		t.Error("all is decided anew although nothing has changed")
	default:
	}
	if err := os.Remove(inTheWay); err != nil {
		t.Fatal(err)
	}
	if !c.CanBuild() || c.Ready() != nil {
		t.Errorf("it cannot build again: %v", c.Ready())
	}
	select {
	case <-c.woken:
	default:
		t.Error("nothing is decided anew although it can build again")
	}
	if diff := cmp.Diff([]bool{true, false}, metrics.withdrawn); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}
