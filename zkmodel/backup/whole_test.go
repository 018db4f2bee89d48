package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/backup"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// town is a tree with two images in two providers, and all that people have said.
func town(t *testing.T, store *zkmodel.Store) {
	t.Helper()
	ctx, s := t.Context(), store.Session()
	put := func(at, text string) recipe.Stat {
		t.Helper()
		err := s.EnsurePath(ctx, path.Dir(at))
		if err == nil {
			_, err = s.Create(ctx, at, []byte(text), recipe.Persistent)
		}
		stat, _, there := s.Exists(ctx, at)
		if err := errors.Join(err, there); err != nil {
			t.Fatal(err)
		}
		return stat
	}
	d := builtImages()
	if _, err := backup.Restore(ctx, store, d, false); err != nil {
		t.Fatal(err)
	}
	// Numbers were given whose records are gone.
	for range 3 {
		made, err := s.Create(ctx, "/nodepool/images/debian/builds/", nil, recipe.Sequential)
		if err == nil {
			err = s.Delete(ctx, made, recipe.AnyVersion)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []string{"gone", "no image"} {
		at := "/nodepool/images/" + image + "/builds/0000000006"
		put(at, "")
		_ = s.Delete(ctx, at, recipe.AnyVersion)
	}
	write := func(ops ...recipe.Op) error { _, err := s.Multi(ctx, ops...); return err }
	until := zkmodel.EpochOf(time.Now().Add(time.Hour))
	put("/poolkeeper/waves/schedules/weekly", `{"last": "2026-11-01T00:00:00Z"}`)
	for subject, at := range map[string]string{"image/debian": "/nodepool/images/debian/pause", "waves": wave.HoldPath} {
		if err := zkmodel.PauseFlag(ctx, s, subject, at, []byte("held"), zkmodel.Pause{By: "anna@host", Reason: "mirror " + subject, Since: 5, Until: until}, write); err != nil {
			t.Fatal(err)
		}
	}
	put("/nodepool/images/fedora/pause", "") // nobody has said who
	build, err1 := stat(ctx, s, "/nodepool/images/debian/builds/0000000004")
	upload, err2 := stat(ctx, s, "/nodepool/images/debian/builds/0000000004/providers/north/images/0000000001")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	put("/poolkeeper/verdicts/debian", fmt.Sprintf(`{"verdicts": [{"verdict": "rejected", "provider": "north", "build": "0000000004", "build_czxid": %d, `+
		`"upload": "/nodepool/images/debian/builds/0000000004/providers/north/images/0000000001", "upload_czxid": %d, "by": "anna", "time": 7, "later": "key"},`+
		`{"verdict": "rejected", "provider": "north", "build": "0000000002", "build_czxid": 12345678901, "by": "anna", "time": 6}]}`, build.Czxid, upload.Czxid))
	put("/poolkeeper/canaries/south/debian", fmt.Sprintf(`{"promoted": {"build": "0000000004", "build_czxid": %d}}`, build.Czxid))
	put("/poolkeeper/site", "site-of-the-town")
	put("/poolkeeper/paused-providers/north", `{"by": "anna", "since": 1, "until": 99999999999}`)
	put("/poolkeeper/fleet/blobs/b1/0000", "\x1f\x8b\x00\xff")
	put("/poolkeeper/fleet/versions/0000000001", `{"number": 1, "blob": "b1"}`)
	put("/poolkeeper/fleet/current", `{"number": 1, "blob": "b1"}`)
	put("/poolkeeper/sources/repo", `{"digest": "d"}`)
	put("/poolkeeper/sources/lock/x", "")
	put("/poolkeeper/hooks/seen/forge/1", `{"wave": "w1"}`)
	for _, at := range []string{"requests/w1", "params/w1", "status/w1", "states/w1/completed/0-debian", "jobs/w1/debian", "result-data/w1/0000", "results/w1", "requests/w2", "params/w2"} {
		put("/poolkeeper/waves/"+at, strings.TrimPrefix(at, "states/w1/completed/0-debian"))
	}
	put("/poolkeeper/elections/tidy/members", "") // is not kept
	if _, err := s.Create(ctx, "/poolkeeper/sources/session", nil, recipe.Ephemeral); err != nil {
		t.Fatal(err)
	}
}

func stat(ctx context.Context, s *recipe.Session, at string) (recipe.Stat, error) {
	st, there, err := s.Exists(ctx, at)
	if err == nil && !there {
		err = fmt.Errorf("no %s", at)
	}
	return st, err
}

// whole reads a tree, over the file.
func whole(t *testing.T, store *zkmodel.Store) *backup.Whole {
	t.Helper()
	w, err := backup.ReadWhole(t.Context(), store.Session())
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := backup.ParseWhole(text)
	if err != nil || !reflect.DeepEqual(again, w) {
		t.Fatalf("of the file: %v\n%+v\n%+v", err, again, w)
	}
	return again
}

// what a backup has, but for the transactions and versions, which are those of its tree.
func what(w *backup.Whole) map[string]string {
	all := map[string]string{}
	for _, r := range w.Records {
		text := fmt.Sprintf("%q", r.Bytes)
		if r.Text != nil {
			text = *r.Text
		}
		if strings.Contains(text, "czxid") || strings.HasSuffix(r.Path, "/pauses") {
			continue
		}
		all[r.Path] = text
	}
	return all
}

// restored holds that a tree is the one of the backup.
func restored(t *testing.T, store *zkmodel.Store, want *backup.Whole) {
	t.Helper()
	ctx, s := t.Context(), store.Session()
	got := whole(t, store)
	got.UnderWay = want.UnderWay
	if a, b := what(got), what(want); !reflect.DeepEqual(a, b) {
		t.Errorf("restored\n%v\nwant\n%v", a, b)
	}
	// What is known by its making is known again; numbers go on.
	for _, r := range want.Records {
		if r.Next == 0 {
			continue
		}
		if now, err := stat(ctx, s, r.Path); err != nil || recipe.SequentialName(now) < fmt.Sprintf("%010d", r.Next) {
			t.Errorf("%s goes on with %s, want %d: %v", r.Path, recipe.SequentialName(now), r.Next, err)
		}
	}
	image, err := store.Image(ctx, "debian")
	if err != nil || image.PausedBy == nil || image.PausedBy.Reason != "mirror image/debian" || image.PausedBy.Ends().IsZero() {
		t.Errorf("the pause of debian: %+v, %v", image.PausedBy, err)
	}
	if fedora, err := store.Image(ctx, "fedora"); err != nil || !fedora.Paused || fedora.PausedBy != nil {
		t.Errorf("the pause of fedora, of which nobody has said who: %+v, %v", fedora.PausedBy, err)
	}
	build, err := stat(ctx, s, "/nodepool/images/debian/builds/0000000004")
	if err != nil {
		t.Fatal(err)
	}
	for at, count := range map[string]int{"/poolkeeper/verdicts/debian": 1, "/poolkeeper/canaries/south/debian": 1} {
		text, _, err := s.Get(ctx, at)
		if n := strings.Count(string(text), fmt.Sprintf(`"build_czxid":%d`, build.Czxid)); err != nil || n != count || !json.Valid(text) {
			t.Errorf("%s names build %d %d times: %s, %v", at, build.Czxid, n, text, err)
		}
	}
	if text, _, _ := s.Get(ctx, "/poolkeeper/verdicts/debian"); !strings.Contains(string(text), `"build_czxid":12345678901`) || !strings.Contains(string(text), `"later":"key"`) {
		t.Errorf("of what is gone: %s", text)
	}
	if image.Verdict(image.Builds[1].Build, "north") == nil || image.Verdict(image.Builds[1].Build, "south") != nil {
		t.Error("the verdict has no effect, or another one")
	}
}

// Mistakes: a verdict or canary that knows its build no more; a pause that has lost its end, or
// tells of a flag that others made; a number that comes again; a wave that goes on with builds
// that never were; what lives with a session in the file.
func TestWholeRoundTrip(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr()
	old, fresh := open(t, addr, zktest.Root(t)), open(t, addr, zktest.Root(t))
	town(t, old)
	want := whole(t, old)
	if !slices.Equal(want.UnderWay, []string{"w2"}) {
		t.Errorf("under way: %v", want.UnderWay)
	}
	for _, r := range want.Records {
		if strings.Contains(r.Path, "w2") || strings.Contains(r.Path, "lock") || strings.Contains(r.Path, "session") || strings.Contains(r.Path, "elections") {
			t.Errorf("the file has %s", r.Path)
		}
	}
	b, err := backup.RestoreWhole(t.Context(), fresh, want, false)
	if err != nil || len(b.Missing) == 0 || b.Same > 0 {
		t.Fatalf("restore: %v", err)
	}
	restored(t, fresh, want)
	again, err := backup.RestoreWhole(t.Context(), fresh, want, false)
	if err != nil || len(again.Missing) > 0 || len(again.Images.Missing) > 0 {
		t.Errorf("then again: %+v, %v", again, err)
	}
	// The old tree has what the file has.
	if same, err := backup.CompareWhole(t.Context(), old, want); err != nil || same.InTheWay() != nil || len(same.Missing) > 0 {
		t.Errorf("the tree of the file: %+v, %v", same, err)
	}
}

// A restore that is cut off after any request is brought to its end by the next.
func TestWholeKilledAfterAnyRequest(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr()
	old := open(t, addr, zktest.Root(t))
	town(t, old)
	want := whole(t, old)
	for _, requests := range []int{60, 150, 240, 330} {
		root := zktest.Root(t)
		t.Run(fmt.Sprint(requests), func(t *testing.T) {
			t.Parallel()
			tap := zktest.StartTap(t, addr, requests)
			cut(t, tap, root, func(ctx context.Context, store *zkmodel.Store) { _, _ = backup.RestoreWhole(ctx, store, want, false) })
			store := open(t, addr, root)
			var err error
			zktest.Eventually(t, func() bool {
				_, err = backup.RestoreWhole(t.Context(), store, want, false)
				return !errors.Is(err, recipe.ErrLocked)
			}, "the locks of the killed restore are free")
			if err != nil {
				t.Fatal(err)
			}
			restored(t, store, want)
		})
	}
}

// Mistakes: a tree in use that is written over; a refused restore that has written.
func TestWholeInTheWay(t *testing.T) {
	t.Parallel()
	addr := zktest.Shared(t).Addr()
	old, fresh := open(t, addr, zktest.Root(t)), open(t, addr, zktest.Root(t))
	town(t, old)
	want, ctx, s := whole(t, old), t.Context(), fresh.Session()
	put := func(at, text string) {
		t.Helper()
		err := s.EnsurePath(ctx, path.Dir(at))
		if err == nil {
			_, err = s.Create(ctx, at, []byte(text), recipe.Persistent)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("/poolkeeper/site", "another")
	put("/poolkeeper/sources/other", "{}")
	put("/nodepool/components/builder/b0000000000", `{"hostname": "b1", "kind": "builder"}`)
	_, err := backup.RestoreWhole(ctx, fresh, want, false)
	for _, word := range []string{"the builder on b1 runs", "as /poolkeeper/site", "1 records below /poolkeeper that the file does not have, as /poolkeeper/sources/other"} {
		if !errors.Is(err, backup.ErrInTheWay) || !strings.Contains(err.Error(), word) {
			t.Errorf("want %q to be told, got %v", word, err)
		}
	}
	if names, err := s.Children(ctx, "/poolkeeper"); err != nil || len(names) != 2 {
		t.Errorf("a refused restore has written: %v, %v", names, err)
	}
	if _, err := backup.RestoreWhole(ctx, fresh, want, true); err != nil {
		t.Fatal(err)
	}
	if site, _, _ := s.Get(ctx, "/poolkeeper/site"); string(site) != "another" {
		t.Errorf("the site is %q", site)
	}
	if _, err := stat(ctx, s, "/poolkeeper/fleet/current"); err != nil {
		t.Error(err)
	}
}

// Mistakes: half of a file, or one that was changed, that is taken; a path that leads elsewhere.
func TestParseWhole(t *testing.T) {
	t.Parallel()
	of := func(records ...backup.Record) string {
		text, err := (&backup.Whole{Records: records}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	text := "x"
	good := of(backup.Record{Path: "/poolkeeper/site", Text: &text})
	if _, err := backup.ParseWhole([]byte(good)); err != nil {
		t.Error(err)
	}
	for file, want := range map[string]string{
		"": "line 1", "{}": "line 1: it is not \"poolkeeper backup v1\"", strings.Replace(good, "v1", "v2", 1): "line 1",
		good[:len(good)-20]:                     "it is cut off",
		good[:strings.LastIndex(good, `{"sha`)]: "it is cut off",
		strings.Replace(good, `"x"`, `"y"`, 1):  "the sum is not that of the file",
		`{"format":"poolkeeper backup v1","records":-1,"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}` + "\n": "it has not the -1 records",
		good + "more\n": "it has not the 1 records",
		of(backup.Record{Path: "/nodepool/nodes/1", Text: &text}):                                                      "not the path",
		of(backup.Record{Path: "/poolkeeper/sources/../x", Text: &text}):                                               "is no path",
		of(backup.Record{Path: "/poolkeeper/elections/tidy", Text: &text}):                                             "not the path",
		of(backup.Record{Path: "/poolkeeper/site", Next: 7}):                                                           "is no folder that counts",
		of(backup.Record{Path: "/nodepool/images/a/builds", Next: 1 << 30}):                                            "is no folder that counts",
		of(backup.Record{Path: "/poolkeeper/site", Text: &text}, backup.Record{Path: "/poolkeeper/site", Text: &text}): "comes behind",
		of(backup.Record{Path: "/nodepool/images/a/builds/1/providers/p/images/1", Text: &text}):                       "does not have the build",
	} {
		if _, err := backup.ParseWhole([]byte(file)); !errors.Is(err, backup.ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", file, err, want)
		}
	}
}

// builtImages has two images with two builds each, which are ready in two providers.
func builtImages() backup.Data {
	d := backup.Data{}
	for _, image := range []string{"debian", "fedora"} {
		for _, id := range []string{"0000000003", "0000000004"} {
			base := "/nodepool/images/" + image + "/builds/" + id
			d[base] = `{"state": "ready", "state_time": 1.5}`
			for _, provider := range []string{"north", "south"} {
				d[base+"/providers/"+provider+"/images/0000000001"] = `{"state": "ready", "state_time": 2, "external_id": "` + image + provider + id + `"}`
			}
		}
	}
	return d
}
