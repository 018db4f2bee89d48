package history

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// site is a tree with who writes into it.
type site struct {
	t      *testing.T
	root   string
	client *recipe.Client
	own    *recipe.Session
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, root: zktest.Root(t)}
	s.client = s.dial()
	session, err := s.client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.own = session
	return s
}

func (s *site) dial() *recipe.Client { return s.dialAt(zktest.Shared(s.t).Addr()) }

func (s *site) dialAt(addr string) *recipe.Client {
	s.t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: s.root, Timeout: 2 * time.Second})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	return client
}

// put writes a record as another program does; keys are pairs.
func (s *site) put(path, state string, keys ...any) {
	s.t.Helper()
	record := map[string]any{"state": state, "state_time": float64(time.Now().UnixNano()) / 1e9}
	for i := 0; i < len(keys); i += 2 {
		record[keys[i].(string)] = keys[i+1]
	}
	data, err := json.Marshal(record)
	if err == nil {
		err = s.own.EnsurePath(s.t.Context(), path)
	}
	if err == nil {
		_, err = s.own.Set(s.t.Context(), path, data, recipe.AnyVersion)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) drop(path string) {
	s.t.Helper()
	if err := s.own.Delete(s.t.Context(), path, recipe.AnyVersion); err != nil {
		s.t.Fatal(err)
	}
}

// record begins a daemon that records into a file; everything at once.
func (s *site) record(path string, nodes bool) (store *Store, stop func()) {
	s.t.Helper()
	return s.recordAt(s.dial(), path, nodes)
}

func (s *site) recordAt(client *recipe.Client, path string, nodes bool) (store *Store, stop func()) {
	s.t.Helper()
	parts := zkmodel.PartImages
	if nodes {
		parts |= zkmodel.PartNodes | zkmodel.PartRequests
	}
	tree := zkmodel.NewMirror(client, parts, hclog.NewNullLogger())
	store = New(path, DefaultLimits, hclog.NewNullLogger())
	r := NewRecorder(Deps{
		Client: client, Tree: tree, Nodes: nodes, Requests: nodes, Store: store,
		Logger: hclog.New(&hclog.LoggerOptions{Name: filepath.Base(path), Output: s.t.Output()}),
	})
	r.writeEvery, r.lookEvery, r.againAfter, r.shortest = time.Millisecond, time.Millisecond, 20*time.Millisecond, 0
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { _ = tree.Run(ctx) })
	group.Go(func() { r.Run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
		client.Close()
	})
	s.t.Cleanup(stop)
	return store, stop
}

// eventually waits until a file has these lines, one for each entry.
func (s *site) eventually(store *Store, want ...string) {
	s.t.Helper()
	slices.Sort(want)
	var got []string
	defer func() {
		if s.t.Failed() {
			s.t.Logf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}()
	zktest.Eventually(s.t, func() bool {
		a, err := store.Find(Query{Until: time.Now().Add(time.Hour), Limit: 1000})
		if err != nil {
			return false
		}
		got = nil
		for _, e := range a.Entries {
			line := []string{string(e.Kind), e.ID, string(e.Outcome)}
			for _, m := range e.Times {
				line = append(line, m.State)
			}
			if !e.Gone.IsZero() {
				line = append(line, "gone")
			}
			if e.Unsure {
				line = append(line, "unsure")
			}
			got = append(got, strings.Join(line, " "))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	}, "the history")
}

// Two daemons, one of which follows images alone, two images, two providers. Mistakes: an end that is not
// recorded, or as what it was not; what ended while nobody recorded that is lost, or taken for
// seen; a record of the same name that continues another; a gap that is not told; a secret that is kept.
func TestRecorder(t *testing.T) {
	s := newSite(t)
	dir := t.TempDir()
	s.put(zkmodel.BuildPath("a", "0000000001"), "ready", "builder", "b1")
	s.put(zkmodel.NodePath("0000000001"), "ready", "provider", "north", "type", []string{"small"}, "user_data", "SECRET")
	s.put(zkmodel.NodePath("0000000002"), "in-use", "provider", "south")
	launcher, stop := s.record(filepath.Join(dir, "launcher.db"), true)
	builder, _ := s.record(filepath.Join(dir, "builder.db"), false)
	images := []string{"build a-0000000001 succeeded ready"}
	s.eventually(launcher, images...)
	s.eventually(builder, images...)

	up := zkmodel.UploadKey{Image: "b", Build: "0000000007", Provider: "north", ID: "0000000001"}
	s.put(zkmodel.BuildPath("b", "0000000007"), "ready")
	s.put(up.Path(), "uploading", "builder", "b1")
	s.put(zkmodel.BuildPath("a", "0000000002"), "failed", "reason", "no space")
	images = append(images, "build b-0000000007 succeeded ready", "build a-0000000002 failed failed")
	s.eventually(builder, images...)
	for _, store := range []*Store{builder, launcher} {
		zktest.Eventually(t, func() bool { // else its first state may be seen by nobody
			live, _, err := store.Live()
			return err == nil && slices.ContainsFunc(live, func(e *Entry) bool { return e.Kind == Upload })
		}, "the upload that is under way")
	}
	s.put(up.Path(), "ready", "external_id", "x")
	images = append(images, "upload b-0000000007/north/0000000001 succeeded uploading ready")
	s.eventually(builder, images...)

	request := zkmodel.RequestPath("200-0000000001")
	s.put(request, "requested", "requestor", "zuul", "event_id", "e1", "node_types", []string{"small"})
	withdrawn := zkmodel.RequestPath("100-0000000002")
	s.put(withdrawn, "requested")
	s.eventually(launcher, images...)
	zktest.Eventually(t, func() bool { // both requests are known
		live, _, err := launcher.Live()
		return err == nil && len(live) == 8
	}, "the requests")
	s.put(request, "fulfilled", "requestor", "zuul", "event_id", "e1", "nodes", []string{"0000000001"})
	ends := append([]string{"request 200-0000000001 succeeded requested fulfilled"}, images...)
	s.eventually(launcher, ends...)
	s.drop(request)
	s.drop(withdrawn)
	s.put(zkmodel.NodePath("0000000001"), "deleting", "provider", "north", "type", []string{"small"}, "image_id", up.Path())
	zktest.Eventually(t, func() bool {
		live, _, err := launcher.Live()
		return err == nil && slices.ContainsFunc(live, func(e *Entry) bool { return e.Kind == Node && e.Image == "b" })
	}, "the node that is deleted")
	s.drop(zkmodel.NodePath("0000000001"))
	ends = append([]string{
		"request 200-0000000001 succeeded requested fulfilled gone", "request 100-0000000002 none requested gone",
		"node 0000000001 succeeded ready deleting gone",
	}, images...)
	s.eventually(launcher, ends...)
	stop()

	s.drop(zkmodel.NodePath("0000000002"))
	s.put(zkmodel.NodePath("0000000003"), "building", "provider", "south")
	s.drop(zkmodel.BuildPath("a", "0000000002"))
	s.put(zkmodel.BuildPath("a", "0000000002"), "ready") // in a tree that was made anew
	launcher, stop = s.record(filepath.Join(dir, "launcher.db"), true)
	ends = append(ends, "node 0000000002 succeeded in-use gone unsure", "build a-0000000002 failed failed gone unsure", "build a-0000000002 succeeded ready")
	ends = slices.DeleteFunc(ends, func(line string) bool { return line == "build a-0000000002 failed failed" })
	s.eventually(launcher, ends...)
	a, err := launcher.Find(Query{Until: time.Now().Add(time.Hour), Limit: 1000})
	if err != nil || len(a.Gaps) != 1 || a.Gaps[0].Why != "the daemon did not run" {
		t.Errorf("gaps %+v: %v", a.Gaps, err)
	}
	stop()
	for _, name := range []string{"launcher.db", "builder.db"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err != nil || strings.Contains(string(data), "SECRET") {
			t.Errorf("%s has what is secret: %v", name, err)
		}
	}
	if _, ok, err := s.own.Exists(t.Context(), "/poolkeeper"); err != nil || ok {
		t.Errorf("something was written to ZooKeeper: %v, %v", ok, err)
	}
}

// Mistakes: a daemon that forgets, or stops, as its file cannot be written; one that goes on
// without what was live when its file has shown itself to be damaged.
func TestRecorderOutlivesItsFile(t *testing.T) {
	s := newSite(t)
	path := filepath.Join(t.TempDir(), "folder", "history.db")
	if err := os.WriteFile(filepath.Dir(path), nil, 0o600); err != nil { // in the way of the folder
		t.Fatal(err)
	}
	store, stop := s.record(path, true)
	s.put(zkmodel.NodePath("0000000001"), "failed")
	s.put(zkmodel.NodePath("0000000002"), "building")
	zktest.Eventually(t, func() bool { _, err := store.Find(Query{}); return err != nil }, "no file")
	if err := os.Remove(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	zktest.Eventually(t, func() bool { live, _, err := store.Live(); return err == nil && len(live) == 2 }, "the file")
	if err := store.use(func(*bbolt.DB) error { panic("page 7: invalid page type") }); err == nil {
		t.Error("a panic is no error")
	}
	s.drop(zkmodel.NodePath("0000000001"))
	s.eventually(store, "node 0000000001 failed failed gone")
	if live, _, err := store.Live(); err != nil || len(live) != 1 {
		t.Errorf("%d are live in the new file: %v", len(live), err)
	}
	stop()
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Errorf("the damaged file is gone: %v", err)
	}
	s.drop(zkmodel.NodePath("0000000002"))
	store, _ = s.record(path, true)
	s.eventually(store, "node 0000000001 failed failed gone", "node 0000000002 none building gone unsure")
}

// Mistake: what ends while a daemon has no session is lost, or told as if it had been seen.
func TestRecorderOutlivesItsSession(t *testing.T) {
	s := newSite(t)
	for id, provider := range map[string]string{"0000000001": "north", "0000000002": "south"} {
		s.put(zkmodel.NodePath(id), "in-use", "provider", provider)
	}
	proxy := zktest.StartProxy(t, zktest.Shared(t).Addr())
	client := s.dialAt(proxy.Addr())
	store, _ := s.recordAt(client, filepath.Join(t.TempDir(), "history.db"), true)
	zktest.Eventually(t, func() bool { live, _, err := store.Live(); return err == nil && len(live) == 2 }, "the nodes")
	proxy.Cut()
	s.drop(zkmodel.NodePath("0000000001"))
	zktest.Eventually(t, func() bool { return !client.State().Alive }, "the end of the session")
	proxy.Heal()
	s.eventually(store, "node 0000000001 succeeded in-use gone unsure")
	a, err := store.Find(Query{Until: time.Now().Add(time.Hour)})
	if err != nil || len(a.Gaps) != 1 || a.Gaps[0].Why != "the daemon had no session with ZooKeeper" {
		t.Errorf("gaps %+v: %v", a.Gaps, err)
	}
}

// BenchmarkNodes is what 3,000 nodes that change all cost, without ZooKeeper: the file is written
// once a thousand changes.
func BenchmarkNodes(b *testing.B) {
	store := newStore(b, filepath.Join(b.TempDir(), "history.db"), DefaultLimits)
	r := NewRecorder(Deps{Store: store, Logger: hclog.NewNullLogger(), Nodes: true})
	states := []string{"building", "ready", "in-use", "deleting"}
	n := 0
	for b.Loop() {
		for i := range 3000 {
			data, _ := json.Marshal(map[string]any{"state": states[n%len(states)], "provider": "north", "type": []string{"small"}})
			r.seeNode(zkmodel.DecodeNode(fmt.Sprintf("%010d", i), data, recipe.Stat{Czxid: int64(i), Mzxid: int64(n)}))
			if len(r.pending) >= 1000 {
				r.write()
			}
		}
		n++
	}
}
