package operate_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) {
	zktest.Parallel("16") // they wait for locks of the killed
	m.Run()
}

// images are those of the tests' site.
var images = []string{"debian", "fedora", "suse"}

// places are its providers.
var places = []string{"north", "south"}

// fleet makes builds of three images, each uploaded to two providers.
func fleet(t *testing.T, store *zkmodel.Store, builds int) {
	t.Helper()
	for _, image := range images {
		if err := store.Session().EnsurePath(t.Context(), zkmodel.BuildsPath(image)); err != nil {
			t.Fatal(err)
		}
		for range builds {
			made(t, store, image, places...)
		}
	}
}

// made makes a ready build with ready uploads.
func made(t *testing.T, store *zkmodel.Store, image string, at ...string) {
	t.Helper()
	ctx := t.Context()
	lock, err := store.LockBuilds(ctx, image)
	if err != nil {
		t.Fatal(err)
	}
	b := &zkmodel.Build{Image: image, Formats: zkmodel.Formats{"qcow2"}}
	err = store.CreateBuild(ctx, lock, b)
	if err == nil {
		err = zkmodel.Move(b, zkmodel.BuildReady, zkmodel.ByUs, 1)
	}
	if err = errors.Join(err, store.SaveBuild(ctx, lock, b), lock.Release(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, p := range at {
		lock, err := store.LockUploads(ctx, image, b.ID, p)
		if err != nil {
			t.Fatal(err)
		}
		u := &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Image: image, Build: b.ID, Provider: p}}
		err = store.CreateUpload(ctx, lock, u)
		if err == nil {
			u.ExternalID = zkmodel.TextValue("id-" + image + b.ID)
			err = zkmodel.Move(u, zkmodel.UploadReady, zkmodel.ByUs, zkmodel.EpochOf(time.Now()))
		}
		if err = errors.Join(err, store.SaveUpload(ctx, lock, u), lock.Release(ctx)); err != nil {
			t.Fatal(err)
		}
	}
}

// picture is all that the tree says of the site's images: who serves, and what is said.
func picture(t *testing.T, store *zkmodel.Store) string {
	t.Helper()
	var text strings.Builder
	for _, name := range images {
		i, err := store.Image(context.WithoutCancel(t.Context()), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range places {
			fmt.Fprintf(&text, "%s@%s:", name, p)
			if u := i.Serving(p, zkmodel.Suspect); u != nil {
				fmt.Fprintf(&text, " serves %s", strings.TrimLeft(u.Build, "0"))
			}
			if pin := i.Pin(p); pin != nil {
				fmt.Fprintf(&text, " pinned %s", strings.TrimLeft(pin.Build, "0"))
			}
			for _, b := range i.Builds {
				if v := i.Verdict(b.Build, p); v != nil {
					fmt.Fprintf(&text, " %s %s", v.Kind, strings.TrimLeft(b.ID, "0"))
				}
				for _, u := range b.Uploads {
					if u.Provider == p && (u.State != zkmodel.UploadReady || u.Suspect != "") {
						fmt.Fprintf(&text, " upload %s %s suspect=%t", strings.TrimLeft(b.ID, "0"), u.State, u.Suspect != "")
					}
				}
			}
			text.WriteString("\n")
		}
	}
	return text.String()
}

// looks compares the picture of one image with lines.
func looks(t *testing.T, store *zkmodel.Store, lines ...string) {
	t.Helper()
	for _, image := range images[1:] {
		for _, p := range places {
			lines = append(lines, image+"@"+p+": serves 3")
		}
	}
	if got, want := picture(t, store), strings.Join(lines, "\n")+"\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func rollback(change func(*operate.Judgement)) operate.Judgement {
	j := operate.Judgement{Image: "debian", Kind: zkmodel.RolledBack, Reason: "no network"}
	if change != nil {
		change(&j)
	}
	return j
}

// Mistakes: another image or provider is rolled back, too; a second command takes the image
// back by another build although it names the bad one; a build that serves nowhere else is
// taken away; a pin that the next rollback breaks; what was said cannot be taken back; a
// folder that is there before anybody said anything.
func TestRollback(t *testing.T) {
	o, store := setup(t)
	fleet(t, store, 3)
	ctx := t.Context()
	if _, there, err := store.Session().Exists(ctx, zkmodel.VerdictsRoot); err != nil || there {
		t.Fatalf("%s is there before any verdict (%v)", zkmodel.VerdictsRoot, err)
	}
	all, err := o.Judge(ctx, rollback(nil))
	if err != nil || len(all) != 2 || all[0].Build != "0000000003" || all[0].Serves.Build != "0000000002" || all[1].Provider != "south" {
		t.Fatalf("%+v: %v", all, err)
	}
	looks(t, store,
		"debian@north: serves 2 rolled-back 3 upload 3 ready suspect=true",
		"debian@south: serves 2 rolled-back 3 upload 3 ready suspect=true")
	i, err := store.Image(ctx, "debian")
	if err != nil {
		t.Fatal(err)
	}
	bad := i.Build("0000000003")
	v := i.Verdict(bad.Build, "north")
	if v.Upload != bad.Uploads[0].Path() || v.UploadCzxid != bad.Uploads[0].Stat.Czxid || v.BuildCzxid != bad.Stat.Czxid ||
		v.Text() != "rolled back by "+who+": no network" || bad.Uploads[0].Suspect != v.Text() {
		t.Errorf("%+v", v)
	}
	before := picture(t, store)
	if again, err := o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Build = "0000000003" })); err != nil || again[0].Before == nil {
		t.Errorf("again: %+v %v", again, err)
	}
	if got := picture(t, store); got != before {
		t.Errorf("said again, it changes\n%s", got)
	}
	// By another build in one provider, pinned.
	if _, err := o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Providers, j.Pin = places[:1], true })); err != nil {
		t.Fatal(err)
	}
	made(t, store, "debian", places...)
	looks(t, store,
		"debian@north: serves 1 pinned 1 rolled-back 2 upload 2 ready suspect=true rolled-back 3 upload 3 ready suspect=true",
		"debian@south: serves 4 rolled-back 3 upload 3 ready suspect=true")
	before = picture(t, store)
	for what, try := range map[string]func() error{
		"roll back what is pinned": func() error {
			_, err := o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Providers = places[:1] }))
			return err
		},
		"delete what is pinned": func() error { return o.DeleteBuild(ctx, "debian", "0000000001", operate.Deletion{Pause: true}) },
		"delete its upload": func() error {
			return o.DeleteUpload(ctx, i.Build("0000000001").Uploads[0].UploadKey, operate.Deletion{})
		},
		"pin another": func() error {
			_, err := o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Build, j.Pin = "0000000004", true }))
			return err
		},
	} {
		if err := try(); !errors.Is(err, operate.ErrPinned) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if got := picture(t, store); got != before {
		t.Errorf("refused, it changes\n%s", got)
	}
	if off, err := o.Release(ctx, "debian", nil); err != nil || len(off) != 1 || off[0].Provider != "north" {
		t.Errorf("released %+v: %v", off, err)
	}
	if _, err := o.Release(ctx, "debian", nil); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("released twice: %v", err)
	}
	for _, id := range []string{"0000000002", "0000000003"} {
		if _, err := o.Promote(ctx, "debian", id, nil); err != nil {
			t.Error(err)
		}
	}
	looks(t, store, "debian@north: serves 4", "debian@south: serves 4")
	if _, there, err := store.Session().Exists(ctx, zkmodel.VerdictsPath("debian")); err != nil || there {
		t.Errorf("an empty record stays (%v)", err)
	}
	if _, err := o.Promote(ctx, "debian", "0000000003", nil); !errors.Is(err, zkmodel.ErrNotFound) {
		t.Errorf("promote what nobody rejected: %v", err)
	}
}

// Mistakes: the only build is taken away, or half of what is asked for is done where the
// other half cannot be; a build that is not everywhere is rolled back only where it is, and
// sent to the others later.
func TestRollbackWithNothingElse(t *testing.T) {
	o, store := setup(t)
	fleet(t, store, 3)
	ctx := t.Context()
	before := picture(t, store)
	for what, j := range map[string]operate.Judgement{
		"no image":    {Image: "mint", Kind: zkmodel.RolledBack},
		"no build":    {Image: "debian", Build: "0000000009", Kind: zkmodel.Rejected},
		"no provider": {Image: "debian", Providers: []string{"west"}, Kind: zkmodel.RolledBack},
	} {
		if _, err := o.Judge(ctx, j); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	if got := picture(t, store); got != before {
		t.Errorf("refused, it changes\n%s", got)
	}
	made(t, store, "debian", "north")
	all, err := o.Judge(ctx, rollback(nil))
	if err != nil || len(all[1].Uploads) != 0 || all[1].Serves.Build != "0000000003" {
		t.Errorf("%+v %v", all, err)
	}
	looks(t, store, "debian@north: serves 3 rolled-back 4 upload 4 ready suspect=true", "debian@south: serves 3 rolled-back 4")
	for range 2 {
		if _, err := o.Judge(ctx, rollback(nil)); err != nil {
			t.Fatal(err)
		}
	}
	before = picture(t, store)
	if _, err := o.Judge(ctx, rollback(nil)); !errors.Is(err, operate.ErrNothingElse) || !strings.Contains(err.Error(), "debian-0000000001 serves in provider north") {
		t.Errorf("the last build: %v", err)
	}
	if got := picture(t, store); got != before {
		t.Errorf("refused, it changes\n%s", got)
	}
}

// Mistakes: a bad build is deleted without an operator's word, or not with it; nobody is
// told of launchers that go on with it, or is told of those that do not.
func TestRollbackBesideOthers(t *testing.T) {
	o, store := setup(t)
	fleet(t, store, 3)
	ctx := t.Context()
	register := func(kind, host, provider string, knows ...string) {
		data, err := (&zkmodel.Component{Hostname: host, Kind: kind, ProviderName: provider, PoolName: "main", Knows: knows}).Encode()
		if err == nil {
			err = store.Session().EnsurePath(ctx, zkmodel.ComponentsRoot+"/"+kind)
		}
		if err == nil {
			_, err = store.Session().Create(ctx, zkmodel.ComponentsRoot+"/"+kind+"/"+host, data, recipe.Ephemeral)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	register(zkmodel.KindPool, "ours", "north", zkmodel.KnowsVerdicts)
	register(zkmodel.KindPool, "theirs", "south")
	register(zkmodel.KindBuilder, "ours", "", zkmodel.KnowsVerdicts)
	register(zkmodel.KindBuilder, "theirs", "")
	all, err := o.Judge(ctx, rollback(nil))
	if err != nil || len(all[0].Deaf) != 0 || len(all[1].Deaf) != 1 || all[1].Deaf[0].Hostname != "theirs" {
		t.Fatalf("%+v %v", all, err)
	}
	if deaf, err := o.DeafBuilders(ctx); err != nil || len(deaf) != 1 || deaf[0].Hostname != "theirs" {
		t.Errorf("%+v %v", deaf, err)
	}
	all, err = o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Build, j.Delete = "0000000003", true }))
	if err != nil || len(all[1].Deaf) != 0 {
		t.Errorf("%+v %v", all, err)
	}
	looks(t, store,
		"debian@north: serves 2 rolled-back 3 upload 3 deleting suspect=true",
		"debian@south: serves 2 rolled-back 3 upload 3 deleting suspect=true")
	// Pinned, the other launcher goes on with the newest that is ready.
	if all, err = o.Judge(ctx, rollback(func(j *operate.Judgement) { j.Pin, j.Delete = true, true })); err != nil || len(all[1].Deaf) != 0 {
		t.Errorf("%+v %v", all, err)
	}
	made(t, store, "debian", "south")
	i, err := store.Image(ctx, "debian")
	if err != nil || i.Unheeded("south") == nil || i.Unheeded("north") != nil {
		t.Errorf("%+v %v", i.Unheeded("south"), err)
	}
}

// An operator's command that is killed, at whatever request of it, has done all or
// nothing; said again, with the build's name, it is done. Mistakes: a verdict without its
// mark, one provider without the other, a lock that stays, a second command that goes
// back by one build more.
func TestRollbackKilledAtEveryRequest(t *testing.T) {
	const atOnce = 16
	var whole atomic.Int32 // the first number of requests that was enough
	for first := 1; whole.Load() == 0 && !t.Failed(); first += atOnce {
		t.Run(fmt.Sprintf("from %d", first), func(t *testing.T) {
			for requests := first; requests < first+atOnce; requests++ {
				t.Run(strconv.Itoa(requests), func(t *testing.T) {
					t.Parallel()
					if rollbackKilledAfter(t, requests) {
						whole.CompareAndSwap(0, int32(requests))
					}
				})
			}
		})
	}
	t.Logf("a rollback takes at most %d requests", whole.Load())
}

// rollbackKilledAfter kills a rollback after some requests, and says it again. It reports
// whether the first one had come to its end before.
func rollbackKilledAfter(t *testing.T, requests int) (done bool) {
	t.Helper()
	root, addr := zktest.Root(t), zktest.Shared(t).Addr()
	dial := func(at string, timeout time.Duration) *recipe.Client {
		client, err := recipe.Dial(recipe.Config{Servers: []string{at}, Chroot: root, Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return client
	}
	session, err := dial(addr, 30*time.Second).Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := zkmodel.NewStore(session, nil)
	fleet(t, store, 1)
	made(t, store, "debian", places...)
	before := picture(t, store)
	tap := zktest.StartTap(t, addr, requests)
	done = killed(t, dial(tap.Addr(), 2*time.Second), tap) // its locks go soon; we see it on a busy machine, too
	after := picture(t, store)
	want := "debian@north: serves 1 pinned 1 rolled-back 2 upload 2 ready suspect=true\n" +
		"debian@south: serves 1 pinned 1 rolled-back 2 upload 2 ready suspect=true\n"
	if after != before && !strings.HasPrefix(after, want) {
		t.Fatalf("killed after %d requests it left\n%s", requests, after)
	}
	zktest.Eventually(t, func() bool {
		_, err = operate.New(store, who).Judge(t.Context(), rollback(func(j *operate.Judgement) { j.Build, j.Pin = "0000000002", after == before }))
		return !errors.Is(err, zkmodel.ErrBusy)
	}, "the locks of the killed command are free")
	if err != nil {
		t.Fatal(err)
	}
	if got := picture(t, store); !strings.HasPrefix(got, want) {
		t.Fatalf("killed after %d requests, then said again:\n%s", requests, got)
	}
	return done
}

// killed runs a rollback over a tap, and reports whether it came to its end before the tap
// ended.
func killed(t *testing.T, client *recipe.Client, tap *zktest.Tap) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		session, err := client.Session(ctx)
		if err == nil {
			_, err = operate.New(zkmodel.NewStore(session, nil), who).Judge(ctx, rollback(func(j *operate.Judgement) { j.Pin = true }))
		}
		ended <- err
	}()
	var err error
	zktest.Eventually(t, func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return tap.Ended()
		}
	}, "the command ends, or is killed")
	done := err == nil && !tap.Ended()
	if tap.Ended() { // dead is dead
		cancel()
		client.Close()
	}
	return done
}
