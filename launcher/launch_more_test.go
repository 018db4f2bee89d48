package launcher_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/launcher"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// book is a log that tests can read.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A machine that never boots costs launch-timeout for each attempt, and its last
// words are logged where the label asks for them.
func TestLaunchTimeout(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	p := &s.config.Providers[0]
	p.LaunchTimeout, p.LaunchRetries = 300*time.Millisecond, 2
	p.Pools[0].Labels[0].ConsoleLog = true // small
	booting := s.stall()
	log, registry := &book{}, prometheus.NewRegistry()
	s.launch(func(d *launcher.Deps) {
		d.Logger, d.Registerer = hclog.New(&hclog.LoggerOptions{Output: log}), registry
	})
	out := s.wait(s.submit(wish("small")))
	if out.State != "failed" || !strings.Contains(out.Reason, "launch-timeout of 300ms is over") {
		t.Errorf("%+v", out)
	}
	if len(booting) != 2 {
		t.Errorf("%d attempts, want 2", len(booting))
	}
	if told := gathered(t, registry); told["launches_total provider=cloud pool=main result=error.servercreatetimeout"] != 2 {
		t.Errorf("told of as %v", told)
	}
	if n := strings.Count(log.String(), "Console of the failed node"); n != 2 {
		t.Errorf("%d consoles in the log, want one for each attempt:\n%s", n, log)
	}
	s.wait(s.submit(wish("large")))
	if n := strings.Count(log.String(), "Console of the failed node"); n != 2 {
		t.Error("the console of a label that does not ask for it is in the log")
	}
	s.eventuallyEmpty()
}

// panicking makes all machines of an upload fail as long as on says so.
func (s *site) panicking(upload *zkmodel.Upload, on func() bool) {
	var broken sync.Map // ids of nodes
	s.clouds["cloud"].SetHook(func(ctx context.Context, c fake.Call) error {
		switch {
		case c.Op == fake.OpCreate && !c.Done:
			n, err := s.store.Node(ctx, c.ID)
			if err == nil && n.ImageID == upload.Path() && on() {
				broken.Store(c.ID, true)
			} else {
				broken.Delete(c.ID)
			}
		case c.Op == fake.OpWait && !c.Done:
			list, err := s.clouds["cloud"].ListNodes(ctx)
			if err != nil {
				return err
			}
			for _, m := range list {
				if _, is := broken.Load(m.Metadata[providers.MetaNode]); is && m.ExternalID == c.ID {
					return fmt.Errorf("%w: kernel panic", providers.ErrNodeFailed)
				}
			}
		}
		return nil
	})
}

// An image with no build that boots is not suspect: nothing speaks for the image
// before, and the reason may be another.
func TestImageIsNotSuspectAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	upload := s.upload(s.build(zkmodel.BuildReady), "cloud", zkmodel.UploadReady)
	var healed atomic.Bool
	s.panicking(upload, func() bool { return !healed.Load() })
	s.launch()
	for range 2 {
		if out := s.wait(s.submit(wish("small"))); out.State != "failed" || !strings.Contains(out.Reason, "kernel panic") {
			t.Fatalf("%+v", out)
		}
	}
	healed.Store(true)
	if out := s.wait(s.submit(wish("small"))); out.State != "fulfilled" {
		t.Errorf("%+v", out)
	}
	if u, err := s.store.Upload(t.Context(), upload.UploadKey); err != nil || u.Suspect != "" {
		t.Errorf("the upload is %+v (%v)", u, err)
	}
}

// A mark holds for all launchers, also those that have never seen the image fail;
// and is lifted when the image boots after all.
func TestSuspectMarkIsEverybodys(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	older := s.upload(s.build(zkmodel.BuildReady), "cloud", zkmodel.UploadReady)
	newer := s.upload(s.build(zkmodel.BuildReady), "cloud", zkmodel.UploadReady)
	mark := func(u *zkmodel.Upload, why string) {
		lock, fresh, err := s.store.LockUpload(t.Context(), u.UploadKey)
		if err != nil {
			t.Fatal(err)
		}
		fresh.Suspect = why
		if err := s.store.SaveUpload(t.Context(), lock, fresh); err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	bootsFrom := func(want *zkmodel.Upload) {
		t.Helper()
		out := s.wait(s.submit(wish("small")))
		if out.State != "fulfilled" || s.node(out.Nodes[0]).ImageID != want.Path() {
			t.Fatalf("%+v, want it to boot from %s", out, want.Path())
		}
	}
	mark(newer, "suspect: somebody says so")
	log := &book{}
	s.launch(func(d *launcher.Deps) { d.Logger = hclog.New(&hclog.LoggerOptions{Output: log}) })
	bootsFrom(older)
	mark(older, "suspect: this one too") // all are: the newest, then
	bootsFrom(newer)
	zktest.Eventually(t, func() bool {
		u, err := s.store.Upload(t.Context(), newer.UploadKey)
		return err == nil && u.Suspect == ""
	}, "the mark lifted, as it boots")
	bootsFrom(newer)
	// Mistake: the log calls an image suspect whose mark was just taken away.
	zktest.Eventually(t, func() bool { return strings.Contains(log.String(), "not suspect any more") }, "the log tells of it")
	if text := log.String(); strings.Contains(text, "Image is suspect") {
		t.Errorf("the log calls suspect what boots:\n%s", text)
	}
}

// A time-out that ends while a node is written does not spoil the writes to come.
func TestLaunchTimeoutInAWrite(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	p := &s.config.Providers[0]
	p.LaunchTimeout, p.LaunchRetries = 300*time.Millisecond, 2
	s.stall()
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client, err := recipe.Dial(recipe.Config{Servers: []string{proxy.Addr()}, Chroot: s.root, Timeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	proxy.Slow(60 * time.Millisecond) // the machine's id is written after 250 ms
	s.launch(func(d *launcher.Deps) { d.Client = client })
	out := s.wait(s.submit(wish("small")))
	if out.State != "failed" || strings.Contains(out.Reason, "version") || !strings.Contains(out.Reason, "launch-timeout") {
		t.Errorf("%+v", out)
	}
}

// A cloud that cannot delete a failed machine at once costs a moment, not the request.
func TestFailedMachineIsDeletedAfterSomeTries(t *testing.T) {
	t.Parallel()
	s := newSite(t, onePool)
	s.image()
	var waits, deletions atomic.Int32
	s.clouds["cloud"].SetHook(func(_ context.Context, c fake.Call) error {
		switch {
		case c.Done:
		case c.Op == fake.OpWait && waits.Add(1) == 1:
			return fmt.Errorf("no answer: %w", providers.ErrTransient)
		case c.Op == fake.OpDeleteNode && deletions.Add(1) < 3:
			return fmt.Errorf("busy: %w", providers.ErrTransient)
		}
		return nil
	})
	s.launch()
	out := s.wait(s.submit(wish("small")))
	if out.State != "fulfilled" || deletions.Load() != 3 {
		t.Errorf("%+v after %d tries to delete", out, deletions.Load())
	}
	if got := s.machines("cloud"); got != 1 {
		t.Errorf("%d machines", got)
	}
}
