package main

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
	a := &app{flags: &cli{Config: file}}
	write := func(format string, args ...any) {
		t.Helper()
		text := "zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n" + fmt.Sprintf(format, args...)
		if err := renameio.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("diskimages: [{name: first}]\n")
	var err error
	if s.cfg, err = a.config(); err != nil {
		t.Fatal(err)
	}
	p := &pupil{}
	ctx, cancel := context.WithCancel(t.Context())
	var watcher sync.WaitGroup
	watcher.Go(func() { a.watchConfig(ctx, s, p, 5*time.Millisecond) })
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

func TestNeedRestart(t *testing.T) {
	one := &configs.Config{ZooKeeper: configs.ZooKeeper{Servers: []string{"a:1"}, TLS: &configs.ZooKeeperTLS{Cert: "x"}}}
	two := &configs.Config{ZooKeeper: configs.ZooKeeper{Servers: []string{"b:1"}, TLS: &configs.ZooKeeperTLS{Cert: "x"}}}
	if keys := needRestart(one, two); len(keys) > 0 {
		t.Errorf("other servers alone need a restart because of %q", keys)
	}
	two.ZooKeeper = configs.ZooKeeper{
		Chroot: "/x", Timeout: time.Second, TLS: &configs.ZooKeeperTLS{Cert: "y"}, Auth: &configs.ZooKeeperAuth{},
	}
	two.WebApp.Port = 1
	want := []string{"chroot", "webapp", "zookeeper-auth", "zookeeper-timeout", "zookeeper-tls"}
	if diff := cmp.Diff(want, needRestart(one, two)); diff != "" {
		t.Errorf("what needs a restart (-want +got):\n%s", diff)
	}
}
