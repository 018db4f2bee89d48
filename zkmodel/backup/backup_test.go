package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/backup"
	"poolkeeper/zkmodel/recipe"
)

// open connects to a tree at an address of the shared server.
func open(t *testing.T, addr, root string) *zkmodel.Store {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: []string{addr}, Chroot: root, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s, err := client.Session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return zkmodel.NewStore(s, nil)
}

// captured is what a running Nodepool had in its tree while an image was being built, as its
// export-image-data writes it, with builds of ours of a third image and a request that is pending.
func captured(t *testing.T) backup.Data {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "nodepool.json"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := backup.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	d["/nodepool/images/image-000/request-build"] = ""
	for _, id := range []string{"0000000041", "0000000040"} {
		base := "/nodepool/images/ours/builds/" + id
		d[base] = `{"state": "ready", "state_time": 1.5, "unknown": "key"}`
		d[base+"/providers/fake-provider-0/images/0000000007"] = `{"state": "ready", "state_time": 2, "external_id": "a"}`
		d[base+"/providers/fake-provider-1/images/0000000003"] = `{"state": "failed", "state_time": 2}`
	}
	return d
}

// data reads a tree.
func data(t *testing.T, store *zkmodel.Store) backup.Data {
	t.Helper()
	d, unread, err := backup.Read(t.Context(), store.Session())
	if err != nil || len(unread) > 0 {
		t.Fatal(err, unread)
	}
	return d
}

// Mistakes: a text that is altered on its way, a flag that is lost, builds in another order, a
// number that comes again, a lock that stays, an import that writes a thing twice.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	store, want := open(t, addr, root), captured(t)
	look, err := backup.Restore(t.Context(), store, want, false)
	if err != nil || len(look.Missing) != len(want) || look.Same != 0 {
		t.Fatalf("restore: %v %+v", err, look)
	}
	if got := data(t, store); !maps.Equal(got, want) {
		t.Errorf("restored: %v", got)
	}
	file, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := backup.Parse(file); err != nil || !maps.Equal(again, want) {
		t.Errorf("of our own file: %v, %v", again, err)
	}
	for name, order := range map[string][]string{
		"image-000": {"c0ffd6e2dfb84895ab3732ce08473f97", "80c1ee8af6344616a54da56b618ca52e"},
		"ours":      {"0000000040", "0000000041"},
	} {
		i, err := store.Image(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, b := range i.Builds {
			ids = append(ids, b.ID)
		}
		if !slices.Equal(ids, order) || i.BuildsLocked {
			t.Errorf("%s: builds %v, want %v; locked: %t", name, ids, order, i.BuildsLocked)
		}
	}
	if i, err := store.Image(t.Context(), "image-001"); err != nil || !i.Paused {
		t.Errorf("the pause is lost: %v", err)
	}
	// kazoo, which Nodepool reads with, sees the records, and counts on behind them.
	k := zktest.StartKazoo(t, addr, root, `
import json
def walk(path):
    text = zk.get(path)[0].decode()
    name = path.split('/')[-1]
    if text or name in ('pause', 'request-build'):
        found[path] = text
    for child in zk.get_children(path):
        if child != 'lock':
            walk(path + '/' + child)
found = {}
walk('/nodepool/images')
say(json.dumps(found))
base = '/nodepool/images/ours/builds/'
say(zk.create(base, b'x', sequence=True) > base + '0000000041', zk.create(base + '0000000041/providers/fake-provider-0/images/', b'x', sequence=True)[-10:])
`)
	seen := backup.Data{}
	if err := json.Unmarshal([]byte(k.Hear()), &seen); err != nil || !maps.Equal(seen, want) {
		t.Errorf("kazoo sees %v, %v", seen, err)
	}
	k.Expect("True 0000000009") // 8 and the one that was made by its name
}

// asNodepool imports as Nodepool does: numbers of uploads are counted up to the highest, and
// each path is set or created.
const asNodepool = `
import json, collections
records, highest = json.loads(hear()), collections.Counter()
for path in records:
    if '/providers/' in path:
        folder, number = path.rsplit('/', 1)
        highest[folder] = max(highest[folder], int(number))
for folder, number in highest.items():
    made = ''
    while made[-10:] < '%010d' % number:
        made = zk.create(folder + '/', sequence=True, makepath=True)
        zk.delete(made)
for path, text in records.items():
    if zk.exists(path):
        zk.set(path, text.encode())
    else:
        zk.create(path, text.encode(), makepath=True)
say('done')
`

// Nodepool's import takes a file of ours, flags included; what it has written compares as the
// same, so that ours finds nothing to do.
func TestNodepoolImportsOurs(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	store, want := open(t, addr, root), captured(t)
	line, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	k := zktest.StartKazoo(t, addr, root, asNodepool)
	k.Say(string(line))
	k.Expect("done")
	if got := data(t, store); !maps.Equal(got, want) {
		t.Errorf("Nodepool made %v", got)
	}
	look, err := backup.Restore(t.Context(), store, want, false)
	if err != nil || len(look.Missing) != 0 || look.Same != len(want) {
		t.Errorf("ours after that: %v %+v", err, look)
	}
}

// Mistakes: records that are written over, or beside a daemon, without a word; an old build
// that becomes the newest since it is made again; a lock or folder in a tree that was refused.
func TestInTheWay(t *testing.T) {
	t.Parallel()
	store, want := open(t, zktest.Shared(t).Addr(), zktest.Root(t)), captured(t)
	ctx, s := t.Context(), store.Session()
	refused := func(word string) *backup.Look {
		t.Helper()
		look, err := backup.Restore(ctx, store, want, false)
		if !errors.Is(err, backup.ErrInTheWay) || !strings.Contains(err.Error(), word) {
			t.Errorf("want %q to be told, got %v", word, err)
		}
		return look
	}
	put := func(at, text string) {
		t.Helper()
		if err := s.EnsurePath(ctx, path.Dir(at)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(ctx, at, []byte(text), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
	}
	put("/nodepool/components/builder/b0000000000", `{"hostname": "b1", "kind": "builder"}`)
	refused("the builder on b1 runs")
	if _, there, _ := s.Exists(ctx, zkmodel.ImagesRoot+"/ours"); there {
		t.Error("a refused import has written")
	}
	put("/nodepool/images/ours/builds/0000000042", `{"state": "ready", "state_time": 9}`)
	put("/nodepool/images/image-001/pause", "otherwise")
	refused("1 records of images that the file does not have, as /nodepool/images/ours/builds/0000000042")
	refused("1 records otherwise than the file, as /nodepool/images/image-001/pause")
	look, err := backup.Restore(ctx, store, want, true)
	if err != nil || len(look.Left) != 2 || !strings.Contains(errors.Join(look.Left...).Error(), "image ours has build 0000000042 already") {
		t.Fatalf("anyway: %v %+v", err, look)
	}
	got := data(t, store)
	if got["/nodepool/images/image-001/pause"] != "otherwise" || got["/nodepool/images/ours/builds/0000000041"] != "" {
		t.Error("what was there is written over, or an old build is the newest")
	}
	if n := got.Counts(); n.Images != 3 || n.Builds != 4 || n.Uploads != 4 || n.Pauses != 1 || n.Requests != 1 {
		t.Errorf("there are %s", n)
	}
	lock, err := store.LockBuilds(ctx, "image-000")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(ctx, "/nodepool/images/image-000/request-build", recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(ctx, store, want, true); !errors.Is(err, recipe.ErrLocked) {
		t.Errorf("while an image is being built: %v", err)
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
}

// An import that is cut off after any request is brought to its end by the next (one without
// a cut takes 79). Mistakes: a half-written tree that is refused as in use; a build that came
// back without its uploads.
func TestKilledAfterAnyRequest(t *testing.T) {
	t.Parallel()
	for _, requests := range []int{30, 45, 55, 65, 75} {
		t.Run(strconv.Itoa(requests), func(t *testing.T) {
			t.Parallel()
			addr, root, want := zktest.Shared(t).Addr(), zktest.Root(t), captured(t)
			store := open(t, addr, root)
			cutOff(t, zktest.StartTap(t, addr, requests), root, want)
			images, err := store.Images(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range images {
				for _, b := range i.Builds {
					if b.State == zkmodel.BuildReady && len(b.Uploads) != 2 {
						t.Errorf("build %s has %d uploads", b.Name(), len(b.Uploads))
					}
				}
			}
			zktest.Eventually(t, func() bool {
				_, err = backup.Restore(t.Context(), store, want, false)
				return !errors.Is(err, recipe.ErrLocked)
			}, "the locks of the killed import are free")
			if got := data(t, store); err != nil || !maps.Equal(got, want) {
				t.Fatalf("then again: %v: %v", err, got)
			}
		})
	}
}

// cutOff begins an import over a tap, until that ends.
func cutOff(t *testing.T, tap *zktest.Tap, root string, d backup.Data) {
	t.Helper()
	cut(t, tap, root, func(ctx context.Context, store *zkmodel.Store) { _, _ = backup.Restore(ctx, store, d, false) })
}

// cut begins something over a tap, until that ends.
func cut(t *testing.T, tap *zktest.Tap, root string, do func(context.Context, *zkmodel.Store)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client, err := recipe.Dial(recipe.Config{Servers: []string{tap.Addr()}, Chroot: root, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if s, err := client.Session(ctx); err == nil {
			do(ctx, zkmodel.NewStore(s, nil))
		}
	}()
	zktest.Eventually(t, func() bool {
		select {
		case <-ended:
			return true
		default:
			return tap.Ended()
		}
	}, "the import is cut off")
	cancel()
	<-ended
}

// Mistakes: a path that leads out of the images, half of a file that is taken, an error
// that does not say where.
func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{\n \"/nodepool/images/a/pause\": \"\",\n no": "line 3",
		"{\n \"/nodepool/images/a/pause\": 5}":         "line 2",
		`[]`:                                           "line 1",
		`null`:                                         "null",
		`{"/nodepool/nodes/1": ""}`:                    `"/nodepool/nodes/1" is not the path`,
		`{"/nodepool/images/../x/pause": ""}`:          `not the path`,
		`{"/nodepool/images/a/builds/lock": ""}`:       `"lock"`,
		`{"/nodepool/images/a/builds/1/providers/p/images/1": "x"}`:               "does not have the build",
		`{"/nodepool/images/a/builds/1": "` + strings.Repeat("x", 600<<10) + `"}`: "more than a record may have",
	} {
		if _, err := backup.Parse([]byte(text)); !errors.Is(err, backup.ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
}

// Mistakes: a backup that lacks something and does not say so; the leftover of a deleted
// build that comes back as a build.
func TestReadTellsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	store := open(t, addr, root)
	if _, err := backup.Restore(t.Context(), store, captured(t), false); err != nil {
		t.Fatal(err)
	}
	s, bad := store.Session(), "/nodepool/images/ours/builds/0000000041"
	if err := s.EnsurePath(t.Context(), "/nodepool/images/ours/builds/0000000043/lock"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), bad, []byte("\xff"), recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
	d, unread, err := backup.Read(t.Context(), s)
	if err != nil || len(unread) != 1 || !strings.Contains(unread[0].Error(), bad+" cannot be read: it is no text") {
		t.Errorf("unread %v, %v", unread, err)
	}
	if n := d.Counts(); n.Builds != 4 || n.Uploads != 6 {
		t.Errorf("there are %s", n)
	}
}
