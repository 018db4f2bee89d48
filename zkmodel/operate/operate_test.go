package operate_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

const who = operate.RequestorMark + "ann@desk"

func setup(t *testing.T) (*operate.Operator, *zkmodel.Store) {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	return operate.New(store, who), store
}

// node makes a node in a state, unlocked.
func node(t *testing.T, store *zkmodel.Store, state zkmodel.NodeState, request string) *zkmodel.Node {
	t.Helper()
	n := &zkmodel.Node{Provider: "cloud", AllocatedTo: request}
	lock, err := store.CreateNode(t.Context(), n)
	if err == nil {
		n.State, n.StateTime = state, 1
		err = errors.Join(store.SaveNode(t.Context(), lock, n), lock.Release(t.Context()))
	}
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Mistakes: a node that is held without a word of who did it or for how long; one that is
// deleted by a person while somebody has it; a lock that an operation leaves behind.
func TestNodesAreHeldAndDeleted(t *testing.T) {
	o, store := setup(t)
	n := node(t, store, zkmodel.NodeReady, "")
	if err := o.Hold(t.Context(), n.ID, "odd", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	held, err := store.Node(t.Context(), n.ID)
	if err != nil || held.State != zkmodel.NodeHold || held.Comment != who+": odd" || held.HoldExpiration != 7200 || held.StateTime == 1 {
		t.Errorf("held: %+v %v", held, err)
	}
	lock, _, err := store.LockNode(t.Context(), n.ID, "zuul")
	if err != nil {
		t.Fatal(err)
	}
	if err := o.DeleteNode(t.Context(), n.ID); err == nil || !strings.Contains(err.Error(), `is hold and locked by "zuul"`) {
		t.Errorf("delete a locked node: %v", err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lock, _, err = store.LockNode(t.Context(), n.ID, ""); err != nil { // as Nodepool's locks may be
		t.Fatal(err)
	}
	if err := o.DeleteNode(t.Context(), n.ID); err == nil || !strings.Contains(err.Error(), "locked by another process ("+zkmodel.LockPath(n.Path())+")") {
		t.Errorf("delete a node whose lock names no holder: %v", err)
	}
	if err := errors.Join(lock.Release(t.Context()), o.DeleteNode(t.Context(), n.ID)); err != nil {
		t.Fatal(err)
	}
	gone, err := store.Node(t.Context(), n.ID)
	if err != nil || gone.State != zkmodel.NodeDeleting || gone.Reason != who+" wanted it" {
		t.Errorf("deleted: %+v %v", gone, err)
	}
	if err := o.Hold(t.Context(), n.ID, "", 0); !errors.Is(err, zkmodel.ErrTransition) {
		t.Errorf("hold what is being deleted: %v", err)
	}
	if err := o.DeleteBrokenNode(t.Context(), n.ID); !errors.Is(err, operate.ErrDecodable) {
		t.Errorf("delete a good node as a broken one: %v", err)
	}
	if locked, err := recipe.Locked(t.Context(), store.Session(), zkmodel.LockPath(n.Path())); err != nil || locked {
		t.Errorf("a lock is left: %v %v", locked, err)
	}
	if err := o.Hold(t.Context(), "0000009999", "", 0); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("hold what is not there: %v", err)
	}
}

// Mistakes: a person's request that stays for ever when its last node goes, or goes while
// a node of it is in use; one of Zuul's that is taken from under it.
func TestRequestsGoWithTheirLastNode(t *testing.T) {
	for name, tc := range map[string]struct {
		requestor string
		goes      bool
	}{"a person's": {who, true}, "Zuul's": {"zuul", false}} {
		t.Run(name, func(t *testing.T) {
			o, store := setup(t)
			r := &zkmodel.Request{Requestor: tc.requestor, State: zkmodel.RequestFulfilled}
			if err := store.CreateRequest(t.Context(), "200", r); err != nil {
				t.Fatal(err)
			}
			lock, r, err := store.LockRequest(t.Context(), r.ID)
			if err != nil {
				t.Fatal(err)
			}
			first, second := node(t, store, zkmodel.NodeReady, r.ID), node(t, store, zkmodel.NodeReady, r.ID)
			r.Nodes = zkmodel.Strings{first.ID, second.ID}
			if err := errors.Join(store.SaveRequest(t.Context(), lock, r), lock.Release(t.Context())); err != nil {
				t.Fatal(err)
			}
			for i, n := range []*zkmodel.Node{first, second} {
				if err := o.DeleteNode(t.Context(), n.ID); err != nil {
					t.Fatal(err)
				}
				_, err := store.Request(t.Context(), r.ID)
				if gone := errors.Is(err, zkmodel.ErrNotFound); gone != (tc.goes && i == 1) {
					t.Errorf("after %d nodes the request is gone: %v (%v)", i+1, gone, err)
				}
			}
			if !tc.goes {
				if err := o.DeleteRequest(t.Context(), r.ID); err != nil {
					t.Error(err)
				}
			}
			if err := o.DeleteRequest(t.Context(), r.ID); !errors.Is(err, zkmodel.ErrNotFound) {
				t.Errorf("delete a request that is gone: %v", err)
			}
		})
	}
}

// Mistakes: a build that is cancelled or deleted without its builder being told, an image
// that is paused for a build that is not there, a request that is not withdrawn.
func TestImagesAreOperated(t *testing.T) {
	o, store := setup(t)
	ctx := t.Context()
	if _, err := o.CancelBuild(ctx, "image"); err == nil || !strings.Contains(err.Error(), "nobody asks") {
		t.Errorf("cancel nothing: %v", err)
	}
	if _, err := o.Pause(ctx, "image", "", 0); err != nil {
		t.Fatal(err)
	}
	if paused, err := o.RequestBuild(ctx, "image"); err != nil || !paused {
		t.Errorf("paused %v: %v", paused, err)
	}
	if err := o.Unpause(ctx, "image"); err != nil {
		t.Fatal(err)
	}
	if done, err := o.CancelBuild(ctx, "image"); err != nil || done.Build != "" {
		t.Errorf("withdraw: %+v %v", done, err)
	}
	lock, err := store.LockBuilds(ctx, "image")
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: "image"}
	if err := store.CreateBuild(ctx, lock, b); err != nil {
		t.Fatal(err)
	}
	if err := o.DeleteBuild(ctx, "image", b.ID, operate.Deletion{}); !errors.Is(err, zkmodel.ErrInProgress) {
		t.Errorf("delete a build under way: %v", err)
	}
	if done, err := o.CancelBuild(ctx, "image"); err != nil || done.Build != b.ID || done.Again {
		t.Errorf("cancel: %+v %v", done, err)
	}
	if _, err := o.RequestBuild(ctx, "image"); err != nil {
		t.Fatal(err)
	}
	if done, err := o.CancelBuild(ctx, "image"); err != nil || !done.Again {
		t.Errorf("cancel, and another is asked for: %+v %v", done, err)
	}
	b.State = zkmodel.BuildReady
	if err := errors.Join(store.SaveBuild(ctx, lock, b), lock.Release(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := o.DeleteBuild(ctx, "image", "0000009999", operate.Deletion{Pause: true}); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("delete no build: %v", err)
	}
	if paused, err := store.ImagePaused(ctx, "image"); err != nil || paused {
		t.Errorf("paused for nothing: %v %v", paused, err)
	}
	if err := o.DeleteBuild(ctx, "image", b.ID, operate.Deletion{Pause: true}); err != nil {
		t.Fatal(err)
	}
	now, err := store.Build(ctx, "image", b.ID)
	if paused, _ := store.ImagePaused(ctx, "image"); err != nil || now.State != zkmodel.BuildDeleting || !paused {
		t.Errorf("build is %+v, paused %v: %v", now, paused, err)
	}
	key := zkmodel.UploadKey{Image: "image", Build: b.ID, Provider: "cloud", ID: "0000000001"}
	if err := o.DeleteUpload(ctx, key, operate.Deletion{}); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("delete no upload: %v", err)
	}
}

// Mistake: a node that was chosen while it was idle is deleted under the job that has got it since.
func TestNodesThatHaveChangedAreLeft(t *testing.T) {
	o, store := setup(t)
	ctx := t.Context()
	id := node(t, store, zkmodel.NodeUsed, "").ID
	taken := errors.New("taken")
	if err := o.DeleteNodeIf(ctx, id, func(*zkmodel.Node) error { return taken }); !errors.Is(err, taken) {
		t.Errorf("refused: %v", err)
	}
	n, err := store.Node(ctx, id)
	if err != nil || n.State != zkmodel.NodeUsed || n.Locked {
		t.Errorf("%+v %v", n, err)
	}
	if err := o.DeleteNodeIf(ctx, id, func(*zkmodel.Node) error { return nil }); err != nil {
		t.Error(err)
	}
}

// node-delete --now of a node that is being deleted already. Mistakes: its age begins again, so
// that nobody sees that it is stuck; the cloud's error is lost with the command's output.
func TestDeleteNodeNowKeepsTheAge(t *testing.T) {
	o, store := setup(t)
	n := &zkmodel.Node{Provider: "north", ExternalID: zkmodel.TextValue("vm")}
	lock, err := store.CreateNode(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	long := zkmodel.EpochOf(time.Now().Add(-time.Hour))
	if err := errors.Join(zkmodel.Move(n, zkmodel.NodeDeleting, zkmodel.ByUs, long), store.SaveNode(t.Context(), lock, n), lock.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	refused := errors.New("500 cannot delete")
	err = o.DeleteNodeNow(t.Context(), n.ID, func(*zkmodel.Node) error { return nil }, func(context.Context, *zkmodel.Node) error { return refused })
	if !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if now, err := store.Node(t.Context(), n.ID); err != nil || now.StateTime != long || now.DeleteError != refused.Error() || !now.Stuck(time.Now()) {
		t.Errorf("%v since %v, %q: %v", now.State, now.StateTime.Time(), now.DeleteError, err)
	}
}
