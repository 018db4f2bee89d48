package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/renameio/v2"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/test/zktest"
)

// pupil remembers what it was told to go on with.
type pupil struct {
	mu     sync.Mutex
	images []string // of each configuration
	refuse error
}

func (p *pupil) Reload(cfg *configs.Config) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	p.images = append(p.images, cfg.DiskImages[0].Name)
	return nil
}

// diary is a log that can be read while it is written.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(text)
}

// says counts how often the log says something.
func (d *diary) says(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Count(d.text.String(), text)
}

func (p *pupil) learned() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.images...)
}

func TestConfigurationIsReadAgain(t *testing.T) {
	s := newSite(t)
	log := &diary{}
	s.log = hclog.New(&hclog.LoggerOptions{Output: log})
	file := filepath.Join(t.TempDir(), "nodepool.yaml")
	a := &app.App{Flags: &app.Flags{Config: file}}
	write := func(format string, args ...any) {
		t.Helper()
		text := "zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n" + fmt.Sprintf(format, args...)
		if err := renameio.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("diskimages: [{name: first}]\n")
	var err error
	if s.cfg, err = a.Config(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &pupil{}
	ctx, cancel := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { watchConfig(ctx, a, newKeeper(s, p), 5*time.Millisecond) })
	defer func() {
		cancel()
		watcher.Wait()
	}()
	learns := func(want ...string) {
		t.Helper()
		zktest.Eventually(t, func() bool { return cmp.Equal(p.learned(), want) }, "it goes on with %q", want)
	}
	write("diskimages: [{name: second}]\n")
	learns("second")
	write("diskimages: many\n")
	stays := "Configuration not reloaded; the old one stays"
	zktest.Eventually(t, func() bool { return log.says(stays) == 1 }, "a wrong one is refused, once")
	write("diskimages: [{name: third}]\n")
	learns("second", "third")
	// Also when nothing has changed: what the files refer to may have.
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	learns("second", "third", "third")
	p.mu.Lock()
	p.refuse = errors.New("never")
	p.mu.Unlock()
	write("diskimages: [{name: fourth}]\n")
	zktest.Eventually(t, func() bool { return log.says(stays+": error=never") == 1 }, "one that the daemon refuses is not tried again")
	p.mu.Lock()
	p.refuse = nil
	p.mu.Unlock()
	write("diskimages: [{name: fifth}]\n")
	learns("second", "third", "third", "fifth")
}

// watched is a configuration in a folder that a test changes, and who goes on with it.
type watched struct {
	*testing.T
	app  *app.App
	site site
	log  *diary
	file string
	*pupil
}

// newWatched makes one whose file has one image, "first".
func newWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{T: t, site: newSite(t), log: &diary{}, file: filepath.Join(t.TempDir(), "nodepool.yaml"), pupil: &pupil{}}
	w.site.log = hclog.New(&hclog.LoggerOptions{Output: w.log})
	w.site.watch = &configWatch{}
	w.app = &app.App{Flags: &app.Flags{Config: w.file}}
	return w
}

// load reads the configuration for the first time.
func (w *watched) load() {
	w.Helper()
	var err error
	if w.site.cfg, err = w.app.Config(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// watch follows the files until the test ends, by what the kernel tells alone.
func (w *watched) watch() {
	w.Helper()
	w.load()
	ctx, cancel := context.WithCancel(w.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { watchConfig(ctx, w.app, newKeeper(w.site, w.pupil), time.Hour) })
	w.Cleanup(func() {
		cancel()
		watcher.Wait()
	})
}

// learns waits until it was told to go on with just these.
func (w *watched) learns(want ...string) {
	w.Helper()
	zktest.Eventually(w, func() bool { return cmp.Equal(w.learned(), want) }, "it goes on with %q", want)
}

// do stops the test if anything of what it did failed.
func (w *watched) do(errs ...error) {
	w.Helper()
	if err := errors.Join(errs...); err != nil {
		w.Fatal(err)
	}
}

// oneImage is a configuration with an image.
func oneImage(name string) []byte {
	return []byte("zookeeper-servers: [{host: 127.0.0.1, port: 1}]\ndiskimages: [{name: " + name + "}]\n")
}

// However a file changes in its folder, that is noticed without being asked for.
func TestFilesAreWatched(t *testing.T) {
	for name, replace := range map[string]func(w *watched, dir, image string) error{
		"in place": func(w *watched, _, image string) error {
			return os.WriteFile(w.file, oneImage(image), 0o600)
		},
		"another file": func(w *watched, _, image string) error {
			return renameio.WriteFile(w.file, oneImage(image), 0o600)
		},
		"removed first": func(w *watched, _, image string) error {
			return errors.Join(os.Remove(w.file), os.WriteFile(w.file, oneImage(image), 0o600))
		},
		"a link to another file": func(w *watched, dir, image string) error {
			other := filepath.Join(dir, image)
			return errors.Join(os.WriteFile(other, oneImage(image), 0o600), os.Symlink(other, w.file+".new"), os.Rename(w.file+".new", w.file))
		},
		"as Kubernetes does": func(w *watched, _, image string) error {
			data := filepath.Join(filepath.Dir(w.file), "..data")
			next := filepath.Join(filepath.Dir(w.file), ".."+image)
			err := errors.Join(os.Mkdir(next, 0o755), os.WriteFile(filepath.Join(next, "nodepool.yaml"), oneImage(image), 0o600),
				os.Symlink(".."+image, data+".new"), os.Rename(data+".new", data))
			if _, noLink := os.Readlink(w.file); noLink != nil {
				err = errors.Join(err, os.Remove(w.file), os.Symlink("..data/nodepool.yaml", w.file))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			dir, late := t.TempDir(), false
			change := func(image string) {
				began := time.Now()
				w.do(replace(w, dir, image))
				late = late || time.Since(began) >= settle // the machine stood still, and half of it was all there was
			}
			w.do(os.WriteFile(w.file, oneImage("zeroth"), 0o600), replace(w, dir, "first"))
			w.watch()
			change("second")
			w.learns("second")
			change("third")
			w.learns("second", "third")
			if n := w.log.says("not reloaded"); n > 0 && name != "removed first" && !late {
				t.Errorf("%d reloads failed: %s", n, w.log.text.String())
			}
		})
	}
}

// A file that is written bit by bit is read when it is whole.
func TestHalfWrittenFile(t *testing.T) {
	w := newWatched(t)
	w.do(os.WriteFile(w.file, oneImage("first"), 0o600))
	w.load()
	w.site.watch.begin(w.app, newKeeper(w.site, w.pupil))
	w.do(os.WriteFile(w.file, oneImage("second")[:60], 0o600)) // "diskim": no key
	var writer sync.WaitGroup
	began, late := time.Now(), false
	writer.Go(func() {
		<-time.After(settle / 2)
		if err := os.WriteFile(w.file, oneImage("second"), 0o600); err != nil {
			t.Error(err)
		}
		late = time.Since(began) >= settle
	})
	w.site.watch.refresh(t.Context())
	writer.Wait()
	if late { // the machine stood still for so long that the half was all there was
		w.site.watch.refresh(t.Context())
	}
	w.learns("second")
	if n := w.log.says("not reloaded"); n > 0 && !late {
		t.Errorf("half of a file was read: %s", w.log.text.String())
	}
}

// Who asks for the configuration as it is now has it when the answer comes; who asks before
// there is a daemon, or where nothing is watched, is not kept.
func TestRefresh(t *testing.T) {
	w := newWatched(t)
	w.do(os.WriteFile(w.file, oneImage("first"), 0o600))
	w.load()
	var none *configWatch
	none.refresh(t.Context())
	w.site.watch.refresh(t.Context())
	w.site.watch.begin(w.app, newKeeper(w.site, w.pupil))
	w.site.watch.refresh(t.Context())
	if got := w.learned(); len(got) > 0 {
		t.Errorf("nothing has changed, and it learned %q", got)
	}
	for _, image := range []string{"second", "third"} {
		w.do(os.WriteFile(w.file, oneImage(image), 0o600))
		w.site.watch.refresh(t.Context())
		if got := w.learned(); got[len(got)-1] != image {
			t.Errorf("it learned %q, want %s", got, image)
		}
	}
}
