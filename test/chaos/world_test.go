package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/test/tempdir"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
)

const (
	servers    = 3
	builders   = 3
	launchers  = 3
	requestors = 10
	// diskSize is how much a builder's disk holds.
	diskSize = "48m"
)

// world is all that takes part.
type world struct {
	t        *testing.T
	net      network
	ensemble *zktest.Ensemble
	binary   string
	dir      string // all files of the site, and its logs
	limited  bool   // a tenant is
	disks    bool   // builders have disks of their own
	hosts    []*host
	watch    *watch
	faults   *faults
	builds   *builds
	last     saved // the tree as it was
	number   int   // of the next copy of it

	writing sync.Mutex  // the configuration
	spoiled atomic.Bool // it is cut short, or was a moment ago
	garbled sync.Map    // path of a record that was garbled to its data before
}

// path is a file or folder that all hosts see.
func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// newWorld starts the servers and builds the program. Daemons do not run yet.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, limited: *seed%2 == 0, dir: newFolder(t), disks: os.Getenv(insideEnv) != ""}
	w.binary = w.path("poolkeeper")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", w.binary, "poolkeeper/cmd/poolkeeper")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as make build does, which has compiled it
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	w.hosts = append(newHosts(w, "builder", builders), newHosts(w, "launcher", launchers)...)
	var names []string
	for i := range servers {
		names = append(names, serverName(i))
	}
	for _, h := range w.hosts {
		names = append(names, h.name)
		w.furnish(h)
	}
	w.net = newNetwork(t, names)
	var places []zktest.Place
	for i := range servers {
		places = append(places, w.net.place(serverName(i)))
	}
	w.ensemble = zktest.StartEnsembleAt(t, places...)
	for _, folder := range []string{"clouds", "saved"} {
		w.must(os.MkdirAll(w.path(folder), 0o755))
	}
	w.must(os.WriteFile(w.path("dib"), []byte(dib), 0o755))
	w.must(os.WriteFile(w.path("secure.yaml"), []byte(secure), 0o600))
	w.configure(0)
	w.builds = &builds{w: w}
	w.faults = newFaults(w)
	w.watch = newWatch(t, w)
	return w
}

// newFolder is where all files are. It goes when all went well.
func newFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-") //nolint:usetesting // what failed is kept
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() || *keep {
			t.Logf("logs and files are in %s", dir)
			return
		}
		if err := tempdir.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// furnish makes the folders of a host, and its disk.
func (w *world) furnish(h *host) {
	w.t.Helper()
	for _, folder := range []string{h.images(), h.path("logs"), h.path("tmp")} {
		w.must(os.MkdirAll(folder, 0o755))
	}
	if h.kind != "builder" || !w.disks {
		return
	}
	w.must(unix.Mount("tmpfs", h.images(), "tmpfs", 0, "mode=755,size="+diskSize))
	w.t.Cleanup(func() {
		if err := unix.Unmount(h.images(), 0); err != nil {
			w.t.Errorf("the disk of %s is still in use: %v", h.name, err)
		}
	})
}

// of are the hosts of a kind.
func (w *world) of(kind string) (list []*host) {
	for _, h := range w.hosts {
		if h.kind == kind {
			list = append(list, h)
		}
	}
	return list
}

// dial connects one more Zuul, however long the servers take.
func (w *world) dial(ctx context.Context, name string) *zuul.Client {
	for {
		patient, cancel := context.WithTimeout(ctx, 5*time.Second)
		c, err := zuul.Dial(patient, w.ensemble.Addrs(), "", name)
		cancel()
		if err == nil {
			return c
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// operate asks for builds, as an operator does, until calm ends.
func (w *world) operate(calm context.Context) {
	r := draw(lanes)
	for pause(calm, r, 1500*time.Millisecond, 4*time.Second) {
		image := imageNames()[r.IntN(len(imageNames()))]
		if out, err := w.command(calm, "image-build", image); err != nil {
			w.watch.count("builds asked for in vain")
			fmt.Fprintf(w.faults.file, "%s image-build %s: %v: %s\n", time.Now().Format(clockTime), image, err, out)
			continue
		}
		w.watch.count("builds asked for")
	}
}

// command runs a command of an operator, who is no host of ours.
func (w *world) command(ctx context.Context, args ...string) (string, error) {
	patient, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	args = append([]string{"-c", w.path("nodepool.yaml"), "-s", w.path("secure.yaml")}, args...)
	out, err := exec.CommandContext(patient, w.binary, args...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// copyFolder copies the files of one folder into another, which is emptied before.
func copyFolder(from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := copyFile(filepath.Join(from, f.Name()), filepath.Join(to, f.Name())); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return nil
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // only read
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
