package web

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
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

// A request's life has each step with its time: from the history what the records tell no more. Mistakes: only the last state of
// a node; a step of another request; a page that shows nothing where nothing was kept.
func TestLifeOfARequest(t *testing.T) {
	store := history.New(filepath.Join(t.TempDir(), "history.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	at := func(seconds int) time.Time { return captured.Add(time.Duration(seconds-300) * time.Second) }
	live := func(kind history.Kind, id string, times ...history.Moment) history.Change {
		return history.Change{Entry: &history.Entry{Kind: kind, ID: id, Begun: times[0].At, Times: times}}
	}
	moment := func(state string, seconds int) history.Moment { return history.Moment{State: state, At: at(seconds)} }
	if err := store.Write([]history.Change{
		live(history.Request, "100-0000000001", moment("requested", 0), moment("pending", 2), moment("fulfilled", 60)),
		live(history.Node, "0000000001", moment("building", 3), moment("ready", 59), moment("in-use", 61)),
		live(history.Node, "0000000002", moment("testing", 4)),
	}, nil); err != nil {
		t.Fatal(err)
	}
	record := func(state string, seconds int) string {
		return fmt.Sprintf(`"state": %q, "state_time": %d`, state, at(seconds).Unix())
	}
	node := testNode("0000000001", record("in-use", 61)+fmt.Sprintf(`, "provider": "east", "pool": "main", "launcher": "nl01-7", "attempt": 2, "allocated_to": "100-0000000001", "created_time": %d`, at(2).Unix()))
	request := testRequest("100-0000000001", record("fulfilled", 60)+fmt.Sprintf(`, "requestor": "zuul", "nodes": ["0000000001"], "created_time": %d`, at(0).Unix()))
	o := Options{Tree: still(nil, []*zkmodel.Node{node, testNode("0000000002", record("testing", 4))}, []*zkmodel.Request{request}), History: store, Now: clock(captured)}
	life := func(o Options) string {
		page := shown(get(t, o, "/requests/100-0000000001"))
		page = page[strings.Index(page, "What became of the request"):]
		return page[:strings.Index(page, "</table>")]
	}
	rest, without := life(o), o
	for _, step := range []string{"asked for by zuul", "2s", "pending: accepted", "accepted by nl01-7: node for it in east main", "3s", "node building", "59s", "node ready", "1m 0s", "fulfilled: handed over", "1m 1s", "node in-use, attempt 2"} {
		at := strings.Index(rest, step)
		if at < 0 {
			t.Fatalf("the life lacks %q, or has it too early:\n%s", step, life(o))
		}
		rest = rest[at+len(step):]
	}
	without.History = nil
	if got := life(without); strings.Contains(got, "node building") || !strings.Contains(got, "fulfilled: handed over") || strings.Contains(life(o), "testing") {
		t.Errorf("the life without a history:\n%s", got)
	}
}
