package wave

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// FuzzWave: the records of a wave are read, or the wave is broken and says which one it is; a
// wave that cannot be read is never active, and what is read is written the same again.
func FuzzWave(f *testing.F) {
	f.Add([]byte(`{"priority":5,"until":"uploaded","jobs":2,"token":"t"}`), []byte(`{"state":"pending","counts":{"pending":2}}`), "retry")
	f.Add([]byte(`{"until":5}`), []byte(`{}`), "hold")
	f.Add([]byte(`null`), []byte(``), "retry:a")
	f.Add([]byte(`{"deadline":"2026-11-23T00:00:00Z","at":"10000-01-01T00:00:00Z"}`), []byte(`{"state":"gone","began":"2026-11-23T00:00:00+24:00"}`), "")
	f.Fuzz(func(t *testing.T, request, status []byte, mark string) {
		e := decode("w1", request, recipe.Stat{Czxid: 5}, status)
		e.mark(mark, status)
		if e.ID != "w1" || e.Stat.Czxid != 5 {
			t.Errorf("the wave is %s of %d", e.ID, e.Stat.Czxid)
		}
		if e.Broken != nil {
			if !errors.Is(e.Broken, zkmodel.ErrUndecodable) || !strings.Contains(e.Broken.Error(), "w1") || e.Active() {
				t.Errorf("broken: %v, active: %v", e.Broken, e.Active())
			}
			return
		}
		once, err := json.Marshal(e.Wave)
		if err != nil {
			t.Fatalf("write what was read of %q: %v", request, err)
		}
		state, err := json.Marshal(e.Status)
		if err != nil {
			t.Fatalf("write what was read of %q: %v", status, err)
		}
		again := decode("w1", once, recipe.Stat{Czxid: 5}, state)
		if twice, _ := json.Marshal(again.Wave); again.Broken != nil || string(once) != string(twice) {
			t.Errorf("%v:\n%s\n%s", again.Broken, once, twice)
		}
		if twice, _ := json.Marshal(again.Status); string(state) != string(twice) {
			t.Errorf("%s\n%s", state, twice)
		}
	})
}

// FuzzNames: what a name in the tree or a subject of a pause is taken for has that name.
func FuzzNames(f *testing.F) {
	for _, text := range []string{"", "waves", "wave/", "wave/a", "wave/a/b", "wave/a/", "wave/a/b/c", "00000-a", "00001-a-b", "1-a", "+0001-a", "12x-a", "00000-", "-a", "123456-a", "-0001-a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if rank, image, ok := parseIndex(text); ok && (indexName(rank, image) != text || image == "") {
			t.Errorf("%q is %d and %q, which is %q", text, rank, image, indexName(rank, image))
		}
		if h, ok := ParseTarget(text); ok && h.Subject() != text {
			t.Errorf("%q is %+v, which is %q", text, h, h.Subject())
		}
	})
}
