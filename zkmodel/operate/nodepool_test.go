package operate_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// nodepoolCleans does what the clean-up of a Nodepool builder does with uploads: at each
// provider the two newest that are ready stay, by the time of their state, whatever
// anybody said; the rest goes, with builds that have none left. (Source: Nodepool's
// CleanupWorker.)
func nodepoolCleans(t *testing.T, store *zkmodel.Store) {
	t.Helper()
	ctx := t.Context()
	for _, name := range images {
		i, err := store.Image(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		recent := map[string][]*zkmodel.Upload{}
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				if u.State == zkmodel.UploadReady {
					recent[u.Provider] = append(recent[u.Provider], u)
				}
			}
		}
		for p, list := range recent {
			slices.SortFunc(list, func(a, b *zkmodel.Upload) int { return cmp.Compare(b.StateTime, a.StateTime) })
			recent[p] = list[:min(2, len(list))]
		}
		for n, b := range slices.Backward(i.Builds) {
			left := 0
			for _, u := range b.Uploads {
				if slices.Contains(recent[u.Provider], u) {
					left++
				} else if err := store.DeleteUpload(ctx, u.UploadKey); err != nil {
					t.Fatal(err)
				}
			}
			if left == 0 && n < len(i.Builds)-2 {
				if err := store.Session().DeleteTree(ctx, zkmodel.BuildPath(name, b.ID)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// nodepoolRewrites writes an upload as Nodepool does, which drops what it does not know.
func nodepoolRewrites(t *testing.T, store *zkmodel.Store, key zkmodel.UploadKey) {
	t.Helper()
	ctx := t.Context()
	data, _, err := store.Session().Get(ctx, key.Path())
	record := map[string]any{}
	err = errors.Join(err, json.Unmarshal(data, &record))
	for _, ours := range []string{"suspect", "token", "reason", "builder", "progress", "failures", "retry_at"} {
		delete(record, ours)
	}
	data, encoded := json.Marshal(record)
	if err := errors.Join(err, encoded); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Session().Set(ctx, key.Path(), data, recipe.AnyVersion); err != nil {
		t.Fatal(err)
	}
}

// Beside a Nodepool builder, as docs/rollback.md says: what was said outlives its rewriting
// of records; its clean-up leaves what serves after a rollback, and takes what is pinned
// once two newer uploads are ready, the bad one counted, so that by --delete one more fits.
// Then another build serves, never the bad one. Mistakes: a verdict that stands in the upload
// alone; a page that promises what nobody holds.
func TestVerdictsBesideANodepoolBuilder(t *testing.T) {
	for _, remove := range []bool{false, true} {
		o, store := setup(t)
		fleet(t, store, 3)
		j := rollback(func(j *operate.Judgement) { j.Pin, j.Delete = true, remove })
		all, err := o.Judge(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		nodepoolRewrites(t, store, all[0].Uploads[0].UploadKey)
		serves := func(when, want string) {
			t.Helper()
			nodepoolCleans(t, store)
			i, err := store.Image(t.Context(), "debian")
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range places {
				if u := i.Serving(p, zkmodel.Suspect); u == nil || u.Build != want {
					t.Errorf("deleted %t, %s: %+v serves in %s, want build %s", remove, when, u, p, want)
				}
			}
		}
		serves("cleaned", "0000000002")
		made(t, store, "debian", places...)
		if remove {
			serves("one build later", "0000000002")
			made(t, store, "debian", places...)
			serves("two builds later", "0000000005")
		} else {
			serves("one build later", "0000000004")
		}
		for _, image := range images[1:] {
			if i, err := store.Image(t.Context(), image); err != nil || i.Serving("north", zkmodel.Suspect).Build != "0000000003" {
				t.Errorf("%s: %v", image, err)
			}
		}
	}
}
