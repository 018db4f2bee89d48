package zkmodel_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// storeTelling is a store on a root of its own, with or without a log of events.
func storeTelling(t *testing.T, log *recipe.Log) *zkmodel.Store {
	t.Helper()
	return storeTellingAt(t, zktest.Shared(t).Addr(), log)
}

// storeTellingAt is storeTelling by the server at an address.
func storeTellingAt(t *testing.T, addr string, log *recipe.Log) *zkmodel.Store {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: zktest.Root(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	client.SetLog(log)
	session, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return zkmodel.NewStore(session, nil)
}

// live lets two builds, their uploads, a request and a node live, of which one build fails.
func live(t *testing.T, store *zkmodel.Store) (stats map[string]int64) {
	t.Helper()
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stats = map[string]int64{}
	person := operate.New(store, "ann@desk")
	_, err := person.Pause(ctx, "debian", "", 0)
	check(err)
	check(person.Unpause(ctx, "debian"))
	check(person.Unpause(ctx, "debian")) // nothing to tell
	lock, err := store.LockBuilds(ctx, "debian")
	check(err)
	for _, end := range []zkmodel.BuildState{zkmodel.BuildFailed, zkmodel.BuildReady} {
		b := &zkmodel.Build{Image: "debian", Builder: "b1", Formats: zkmodel.Formats{"qcow2"}}
		check(store.CreateBuild(ctx, lock, b))
		stats["began "+b.Name()] = b.Stat.Czxid
		b.Log = "http://b1/log" // no state is told twice
		check(store.SaveBuild(ctx, lock, b))
		if end == zkmodel.BuildFailed {
			b.Reason = "no mirror"
		}
		check(zkmodel.Move(b, end, zkmodel.ByUs, 5))
		check(store.SaveBuild(ctx, lock, b))
		stats[string(end)+" "+b.Name()] = b.Stat.Mzxid
		check(store.SaveBuild(ctx, lock, b))
	}
	check(lock.Release(ctx))
	lock, err = store.LockUploads(ctx, "debian", "0000000002", "ovh")
	check(err)
	u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: "debian", Build: "0000000002", Provider: "ovh"}}
	check(store.CreateUpload(ctx, lock, u))
	check(zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, 5))
	check(store.SaveUpload(ctx, lock, u))
	check(lock.Release(ctx))
	check(person.DeleteUpload(ctx, u.UploadKey, operate.Deletion{}))
	lock, u, err = store.LockUpload(ctx, u.UploadKey)
	check(err)
	check(store.DropUpload(ctx, lock, u, "an operator wanted it"))
	check(person.DeleteBuild(ctx, "debian", "0000000002", operate.Deletion{}))
	check(store.DeleteBuild(ctx, "debian", "0000000002"))
	for _, kind := range []string{event.ProviderRefusing, "", event.ProviderAccepting} {
		check(store.ChangeRefusals(ctx, "ovh", func([]byte) ([]byte, zkmodel.Turn, error) {
			return []byte("{}"), zkmodel.Turn{Kind: kind, Reason: "quota"}, nil
		}))
	}
	r := &zkmodel.Request{NodeTypes: zkmodel.Strings{"small"}, Requestor: "zuul"}
	check(store.CreateRequest(ctx, "200", r))
	held, r, err := store.LockRequest(ctx, r.ID)
	check(err)
	check(zkmodel.Move(r, zkmodel.RequestPending, zkmodel.ByUs, 5))
	check(store.SaveRequest(ctx, held, r))
	check(zkmodel.Move(r, zkmodel.RequestFailed, zkmodel.ByUs, 6))
	r.Reason = "nobody has it"
	check(store.FinishRequest(ctx, []*recipe.Held{held}, r, nil))
	check(person.DeleteRequest(ctx, r.ID))
	n := &zkmodel.Node{Provider: "ovh"}
	lock, err = store.CreateNode(ctx, n)
	check(err)
	check(lock.Release(ctx))
	check(person.DeleteNode(ctx, n.ID))
	return stats
}

// Mistakes: a change that is not told, one told twice, or apart from the transaction that
// makes it; an event without reason or without who did it.
func TestChangesAreTold(t *testing.T) {
	log := recipe.NewLog(event.Root, "/poolkeeper/builder/b1")
	store := storeTelling(t, log)
	stats := live(t, store)
	reader := log.Read(store.Session(), recipe.LogPosition{})
	var got []string
	for {
		entry, ok, err := reader.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		e, err := event.Of(entry)
		if err != nil {
			t.Fatal(err)
		}
		if e.SpecVersion != "1.0" || e.Source != "/poolkeeper/builder/b1" || e.ID != entry.String() || e.Time.IsZero() {
			t.Errorf("event %+v", e)
		}
		got = append(got, strings.TrimPrefix(e.Type, "poolkeeper.")+" "+e.Subject)
		key := strings.TrimPrefix(e.Type, "poolkeeper.build.") + " " + strings.TrimPrefix(e.Subject, "build/")
		if zxid, known := stats[key]; known && zxid != entry.Zxid {
			t.Errorf("%s is of transaction %x, its event of %x", key, zxid, entry.Zxid)
		}
		switch e.Type {
		case event.BuildFailed:
			if e.Data["reason"] != "no mirror" || e.Data["builder"] != "b1" {
				t.Errorf("data %v", e.Data)
			}
		case event.BuildDeleting, event.UploadDeleting, event.NodeDeleting, event.RequestDeleted:
			if e.Data["by"] != "operator" {
				t.Errorf("%s says nothing of who did it: %v", e.Type, e.Data)
			}
		}
	}
	want := []string{
		"image.paused image/debian", "image.unpaused image/debian",
		"build.began build/debian-0000000001", "build.failed build/debian-0000000001",
		"build.began build/debian-0000000002", "build.ready build/debian-0000000002",
		"upload.ready upload/debian-0000000002/ovh/0000000001", "upload.deleting upload/debian-0000000002/ovh/0000000001",
		"upload.deleted upload/debian-0000000002/ovh/0000000001",
		"build.deleting build/debian-0000000002", "build.deleted build/debian-0000000002",
		"provider.refusing provider/ovh", "provider.accepting provider/ovh",
		"request.failed request/200-0000000000", "request.deleted request/200-0000000000", "node.deleting node/0000000000",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Mistakes: a site without `events:` that gets a node, a read or another number of a build
// for it.
func TestNothingIsToldWithoutEvents(t *testing.T) {
	tap := zktest.StartTap(t, zktest.Shared(t).Addr(), -1)
	store := storeTellingAt(t, tap.Addr(), nil)
	live(t, store)
	if n := tap.Naming(event.Root); n != 0 {
		t.Errorf("%d requests about events", n)
	}
	if _, there, err := store.Session().Exists(t.Context(), event.Root); there || err != nil {
		t.Errorf("%s is there: %v", event.Root, err)
	}
	if err := store.Tell(t.Context(), event.ProviderDown, "provider/ovh", nil); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]string{"/": "nodepool poolkeeper", "/poolkeeper": "pauses refusals"} { // who has paused an image, and what clouds refused, are there anyway
		names, err := store.Session().Children(t.Context(), path)
		slices.Sort(names)
		if err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s has %q: %v", path, names, err)
		}
	}
}

// Mistakes: a change that others prevented is told all the same.
func TestWhatIsNotWrittenIsNotTold(t *testing.T) {
	log := recipe.NewLog(event.Root, "us")
	store, ctx := storeTelling(t, log), t.Context()
	lock, err := store.LockBuilds(ctx, "debian")
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: "debian"}
	if err := store.CreateBuild(ctx, lock, b); err != nil {
		t.Fatal(err)
	}
	stale := *b
	if err := store.SaveBuild(ctx, lock, b); err != nil {
		t.Fatal(err)
	}
	if err := zkmodel.Move(&stale, zkmodel.BuildReady, zkmodel.ByUs, 5); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveBuild(ctx, lock, &stale); !errors.Is(err, recipe.ErrVersion) {
		t.Errorf("saved what has changed: %v", err)
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	if err := store.SaveBuild(ctx, lock, b); err == nil {
		t.Error("saved without the lock")
	}
	if end, err := log.End(ctx, store.Session()); err != nil || end.Number != 1 {
		t.Errorf("the log ends with %v: %v", end, err)
	}
}
