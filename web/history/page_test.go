package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is that of all pages; entries end before. What is written is taken at today's time.
var now = time.Now().UTC().Truncate(time.Second)

// site is a history with a build, an upload, a request and its node, in two providers, and a gap.
func site(t *testing.T) *Pages {
	t.Helper()
	store := history.New(filepath.Join(t.TempDir(), "history.db"), history.DefaultLimits, hclog.NewNullLogger())
	if err := store.Open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	entry := func(kind history.Kind, id string, outcome history.Outcome, ended time.Duration) history.Change {
		return history.Change{Over: true, Entry: &history.Entry{
			Kind: kind, ID: id, Became: "x", Outcome: outcome, Begun: ago(ended + time.Hour), Ended: ago(ended),
			Times: []history.Moment{{State: "building", At: ago(ended + time.Hour)}, {State: "ready", At: ago(ended)}},
		}}
	}
	build := entry(history.Build, "debian-0000000001", history.Failed, 3*time.Hour)
	build.Entry.Image, build.Entry.BuildID, build.Entry.Reason, build.Entry.Host = "debian", "0000000001", "<script>no space</script>", "b1"
	upload := entry(history.Upload, "debian-0000000001/north/0000000001", history.Succeeded, 2*time.Hour)
	upload.Entry.Image, upload.Entry.Provider, upload.Entry.Gone = "debian", "north", ago(time.Hour)
	request := entry(history.Request, "200-0000000001", history.Succeeded, time.Hour)
	request.Entry.Labels, request.Entry.EventID = []string{"small"}, "e1"
	node := entry(history.Node, "0000000009", history.Succeeded, 30*time.Minute)
	node.Entry.Provider, node.Entry.Request, node.Entry.Gone, node.Entry.Unsure, node.Entry.Labels = "south", "200-0000000001", ago(30*time.Minute), true, []string{"small"}
	if err := store.Write([]history.Change{build, upload, request, node}, []history.Gap{{From: ago(5 * time.Hour), To: ago(4 * time.Hour), Why: "the daemon did not run"}}); err != nil {
		t.Fatal(err)
	}
	return &Pages{Store: store, Logger: hclog.NewNullLogger(), Now: func() time.Time { return now }}
}

func (h *Pages) get(t *testing.T, query string) (string, error) {
	t.Helper()
	p, err := h.Page(httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+query, nil))
	if err != nil {
		return "", err
	}
	body, err := new(layout.Layout).Render(p, layout.Status{Time: now})
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

// Mistakes: text that is not escaped, a filter that is lost on the way, a gap that is not drawn, an end that was not
// seen and is told as if it were.
func TestPage(t *testing.T) {
	h := site(t)
	page, err := h.get(t, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 succeeded", "1 failed", `class="hole"><title>nothing was recorded: the daemon did not run`, "&lt;script&gt;no space",
		`<a href="/builds/debian-0000000001">debian-0000000001</a></span> <a href="/build-log/debian-0000000001">log</a>`,
		`<a href="/requests/200-0000000001">`, `<a href="/history?id=0000000009&amp;kind=node&amp;last=30d">0000000009</a>`,
		"<small>before</small>", "building 1h 0m → ready", `<a href="/history?label=small">small</a>`, `<a href="/history?provider=south">south</a>`,
		`<a href="/history?request=200-0000000001">its nodes</a>`, "event e1", `<h2>Nothing was recorded <small>1</small></h2>`, "Recording began",
		`<a href="/history?last=7d">7d</a>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script>no") || strings.Contains(page, "style=") {
		t.Error("the page has what it must not")
	}
	for query, want := range map[string]int{
		"?kind=node": 1, "?kind=build&outcome=succeeded": 0, "?image=debian": 2, "?provider=north": 1, "?label=small": 2, "?state=building": 4,
		"?id=0000000009": 1, "?request=200-0000000001": 1, "?last=90m": 2, "?last=2d": 4,
		"?since=" + now.Add(-150*time.Minute).Format(time.RFC3339) + "&until=" + now.Add(-90*time.Minute).Format(time.RFC3339): 1,
	} {
		page, err := h.get(t, query)
		if got := strings.Count(page, `<td data-head="Ended">`); err != nil || got != want {
			t.Errorf("%s: %d rows, want %d: %v", query, got, want, err)
		}
	}
	for _, query := range []string{"?kind=x", "?outcome=x", "?last=x", "?last=-1h", "?last=99999d", "?since=x", "?until=2000-01-01T00:00:00Z", "?image=" + strings.Repeat("x", 600)} {
		if _, err := h.get(t, query); !errors.Is(err, layout.ErrNotFound) {
			t.Errorf("%s: %v", query, err)
		}
		w := httptest.NewRecorder()
		h.ServeJSON(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+".json"+query, nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("JSON, %s: %d", query, w.Code)
		}
	}
}

// The JSON is that of the version: its keys, times and seconds; and its pages follow each other.
func TestJSON(t *testing.T) {
	h := site(t)
	ask := func(path string) map[string]any {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeJSON(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		var a map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d, %v: %s", path, w.Code, err, w.Body)
		}
		return a
	}
	a := ask(Path + ".json?kind=node")
	at := func(d time.Duration) string { return now.Add(-d).Format(time.RFC3339) }
	want := map[string]any{
		"kind": "node", "id": "0000000009", "state": "x", "outcome": "succeeded", "begun": at(90 * time.Minute), "ended": at(30 * time.Minute),
		"gone": at(30 * time.Minute), "duration": 3600.0, "unsure": true, "provider": "south", "labels": []any{"small"}, "request": "200-0000000001",
		"times": []any{map[string]any{"state": "building", "at": at(90 * time.Minute)}, map[string]any{"state": "ready", "at": at(30 * time.Minute)}},
	}
	if diff := cmp.Diff([]any{want}, a["entries"]); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{map[string]any{"from": at(5 * time.Hour), "to": at(4 * time.Hour), "why": "the daemon did not run", "duration": 3600.0}}, a["gaps"]); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	if a["version"] != "v1" || a["until"] != at(0) || a["since"] != at(24*time.Hour) || a["next"] != nil || len(a["counts"].([]any)) != bucketsAll {
		t.Errorf("got %v", a)
	}
	var ids []string
	for path := Path + ".json?limit=1&last=24h"; path != ""; {
		a := ask(path)
		for _, e := range a["entries"].([]any) {
			ids = append(ids, fmt.Sprint(e.(map[string]any)["kind"]))
		}
		path, _ = a["next"].(string)
	}
	if got := strings.Join(ids, " "); got != "node request upload build" {
		t.Errorf("page by page: %s", got)
	}
}

// A year fits into the timeline. Mistake: nanoseconds times its width are more than an int64 holds, and bars of the
// last day stand at its begin, or outside.
func TestTimelineOfAYear(t *testing.T) {
	v := &view{}
	q := history.Query{Since: now.Add(-365 * 24 * time.Hour), Until: now}
	v.timeline(&history.Answer{Counts: []history.Counts{{From: now.Add(-73 * 24 * time.Hour), To: now, Failed: 1}}}, q, nil)
	if b := v.Bars[0]; b.X != wide*4/5 || b.X+b.Width > wide || b.Width < wide/5-3 {
		t.Errorf("the last fifth of a year is drawn from %d, %d wide, of %d", b.X, b.Width, wide)
	}
}
