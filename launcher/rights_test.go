package launcher_test

import (
	"context"
	"errors"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// rights changes who may do what below a folder of the tree.
type rights struct {
	t    testing.TB
	conn *zk.Conn
	root string
}

func (s *site) rights() *rights {
	s.t.Helper()
	conn, _, err := zk.Connect([]string{zktest.Shared(s.t).Addr()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	if err := conn.AddAuth("digest", []byte("admin:secret")); err != nil {
		s.t.Fatal(err)
	}
	return &rights{s.t, conn, s.root}
}

// set gives the rights to all that is below folder.
func (r *rights) set(folder string, acl []zk.ACL) {
	r.t.Helper()
	var walk func(string)
	walk = func(p string) {
		kids, _, err := r.conn.Children(p)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		if err == nil {
			_, err = r.conn.SetACL(p, acl, -1)
		}
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			r.t.Fatalf("rights of %s: %v", p, err)
		}
		for _, kid := range kids {
			walk(path.Join(p, kid))
		}
	}
	walk(r.root + folder)
}

func (r *rights) close(folder string) { r.set(folder, zk.DigestACL(zk.PermAll, "admin", "secret")) }
func (r *rights) open(folder string)  { r.set(folder, zk.WorldACL(zk.PermAll)) }

// When the tree's rights are closed and opened again, in the middle of everything,
// work goes on as before. Meanwhile a launcher that sees nothing does not say OK.
func TestRightsClosedAndOpened(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{
		zkmodel.Root, zkmodel.RequestsRoot, zkmodel.NodesRoot, zkmodel.LocksRoot, zkmodel.ComponentsRoot, zkmodel.OwnRoot,
	} {
		t.Run(path.Base(folder), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, onePool)
			s.image()
			l := s.launch(named("nl01"))
			s.launch(named("nl02"))
			zktest.Eventually(t, func() bool { return len(s.pools()) == 2 && l.Ready() == nil }, "two launchers")
			stop := s.keepBusy()
			r := s.rights()
			for range 3 {
				pause(time.Second)
				r.close(folder)
				pause(3 * time.Second)
				r.open(folder)
			}
			if folder == zkmodel.Root {
				r.close(folder)
				zktest.Eventually(t, func() bool { return l.Ready() != nil }, "not ready while nothing can be read")
				r.open(folder)
			}
			stop()
			for _, request := range s.requests() {
				_ = s.zuul.Cancel(request.ID)
			}
			out := s.wait(s.submit(wish("large", "large", "large", "large", "large"))) // all room, so all else is cleaned
			if out.State != "fulfilled" {
				t.Errorf("%+v", out)
			}
			zktest.Eventually(t, func() bool { return l.Ready() == nil }, "ready again")
		})
	}
}

// keepBusy has another Zuul run jobs until it is stopped, which leaves no locks.
func (s *site) keepBusy() (stop func()) {
	s.t.Helper()
	load, err := zuul.Dial(s.t.Context(), []string{zktest.Shared(s.t).Addr()}, s.root, "zuul-load")
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	var jobs sync.WaitGroup
	for range 10 {
		jobs.Go(func() {
			for ctx.Err() == nil {
				one, done := context.WithTimeout(ctx, 5*time.Second)
				if load.Run(one, wish("small"), nil) != nil {
					pause(100 * time.Millisecond)
				}
				done()
			}
		})
	}
	return func() {
		cancel()
		jobs.Wait()
		load.Close()
	}
}

func pause(d time.Duration) { <-time.After(d) }
