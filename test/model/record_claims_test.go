package model_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/inflight"
	"poolkeeper/test/model"
	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// judge has both models say whether a history is possible.
func judge(t *testing.T, possible bool, m porcupine.Model, history []model.Event, spin func() (bool, error)) {
	t.Helper()
	if got := porcupine.CheckOperationsTimeout(m, model.Operations(history), time.Minute); (got == porcupine.Ok) != possible {
		t.Errorf("porcupine says %v; possible is %t", got, possible)
	}
	if got, err := spin(); err != nil || got != possible {
		t.Errorf("spin says %t (%v); possible is %t", got, err, possible)
	}
}

// launcher is what one has that claims requests: a store, a view and the lock of a quota.
type launcher struct {
	*recorder
	client int
	store  *zkmodel.Store
	mirror *zkmodel.Mirror
	quota  *inflight.QuotaLock
	ids    []string // of the requests
}

// Three launchers' stores race for requests under a quota with room for one node, with the real lock of
// the quota; the first that has claimed one is cut off. What was recorded is possible in
// both models; claimed by a second one, it is not.
func TestRecordedClaims(t *testing.T) {
	t.Parallel()
	root, r := zktest.Root(t), newRecorder(t)
	clients := []*client{connect(t, root), connect(t, root), connect(t, root)}
	s, err := clients[2].Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{zkmodel.NodesRoot, zkmodel.RequestsRoot, zkmodel.LocksRoot} {
		if err := s.EnsurePath(t.Context(), path); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for range 2 {
		req := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, Requestor: "zuul"}
		if err := zkmodel.NewStore(s, nil).CreateRequest(t.Context(), "100", req); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, req.ID)
	}
	var cut sync.Once
	var group sync.WaitGroup
	for i, c := range clients {
		group.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			for over := false; !over && ctx.Err() == nil; {
				over = r.serve(ctx, i, c, ids, &cut)
			}
			if ctx.Err() != nil {
				t.Error("the requests are not served")
			}
		})
	}
	group.Wait()
	history := model.CompleteClaims(r.all("quota", "count", "accept", "reclaim", "finish", "free", "yield", "lose"))
	twice := slices.Clone(history)
	at := slices.IndexFunc(twice, func(e model.Event) bool { return e.Op == "reclaim" && e.Result == "ok" })
	twice[at].Op = "accept"
	for possible, h := range map[bool][]model.Event{true: history, false: twice} {
		judge(t, possible, model.Claims(1), h, func() (bool, error) { return model.ClaimsPossible(t.Context(), h, 1, losses(h)) })
	}
}

// serve is one session of a launcher; it is over when all requests are.
func (r *recorder) serve(ctx context.Context, i int, c *client, ids []string, cut *sync.Once) (over bool) {
	s, err := c.Session(ctx)
	if err != nil {
		return false
	}
	ctx, stop := s.Bind(ctx)
	jobs := inflight.NewJobs(time.Now, func() {})
	defer jobs.Wait()
	defer stop()
	l := &launcher{recorder: r, client: i, store: zkmodel.NewStore(s, nil), mirror: zkmodel.NewMirror(c.Client, zkmodel.PartNodes, hclog.NewNullLogger()), ids: ids}
	jobs.Spawn(func() { _ = l.mirror.Run(ctx) })
	l.quota = inflight.NewQuotaLock(func(ctx context.Context) (inflight.Held, error) {
		return recipe.NewLock(s, zkmodel.QuotaLockPath("cloud"), "", recipe.EnsureParents()).Acquire(ctx)
	}, l.mirror.Barrier, jobs)
	if l.mirror.WaitSynced(ctx) != nil {
		return false
	}
	for ctx.Err() == nil {
		lock, req, open := l.claim(ctx)
		if !open {
			return true
		}
		if lock == nil {
			_ = clock.Sleep(ctx, time.Second) // a history that spin is given is small
			continue
		}
		cut.Do(func() { c.cutOff(r.t, ctx) })
		l.finish(ctx, lock, req)
	}
	r.lost(i)
	return false
}

// claim takes a request, from its requestor or from a launcher that is gone; open says that
// there are some that have not ended.
func (l *launcher) claim(ctx context.Context) (lock *recipe.Held, req *zkmodel.Request, open bool) {
	for at, id := range l.ids {
		r, err := l.store.Request(ctx, id)
		if err != nil || r.State == zkmodel.RequestFulfilled {
			open = open || err != nil
			continue
		}
		open = true
		number := strconv.Itoa(at)
		if r.State == zkmodel.RequestRequested {
			if lock = l.accept(ctx, number, r); lock != nil {
				return lock, r, true
			}
			continue
		}
		_ = l.call(l.client, "reclaim", number, never, func() (_ string, err error) {
			if lock, r, err = l.store.LockRequest(ctx, id); err == nil && r.State != zkmodel.RequestPending {
				err = errors.Join(zkmodel.ErrConflict, lock.Release(ctx))
			}
			return "", err
		})
		if lock != nil && lock.Lost() == nil && r != nil && r.State == zkmodel.RequestPending {
			return lock, r, true
		}
	}
	return nil, nil, open
}

// accept takes a request that waits, under the quota, where there is room; nil when it does not.
func (l *launcher) accept(ctx context.Context, number string, r *zkmodel.Request) (lock *recipe.Held) {
	err := l.call(l.client, "quota", "", never, func() (string, error) {
		l.quota.Want(ctx)
		for !l.quota.Use() {
			if ctx.Err() != nil {
				return "", context.Cause(ctx)
			}
			<-time.After(time.Millisecond)
		}
		return "", nil
	})
	if err != nil {
		return nil
	}
	defer func() {
		if ctx.Err() == nil {
			_ = l.call(l.client, "yield", "", nil, func() (string, error) { l.quota.End(ctx); return "", context.Cause(ctx) })
		}
	}()
	used := 0
	_ = l.call(l.client, "count", "", never, func() (string, error) {
		err := l.mirror.Barrier(ctx)
		used = len(l.mirror.Nodes())
		return strconv.Itoa(used), err
	})
	fence, ours := l.quota.Fence()
	if used > 0 || !ours || zkmodel.Move(r, zkmodel.RequestPending, zkmodel.ByUs, zkmodel.EpochOf(time.Now())) != nil {
		return nil
	}
	n := &zkmodel.Node{Provider: "cloud", Pool: "main", Type: zkmodel.Strings{"small"}, AllocatedTo: r.ID}
	refused := func(err error) bool { return errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrLocked) }
	_ = l.call(l.client, "accept", number, refused, func() (_ string, err error) {
		lock, err = l.store.AcceptRequest(ctx, r, []*zkmodel.Node{n}, fence)
		return "", err
	})
	return lock
}

// finish ends a request, and uses its node.
func (l *launcher) finish(ctx context.Context, lock *recipe.Held, r *zkmodel.Request) {
	number := strconv.Itoa(slices.Index(l.ids, r.ID))
	if zkmodel.Move(r, zkmodel.RequestFulfilled, zkmodel.ByUs, zkmodel.EpochOf(time.Now())) != nil {
		return
	}
	err := l.call(l.client, "finish", number, nil, func() (string, error) {
		return "", l.store.FinishRequest(ctx, []*recipe.Held{lock}, r, nil)
	})
	if err != nil {
		return
	}
	_ = l.call(l.client, "free", number, nil, func() (string, error) {
		nodes, err := l.store.Nodes(ctx)
		for _, seen := range nodes {
			if seen.AllocatedTo != r.ID || err != nil {
				continue
			}
			var lock *recipe.Held
			var n *zkmodel.Node
			if lock, n, err = l.store.LockNode(ctx, seen.ID, ""); err == nil {
				err = l.store.DeleteNode(ctx, lock, n)
			}
		}
		return "", err
	})
}
