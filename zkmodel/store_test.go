package zkmodel_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// connect gives a client and its session on a tree of the test's own.
func connect(t *testing.T) (*recipe.Client, *recipe.Session) {
	t.Helper()
	return connectTo(t, zktest.Root(t))
}

// connectTo does so on a tree that others may use, too; change changes how.
func connectTo(t *testing.T, root string, change ...func(*recipe.Config)) (*recipe.Client, *recipe.Session) {
	t.Helper()
	cfg := recipe.Config{Servers: []string{zktest.Shared(t).Addr()}, Chroot: root}
	for _, c := range change {
		c(&cfg)
	}
	client, err := recipe.Dial(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client, session
}

// newBuild makes a build of the image "image", ready at once.
func newBuild(t *testing.T, st *zkmodel.Store) *zkmodel.Build {
	t.Helper()
	return newBuildOf(t, st, "image")
}

// newBuildOf makes a build of an image, ready at once.
func newBuildOf(t *testing.T, st *zkmodel.Store, image string) *zkmodel.Build {
	t.Helper()
	lock, err := st.LockBuilds(t.Context(), image)
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: image, Builder: "host", Formats: zkmodel.Formats{"qcow2"}}
	if err := st.CreateBuild(t.Context(), lock, b); err != nil {
		t.Fatal(err)
	}
	b.State, b.StateTime = zkmodel.BuildReady, zkmodel.EpochOf(time.Now())
	if err := st.SaveBuild(t.Context(), lock, b); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b
}

// newUpload makes an upload of a build, ready at once.
func newUpload(t *testing.T, st *zkmodel.Store, b *zkmodel.Build, provider string) *zkmodel.Upload {
	t.Helper()
	lock, err := st.LockUploads(t.Context(), b.Image, b.ID, provider)
	if err != nil {
		t.Fatal(err)
	}
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: b.Image, Build: b.ID, Provider: provider}}
	if err := st.CreateUpload(t.Context(), lock, u); err != nil {
		t.Fatal(err)
	}
	u.State, u.StateTime = zkmodel.UploadReady, zkmodel.EpochOf(time.Now())
	u.ExternalID = zkmodel.TextValue("cloud-id")
	if err := st.SaveUpload(t.Context(), lock, u); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	return u
}

// Build ids grow, whichever builder makes the builds and what is deleted in between; each
// image has its own.
func TestBuildNumbersGrowAndAreNeverUsedAgain(t *testing.T) {
	root := zktest.Root(t)
	_, s := connectTo(t, root)
	st := zkmodel.NewStore(s, nil)
	_, elsewhere := connectTo(t, root)
	another := zkmodel.NewStore(elsewhere, nil)
	first, second := newBuild(t, st), newBuild(t, st)
	if first.ID != "0000000001" || second.ID != "0000000002" {
		t.Errorf("ids %q and %q; the lock folder is number 0", first.ID, second.ID)
	}
	if err := st.DeleteBuild(t.Context(), "image", second.ID); !errors.Is(err, zkmodel.ErrInProgress) {
		t.Errorf("delete a build that is not marked: %v", err)
	}
	if err := st.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "image", second.ID, false); err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteBuild(t.Context(), "image", second.ID); err != nil {
		t.Fatal(err)
	}
	if third := newBuild(t, another); third.ID != "0000000003" {
		t.Errorf("after a deletion, by another builder: id %q", third.ID)
	}
	if other := newBuildOf(t, another, "other"); other.ID != "0000000001" {
		t.Errorf("the first build of another image has id %q", other.ID)
	}
	if fourth := newBuild(t, st); fourth.ID != "0000000004" {
		t.Errorf("after a build of another image: id %q", fourth.ID)
	}
}

func TestBuildLockExcludes(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	lock, err := st.LockBuilds(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.LockBuilds(t.Context(), "image"); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("second lock: %v", err)
	}
	b := &zkmodel.Build{Image: "image"}
	if err := st.CreateBuild(t.Context(), lock, b); err != nil {
		t.Fatal(err)
	}
	if err := st.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "image", b.ID, false); !errors.Is(err, zkmodel.ErrInProgress) {
		t.Errorf("delete a build in progress: %v", err)
	}
	if err := s.Delete(t.Context(), lock.Path(), recipe.AnyVersion); err != nil { // somebody forces the lock open
		t.Fatal(err)
	}
	if err := st.SaveBuild(t.Context(), lock, b); !errors.Is(err, recipe.ErrFenceLost) {
		t.Errorf("write after the lock was lost: %v", err)
	}
	if err := st.MarkBuildDeleting(t.Context(), zkmodel.ByOperator, "image", b.ID, false); err != nil {
		t.Errorf("delete a build that nobody works on: %v", err)
	}
}

func TestUploadRecordsFollowTheWire(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	b := newBuild(t, st)
	u := newUpload(t, st, b, "cloud")
	want := "/nodepool/images/image/builds/0000000001/providers/cloud/images/0000000001"
	if u.Path() != want {
		t.Errorf("path %s, want %s", u.Path(), want)
	}
	key, err := zkmodel.ParseUploadPath(want)
	if err != nil || key != u.UploadKey {
		t.Errorf("parsed %+v, %v", key, err)
	}
	if _, err := st.LockUploads(t.Context(), "image", "0000000099", "cloud"); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("lock uploads of no build: %v", err)
	}
	if _, ok, _ := s.Exists(t.Context(), zkmodel.BuildPath("image", "0000000099")); ok {
		t.Error("a failed lock made the build's znode")
	}
	if err := st.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, key, false); err != nil {
		t.Fatal(err)
	}
	if got, err := st.Upload(t.Context(), key); err != nil || got.State != zkmodel.UploadDeleting {
		t.Errorf("after image-delete: %v, %v", got, err)
	}
	if err := st.DeleteUpload(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := st.MarkUploadDeleting(t.Context(), zkmodel.ByOperator, key, false); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("delete what is gone: %v", err)
	}
}

func TestBuildRequestMadeMeanwhileStays(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	seen := func() int64 {
		image, err := st.Image(t.Context(), "image")
		if err != nil || image.BuildRequested == nil {
			t.Fatalf("no request seen: %v", err)
		}
		return image.BuildRequested.Czxid
	}
	if err := st.RequestBuild(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	old := seen()
	lock, err := st.LockBuilds(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), zkmodel.RequestBuildPath("image"), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if err := st.RequestBuild(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	if err := st.ClearBuildRequest(t.Context(), lock, "image", old); err != nil {
		t.Fatal(err)
	}
	if err := st.ClearBuildRequest(t.Context(), lock, "image", seen()); err != nil {
		t.Fatal(err)
	}
	if image, _ := st.Image(t.Context(), "image"); image.BuildRequested != nil {
		t.Error("the request that was served is still there")
	}
}

// unanswered is a connection that calls cut before it sends a transaction about a build request.
type unanswered struct {
	net.Conn
	cut func()
}

func (c unanswered) Write(b []byte) (int, error) {
	const transaction = 14 // behind the length and the number of the request
	if len(b) > 12 && binary.BigEndian.Uint32(b[8:]) == transaction && bytes.Contains(b, []byte("request-build")) {
		c.cut()
	}
	return c.Conn.Write(b)
}

// Mistake: a flag whose deletion is tried again, as its answer was lost, and that a person has set anew meanwhile, goes unserved.
func TestBuildRequestSetAfterALostAnswerStays(t *testing.T) {
	root := zktest.Root(t)
	_, s := connectTo(t, root)
	person := zkmodel.NewStore(s, nil)
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	_, session := connectTo(t, root, func(cfg *recipe.Config) {
		cfg.Servers = []string{proxy.Addr()}
		cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return unanswered{conn, proxy.CutDown}, err
		}
	})
	builder := zkmodel.NewStore(session, nil)
	if err := person.RequestBuild(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	lock, err := builder.LockBuilds(t.Context(), "image")
	if err != nil {
		t.Fatal(err)
	}
	flag := zkmodel.RequestBuildPath("image")
	stat, _, err := session.Exists(t.Context(), flag)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- builder.ClearBuildRequest(t.Context(), lock, "image", stat.Czxid) }()
	zktest.Eventually(t, func() bool {
		_, there, err := s.Exists(t.Context(), flag)
		return err == nil && !there
	}, "the flag is deleted")
	if err := person.RequestBuild(t.Context(), "image"); err != nil {
		t.Fatal(err)
	}
	proxy.Break()
	proxy.Heal()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, there, err := s.Exists(t.Context(), flag); err != nil || !there {
		t.Errorf("the new flag is there %t: %v", there, err)
	}
}

// A request that a failed build has used up stays; the next one must be another.
func TestBuildRequestIsRenewed(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	var before int64
	for range 3 {
		if err := st.RequestBuild(t.Context(), "image"); err != nil {
			t.Fatal(err)
		}
		image, err := st.Image(t.Context(), "image")
		if err != nil || image.BuildRequested == nil || image.BuildRequested.Czxid <= before {
			t.Fatalf("after a request of %d: %+v, %v", before, image, err)
		}
		before = image.BuildRequested.Czxid
	}
}

func TestNodeLifeOnTheWire(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	n := &zkmodel.Node{Provider: "cloud", Type: zkmodel.Strings{"label"}, ConnectionPort: zkmodel.IntValue(22)}
	lock, err := st.CreateNode(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if n.ID != "0000000000" {
		t.Errorf("first id %q", n.ID)
	}
	n.State, n.StateTime = zkmodel.NodeBuilding, zkmodel.EpochOf(time.Now())
	if err := st.SaveNode(t.Context(), lock, n); err != nil {
		t.Fatal(err)
	}
	data, _, err := s.Get(t.Context(), n.Path())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), `{"state": "building", "state_time": `) || !strings.Contains(string(data), `"connection_port": 22, "ssh_port": 22`) {
		t.Errorf("record: %s", data)
	}
	if _, _, err := st.LockNode(t.Context(), n.ID, ""); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("lock a locked node: %v", err)
	}
	if err := st.DeleteNode(t.Context(), lock, n); err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Errorf("release a lock that went with its node: %v", err)
	}
	if _, _, err := st.LockNode(t.Context(), n.ID, ""); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("lock a deleted node: %v", err)
	}
	if nodes, err := st.Nodes(t.Context()); err != nil || len(nodes) != 0 {
		t.Errorf("left: %v, %v", nodes, err)
	}
}

func TestRequestsAreServedInOrder(t *testing.T) {
	_, s := connect(t)
	st := zkmodel.NewStore(s, nil)
	make := func(priority string, relative int) string {
		r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"label"}, RelativePriority: relative}
		if err := st.CreateRequest(t.Context(), priority, r); err != nil {
			t.Fatal(err)
		}
		return r.ID
	}
	low, normalLate, normal, high := make("300", 0), make("200", 1), make("200", 0), make("100", 9)
	list, err := st.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		got = append(got, r.ID)
	}
	if diff := cmp.Diff([]string{high, normal, normalLate, low}, got); diff != "" {
		t.Error(diff)
	}
	lock, r, err := st.LockRequest(t.Context(), high)
	if err != nil {
		t.Fatal(err)
	}
	r.State, r.StateTime = zkmodel.RequestPending, zkmodel.EpochOf(time.Now())
	if err := st.SaveRequest(t.Context(), lock, r); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), r.Path(), recipe.AnyVersion); err != nil { // Zuul cancels
		t.Fatal(err)
	}
	if err := st.SaveRequest(t.Context(), lock, r); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("save a cancelled request: %v", err)
	}
}
