package web

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/history"
)

// With a history, it is in the navigation, and a page of what is gone leads there; without one
// all is as before.
func TestHistoryIsLinked(t *testing.T) {
	store := history.New(filepath.Join(t.TempDir(), "history.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	with := Options{Tree: still(nil, nil, nil), History: store, Now: clock(captured)}
	without := Options{Tree: still(nil, nil, nil), Now: clock(captured)}
	if page := get(t, with, "/history"); page.Status != http.StatusOK || !strings.Contains(page.Body, `<a href="/history" aria-current="page">History</a>`) {
		t.Errorf("the page: %d", page.Status)
	}
	for path, to := range map[string]string{
		"/nodes/0000000001":        "/history?id=0000000001&kind=node&last=30d",
		"/requests/100-0000000001": "/history?id=100-0000000001&kind=request&last=30d",
		"/builds/a-0000000001":     "/history?id=a-0000000001&kind=build&last=30d",
	} {
		if gone := get(t, with, path); gone.Status != http.StatusSeeOther || gone.Header.Get("Location") != to {
			t.Errorf("%s: %d to %s", path, gone.Status, gone.Header.Get("Location"))
		}
		get(t, without, path).Expect(t, http.StatusNotFound)
	}
	get(t, without, "/history").Expect(t, http.StatusNotFound)
	get(t, without, "/history.json").Expect(t, http.StatusNotFound)
	if strings.Contains(get(t, without, "/").Body, "/history") {
		t.Error("a page leads to a history that there is not")
	}
}
