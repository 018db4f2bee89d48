package backup_test

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/backup"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// judged has two images in two providers, with the newest build rejected in north and the older one pinned in south, and
// a canary record. It returns what export-image-data writes.
func judged(t *testing.T, store *zkmodel.Store) backup.Data {
	t.Helper()
	ctx, s, d := t.Context(), store.Session(), builtImages()
	if _, err := backup.Restore(ctx, store, d, false); err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"debian", "fedora"} {
		old, err1 := stat(ctx, s, zkmodel.BuildPath(image, "0000000003"))
		last, err2 := stat(ctx, s, zkmodel.BuildPath(image, "0000000004"))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for at, text := range map[string]string{
			zkmodel.VerdictsPath(image): fmt.Sprintf(`{"verdicts": [{"verdict": "rejected", "provider": "north", "build": "0000000004", "build_czxid": %d, "by": "anna", "time": 7}],`+
				`"pins": [{"provider": "south", "build": "0000000003", "build_czxid": %d, "by": "ben", "time": 8}]}`, last.Czxid, old.Czxid),
			zkmodel.CanariesRoot + "/north/" + image: fmt.Sprintf(`{"promoted": {"build": "0000000003", "build_czxid": %d}}`, old.Czxid),
		} {
			if err := s.EnsurePath(ctx, path.Dir(at)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Create(ctx, at, []byte(text), recipe.Persistent); err != nil {
				t.Fatal(err)
			}
		}
	}
	return exported(t, store)
}

// lose deletes the records of images, as Nodepool's tools do; what is below /poolkeeper stays.
func lose(t *testing.T, store *zkmodel.Store) {
	t.Helper()
	if err := store.Session().DeleteTree(t.Context(), zkmodel.ImagesRoot); err != nil {
		t.Fatal(err)
	}
}

// exported is the file of export-image-data.
func exported(t *testing.T, store *zkmodel.Store) backup.Data {
	t.Helper()
	d, err := data(t, store).WithIDs(t.Context(), store.Session())
	if err != nil {
		t.Fatal(err)
	}
	text, err := d.Encode()
	if err == nil {
		d, err = backup.Parse(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// inForce holds that each image has its verdict, pin and canary again, and nothing is stale.
func inForce(t *testing.T, store *zkmodel.Store) {
	t.Helper()
	images, err := store.WithCanaries(true).Images(t.Context())
	if err != nil || len(images) != 2 {
		t.Fatal(images, err)
	}
	for _, i := range images {
		pin := i.Pin("south")
		if i.Verdict(i.Builds[1].Build, "north") == nil || pin == nil || !pin.Holds(i.Builds[0].Build) || len(i.Stale()) != 0 {
			t.Errorf("%s: the verdict or the pin is not in force: %+v", i.Name, i.Verdicts)
		}
		if c := i.Canary("north"); c == nil || c.Promoted != zkmodel.RefOf(i.Builds[0].Build) {
			t.Errorf("%s: the canary is of another build: %+v", i.Name, c)
		}
	}
}

func TestImportOverKeptVerdicts(t *testing.T) {
	t.Parallel()
	addr, root := zktest.Shared(t).Addr(), zktest.Root(t)
	store := open(t, addr, root)
	file := judged(t, store)
	inForce(t, store)
	lose(t, store)
	cutOff(t, zktest.StartTap(t, addr, 60), root, file)
	zktest.Eventually(t, func() bool {
		_, err := backup.Restore(t.Context(), store, file, false)
		return err == nil
	}, "the import is complete")
	inForce(t, store)
	if text := data(t, store); !strings.HasSuffix(text[zkmodel.BuildPath("debian", "0000000003")], `"state_time": 1.5}`) {
		t.Errorf("a record has the key of the file: %v", text)
	}
	// Where Nodepool's import has brought the file back, ours only rewrites the references.
	file = exported(t, store)
	lose(t, store)
	line, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	k := zktest.StartKazoo(t, addr, root, asNodepool)
	k.Say(string(line))
	k.Expect("done")
	if look, err := backup.Restore(t.Context(), store, file, false); err != nil || len(look.Missing) != 0 {
		t.Fatalf("ours after Nodepool's: %v %+v", err, look)
	}
	inForce(t, store)
}

func TestForeignImportLeavesVerdictsStale(t *testing.T) {
	t.Parallel()
	store := open(t, zktest.Shared(t).Addr(), zktest.Root(t))
	judged(t, store)
	foreign := data(t, store) // as Nodepool's export, without creation ids
	lose(t, store)
	if _, err := backup.Restore(t.Context(), store, foreign, false); err != nil {
		t.Fatal(err)
	}
	images, err := store.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	items := (&attention.Site{Now: time.Now(), Images: images}).Items()
	for _, i := range images {
		if i.Verdict(i.Builds[1].Build, "north") != nil || i.Pin("south") != nil || i.Serving("south", zkmodel.Suspect).Build != "0000000004" {
			t.Errorf("%s: a stale verdict or pin is in force", i.Name)
		}
		if rest, gone := i.Settled(); len(gone) != 0 || len(rest.List) != 1 || len(rest.Pins) != 1 {
			t.Errorf("%s: what is stale would be forgotten without a word: %v", i.Name, gone)
		}
		for _, want := range []string{
			"The verdict on image " + i.Name + "-0000000004 in north is not in force",
			"The pin of image " + i.Name + "-0000000003 in south is not in force",
		} {
			if !slices.ContainsFunc(items, func(one attention.Item) bool { return one.What == want && one.Kind == attention.VerdictStale }) {
				t.Errorf("not reported: %s: %+v", want, items)
			}
		}
	}
	if slices.ContainsFunc(items, func(one attention.Item) bool { return one.Kind == attention.Pinned || one.Kind == attention.Verdict }) {
		t.Errorf("what is stale is reported as in force: %+v", items)
	}
	var shown strings.Builder
	if err := listing.Images(images, time.Now(), nil).WriteJSON(&shown); err != nil || strings.Count(shown.String(), "stale, not in force") != 4 {
		t.Errorf("image-status: %v\n%s", err, &shown)
	}
}

// A new decision replaces the stale one, and promote and release remove it.
func TestDecisionsReplaceStaleOnes(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), open(t, zktest.Shared(t).Addr(), zktest.Root(t))
	judged(t, store)
	foreign := data(t, store)
	lose(t, store)
	if _, err := backup.Restore(ctx, store, foreign, false); err != nil {
		t.Fatal(err)
	}
	o := operate.New(store, "carl")
	if _, err := o.Judge(ctx, operate.Judgement{Image: "debian", Build: "0000000004", Providers: []string{"north"}, Kind: zkmodel.Rejected}); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Release(ctx, "debian", nil); err != nil {
		t.Fatal(err)
	}
	if where, err := o.Promote(ctx, "fedora", "0000000004", nil); err != nil || len(where) != 1 {
		t.Fatal(where, err)
	}
	for name, want := range map[string]int{"debian": 0, "fedora": 1} { // the pin of fedora is left
		i, err := store.Image(ctx, name)
		if err != nil || len(i.Stale()) != want {
			t.Errorf("%s: %v, %v", name, i.Stale(), err)
		}
		if v := i.Verdict(i.Builds[1].Build, "north"); (v != nil) != (name == "debian") || v != nil && (v.By != "carl" || len(i.Verdicts.List) != 1) {
			t.Errorf("%s: %+v", name, i.Verdicts)
		}
	}
}
