package zkmodel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// site is where one call of a Store is made: a model of ZooKeeper, our store, and another's.
type site struct {
	t       *testing.T
	ctx     context.Context
	cluster *zookeeper.Cluster
	st, b   *zkmodel.Store
	r       *zkmodel.Request
	nodes   []*zkmodel.Node
	locks   []*recipe.Held
}

// must ends a test whose preparations fail.
func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func newSite(t *testing.T, prepare ...func(*site)) *site {
	t.Helper()
	c := zookeeper.New(zookeeper.Options{Seed: 1, Tick: 100 * time.Millisecond, MaxTimeout: time.Minute})
	t.Cleanup(c.Close)
	s := &site{t: t, ctx: t.Context(), cluster: c}
	store := func(name string) *zkmodel.Store {
		client, err := recipe.Dial(recipe.Config{Servers: c.Addrs(), Timeout: 10 * time.Second, Dial: c.Dialer(name)})
		s.must(err)
		t.Cleanup(client.Close)
		session, err := client.Session(t.Context())
		s.must(err)
		return zkmodel.NewStore(session, nil)
	}
	s.b = store("b")
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot} {
		s.must(s.b.Session().EnsurePath(t.Context(), path))
	}
	s.r = &zkmodel.Request{NodeTypes: zkmodel.Strings{"a", "b"}}
	s.must(s.b.CreateRequest(t.Context(), "200", s.r))
	s.st = store("a")
	for _, p := range prepare {
		p(s)
	}
	return s
}

// pending is a request as who accepts it writes it.
func pending(s *site) {
	s.must(zkmodel.Move(s.r, zkmodel.RequestPending, zkmodel.ByUs, 7))
	s.nodes = []*zkmodel.Node{{Type: zkmodel.Strings{"a"}, LaunchID: "one"}, {Type: zkmodel.Strings{"b"}}}
}

func accepted(s *site) {
	pending(s)
	lock, err := s.st.AcceptRequest(s.ctx, s.r, s.nodes)
	s.must(err)
	s.locks = []*recipe.Held{lock}
}

func begun(s *site) {
	accepted(s)
	locks, err := s.st.BeginNodes(s.ctx, s.locks[0], s.nodes)
	s.must(err)
	s.locks = append(locks, s.locks...)
}

// telling has our store tell what it does.
func telling(s *site) {
	client, err := recipe.Dial(recipe.Config{Servers: s.cluster.Addrs(), Timeout: 10 * time.Second, Dial: s.cluster.Dialer("a")})
	s.must(err)
	client.SetLog(recipe.NewLog(event.Root, "us"))
	s.t.Cleanup(client.Close)
	session, err := client.Session(s.ctx)
	s.must(err)
	s.st = zkmodel.NewStore(session, nil)
}

// lone is a node with our lock.
func lone(s *site) {
	n := &zkmodel.Node{Type: zkmodel.Strings{"a"}}
	lock, err := s.st.CreateNode(s.ctx, n)
	s.must(err)
	s.nodes, s.locks = []*zkmodel.Node{n}, []*recipe.Held{lock}
}

// claimCall is a call of which each request meets each fate.
type claimCall struct {
	prepare func(*site)
	call    func(*site) error
	// done reports whether all is in the tree that the call makes.
	done func(*site) bool
	// once: what becomes of it is not found out, so a lost connection is told.
	once bool
	// bears: it goes on where it is refused what may be there already, or asks for more behind its end.
	bears bool
}

func (s *site) locked(dir string) bool {
	is, err := recipe.Locked(s.t.Context(), s.b.Session(), dir)
	s.must(err)
	return is
}

func (s *site) request() *zkmodel.Request {
	r, err := s.b.Request(s.t.Context(), s.r.ID)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	s.must(err)
	return r
}

// known are the nodes that there are.
func (s *site) known() []*zkmodel.Node {
	nodes, err := s.b.Nodes(s.t.Context())
	s.must(err)
	return nodes
}

func (s *site) keep(lock *recipe.Held, err error) error {
	if err == nil {
		s.locks = append(s.locks, lock)
	} else if lock != nil {
		s.t.Errorf("a lock beside the error %v", err)
	}
	return err
}

func claimCalls() map[string]claimCall {
	isLocked := func(s *site) bool { return s.locked(zkmodel.RequestLockPath(s.r.ID)) }
	gone := func(s *site) bool { return s.request() == nil }
	accept := func(s *site) error { return s.keep(s.st.AcceptRequest(s.ctx, s.r, s.nodes)) }
	isAccepted := func(s *site) bool {
		r := s.request()
		return isLocked(s) && r.State == zkmodel.RequestPending && r.StateTime == 7 && r.Stat.Version == s.r.Stat.Version && len(s.known()) == 2
	}
	finish := func(s *site) {
		begun(s)
		s.must(zkmodel.Move(s.r, zkmodel.RequestFulfilled, zkmodel.ByUs, 9))
		s.nodes[0].Reason = "changed"
	}
	return map[string]claimCall{
		"create request": {call: func(s *site) error {
			r := &zkmodel.Request{Requestor: "me"}
			err := s.st.CreateRequest(s.ctx, "100", r)
			if s.r = r; err == nil && (r.ID == "" || r.EventID == "" || r.State != zkmodel.RequestRequested) {
				err = fmt.Errorf("%+v", r)
			}
			return err
		}, done: func(s *site) bool { return s.request().Requestor == "me" }, once: true, bears: true},
		"lock request": {call: func(s *site) error {
			lock, r, err := s.st.LockRequest(s.ctx, s.r.ID)
			if err == nil && r.ID != s.r.ID {
				err = fmt.Errorf("%+v", r)
			}
			return s.keep(lock, err)
		}, done: isLocked, bears: true},
		"request": {call: func(s *site) error {
			r, err := s.st.Request(s.ctx, s.r.ID)
			if err == nil && r.ID != s.r.ID {
				err = fmt.Errorf("%+v", r)
			}
			return err
		}, done: func(*site) bool { return true }},
		"delete request":   {call: func(s *site) error { return s.st.DeleteRequest(s.ctx, s.r.ID) }, done: gone, once: true},
		"erase request":    {call: func(s *site) error { return s.st.EraseRequest(s.ctx, s.r) }, done: gone, once: true},
		"withdraw request": {call: func(s *site) error { return s.st.WithdrawRequest(s.ctx, s.request()) }, done: gone, once: true},
		"accept request":   {prepare: pending, call: accept, done: isAccepted, once: true},
		"accept request that was locked": {prepare: func(s *site) {
			lock, _, err := s.b.LockRequest(s.ctx, s.r.ID)
			s.must(err)
			s.must(lock.Release(s.ctx))
			pending(s)
		}, call: accept, done: isAccepted, once: true},
		"erase request, and tell": {prepare: telling, call: func(s *site) error { return s.st.EraseRequest(s.ctx, s.r) }, done: gone, bears: true},
		"begin nodes": {prepare: accepted, call: func(s *site) error {
			for _, n := range s.nodes {
				s.must(zkmodel.Move(n, zkmodel.NodeBuilding, zkmodel.ByUs, 8))
			}
			locks, err := s.st.BeginNodes(s.ctx, s.locks[0], s.nodes)
			s.locks = append(s.locks, locks...)
			if err == nil && len(locks) != 2 {
				err = fmt.Errorf("%d locks", len(locks))
			}
			return err
		}, done: func(s *site) bool {
			for i, n := range s.known() {
				bare := *n
				bare.LaunchID = ""
				launch, err := s.b.LaunchOf(s.t.Context(), &bare)
				s.must(err)
				if n.State != zkmodel.NodeBuilding || !s.locked(zkmodel.LockPath(n.Path())) || n.Stat.Version != s.nodes[i].Stat.Version || launch != s.nodes[i].LaunchID {
					return false
				}
			}
			return true
		}, once: true, bears: true},
		"finish request": {prepare: finish, call: func(s *site) error { return s.st.FinishRequest(s.ctx, s.locks, s.r, s.nodes[:1]) }, done: func(s *site) bool {
			return s.request().State == zkmodel.RequestFulfilled && s.known()[0].Reason == "changed" && !isLocked(s) && !s.locked(zkmodel.LockPath(s.nodes[1].Path()))
		}},
		"drop request": {prepare: finish, call: func(s *site) error { return s.st.DropRequest(s.ctx, s.locks, s.r, s.nodes[:1]) }, done: func(s *site) bool {
			return gone(s) && s.known()[0].Reason == "changed"
		}},
		"create node": {call: func(s *site) error {
			n := &zkmodel.Node{Type: zkmodel.Strings{"a"}}
			lock, err := s.st.CreateNode(s.ctx, n)
			if err == nil && (n.ID == "" || n.State != zkmodel.NodeInit || n.CreatedTime == 0 || n.Token == "") {
				err = fmt.Errorf("%+v", n)
			}
			s.nodes = []*zkmodel.Node{n}
			return s.keep(lock, err)
		}, done: func(s *site) bool { return len(s.known()) == 1 && s.locked(zkmodel.LockPath(s.nodes[0].Path())) }, once: true, bears: true},
		"lock node": {prepare: func(s *site) { lone(s); s.must(s.locks[0].Release(s.ctx)); s.locks = nil }, call: func(s *site) error {
			lock, n, err := s.st.LockNode(s.ctx, s.nodes[0].ID, "me")
			if err == nil && (!n.Locked || n.ID != s.nodes[0].ID) {
				err = fmt.Errorf("%+v", n)
			}
			return s.keep(lock, err)
		}, done: func(s *site) bool { return s.locked(zkmodel.LockPath(s.nodes[0].Path())) }},
		"delete node": {prepare: lone, call: func(s *site) error { return s.st.DeleteNode(s.ctx, s.locks[0], s.nodes[0]) }, done: func(s *site) bool { return len(s.known()) == 0 }, bears: true},
		"delete node, with something below": {prepare: func(s *site) {
			lone(s)
			s.must(s.b.Session().EnsurePath(s.ctx, s.nodes[0].Path()+"/notes"))
			s.must(zkmodel.Move(s.nodes[0], zkmodel.NodeDeleting, zkmodel.ByUs, 8))
		}, call: func(s *site) error { return s.st.DeleteNode(s.ctx, s.locks[0], s.nodes[0]) }, done: func(s *site) bool { return len(s.known()) == 0 }},
	}
}

// Mistakes: a claim of a request or a node that is refused, or whose answer is lost, and is taken for one that was made; one that
// was made, of which nobody knows; a lock that stays behind, and keeps all others out for as long as the session lives.
func TestClaimsMeetEachFate(t *testing.T) {
	fates := map[string]zookeeper.Fate{"refused": zookeeper.Refused, "lost": zookeeper.Lost, "unanswered": zookeeper.Unanswered}
	for name, c := range claimCalls() {
		for fate, what := range fates {
			t.Run(name+", "+fate, func(t *testing.T) {
				t.Parallel()
				for n, more := 1, true; more && !t.Failed(); n++ {
					synctest.Test(t, func(t *testing.T) { more = c.meets(t, n, what) })
				}
			})
		}
	}
}

// meets makes the call, whose n-th request has a fate, and reports whether there was one.
func (c claimCall) meets(t *testing.T, n int, what zookeeper.Fate) (met bool) {
	t.Helper()
	s := newSite(t)
	if c.prepare != nil {
		c.prepare(s)
	}
	before := len(s.locks)
	s.cluster.AtRequest("a", n, func() { met = true }, what)
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	s.ctx = ctx
	err := c.call(s)
	s.cluster.AtRequest("a", 0, nil, zookeeper.Done)
	switch {
	case err == nil && !c.done(s):
		t.Errorf("request %d: it is done, and nothing has come of it", n)
	case err == nil && met && what == zookeeper.Refused && !c.bears:
		t.Errorf("request %d is refused, and the caller is told that it is done", n)
	case err != nil && !met:
		t.Errorf("without a fault: %v", err)
	case err != nil && what == zookeeper.Refused && !c.bears && !errors.Is(err, recipe.ErrAuth):
		t.Errorf("request %d is refused, and the caller is told: %v", n, err)
	case err != nil && what == zookeeper.Refused:
	case err != nil && (!c.once || !errors.Is(err, recipe.ErrConnectionLost)):
		t.Errorf("at request %d only a connection was lost: %v", n, err)
	}
	if <-time.After(30 * time.Second); err != nil && len(s.locks) == before && before == 0 {
		if s.r.ID != "" && s.locked(zkmodel.RequestLockPath(s.r.ID)) {
			t.Errorf("after request %d a lock stays: %v", n, err)
		}
	}
	return met
}

// What is gone, or has changed, is found out by who claims it, and by who gives it back.
func TestClaimsOfWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, accepted)
		again := *s.r
		if _, err := s.b.AcceptRequest(s.ctx, &again, nil); !errors.Is(err, recipe.ErrLocked) {
			t.Errorf("accepted by two: %v", err)
		}
		s.must(s.locks[0].Release(s.ctx))
		again.Stat.Version--
		if _, err := s.b.AcceptRequest(s.ctx, &again, nil); !errors.Is(err, recipe.ErrVersion) || s.locked(zkmodel.RequestLockPath(s.r.ID)) {
			t.Errorf("accepted as it was before: %v", err)
		}
		stale := *s.request()
		stale.Stat.Version--
		if err := s.st.WithdrawRequest(s.ctx, &stale); err != nil || s.request() == nil {
			t.Errorf("one that has changed is withdrawn: %v", err)
		}
		s.must(s.st.DeleteRequest(s.ctx, s.r.ID))
		for name, err := range map[string]error{
			"delete":   s.st.DeleteRequest(s.ctx, s.r.ID),
			"erase":    s.st.EraseRequest(s.ctx, s.r),
			"withdraw": s.st.WithdrawRequest(s.ctx, s.r),
		} {
			if err != nil {
				t.Errorf("%s one that is gone: %v", name, err)
			}
		}
		if _, _, err := s.st.LockRequest(s.ctx, s.r.ID); !errors.Is(err, zkmodel.ErrNotFound) || s.locked(zkmodel.RequestLockPath(s.r.ID)) {
			t.Errorf("a request that is gone is locked: %v", err)
		}
		if _, _, err := s.st.LockNode(s.ctx, "0000000077", ""); !errors.Is(err, zkmodel.ErrNotFound) {
			t.Errorf("a node that is gone is locked: %v", err)
		}
		own := &zkmodel.Request{State: zkmodel.RequestPending, StateTime: 3, EventID: "mine"}
		s.must(s.st.CreateRequest(s.ctx, "100", own))
		if own.State != zkmodel.RequestPending || own.StateTime != 3 || own.EventID != "mine" {
			t.Errorf("what its maker has said is changed: %+v", own)
		}
		known := &zkmodel.Node{Type: zkmodel.Strings{"a"}, Token: "mine", State: zkmodel.NodeReady}
		lock, err := s.st.CreateNode(s.ctx, known)
		s.must(err)
		if n := s.known()[len(s.known())-1]; n.Token == "mine" || n.State != zkmodel.NodeInit {
			t.Errorf("a new node begins as %s, with the token %s", n.State, n.Token)
		}
		s.must(lock.Release(s.ctx))
		accept := &zkmodel.Node{Token: "mine"}
		r := &zkmodel.Request{}
		s.must(s.b.CreateRequest(s.ctx, "100", r))
		_, err = s.st.AcceptRequest(s.ctx, r, []*zkmodel.Node{accept})
		if s.must(err); accept.Token == "mine" || accept.State != zkmodel.NodeInit {
			t.Errorf("a new node of a request begins as %s, with the token %s", accept.State, accept.Token)
		}
	})
}

// A new node has its age; a state without a way says so.
func TestStatesTell(t *testing.T) {
	n := &zkmodel.Node{State: zkmodel.NodeReady}
	if err := zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, 5); err != nil || n.CreatedTime != 5 {
		t.Errorf("%v, made at %v", err, n.CreatedTime)
	}
	r := &zkmodel.Request{State: zkmodel.RequestFailed}
	if err := zkmodel.Move(r, zkmodel.RequestRequested, zkmodel.ByUs, 2); err == nil || !strings.HasSuffix(err.Error(), "it stays as it is") {
		t.Errorf("a request that has failed goes on: %v", err)
	}
}
