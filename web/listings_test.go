package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

func TestAcceptDecidesTheFormat(t *testing.T) {
	o := Options{Tree: still(nil, nil, nil)}
	for accept, want := range map[string]string{
		"":                 "text/plain; charset=UTF-8",
		"text/html, */*":   "text/plain; charset=UTF-8",
		"application/json": "application/json",
	} {
		response := get(t, o, "/node-list", "Accept", accept)
		response.Expect(t, http.StatusOK)
		if got := response.Header.Get("Content-Type"); got != want {
			t.Errorf("Accept %q: %s, want %s", accept, got, want)
		}
	}
	response := get(t, o, "/node-list", "Accept", "image/png") // Nodepool fails with a 500
	response.Expect(t, http.StatusNotAcceptable)
	if got := response.Body; !strings.Contains(got, "application/json") {
		t.Errorf("406 says %q, want the formats that there are", got)
	}
}

func TestParameters(t *testing.T) {
	nodes := []*zkmodel.Node{
		zkmodel.DecodeNode("0000000007", []byte(`{"state": "ready"}`), recipe.Stat{}),
		zkmodel.DecodeNode("0000000008", []byte(`{"state": "failed", "reason": "no host key"}`), recipe.Stat{}),
	}
	o := Options{Tree: still(nil, nodes, nil)}
	one := get(t, o, "/node-list?node_id=0000000008&fields=state,id").Body
	if want := "+------------+--------+\n| ID         | State  |\n+------------+--------+\n| 0000000008 | failed |\n+------------+--------+\n"; one != want {
		t.Errorf("got\n%s\nwant\n%s", one, want)
	}
	if got := get(t, o, "/node-list?node_id=9&fields=id").Body; strings.Contains(got, "000") {
		t.Errorf("got nodes that were not asked for:\n%s", got)
	}
	response := get(t, o, "/node-list?fields=id,colour")
	response.Expect(t, http.StatusBadRequest)
	if got := response.Body; !strings.Contains(got, `"colour"`) || !strings.Contains(got, "server_id") {
		t.Errorf("400 says %q, want the wrong field and the right ones", got)
	}
	// JSON has all, whatever fields says, also what Nodepool does not have.
	if got := get(t, o, "/node-list?fields=id", "Accept", "application/json").Body; !strings.Contains(got, `"reason": "no host key"`) {
		t.Errorf("JSON lacks the reason: %s", got)
	}
}

// A listing can be asked to have seen a moment.
func TestLogicalTime(t *testing.T) {
	const seen = 41
	o := Options{Tree: still(nil, nil, nil)}
	o.Tree.WaitFor = func(_ context.Context, ltime int64) error {
		if ltime > seen {
			return context.DeadlineExceeded
		}
		return nil
	}
	for query, want := range map[string]int{
		"":            http.StatusOK,
		"?ltime=41":   http.StatusOK,
		"?ltime=42":   http.StatusServiceUnavailable,
		"?ltime=-1":   http.StatusBadRequest,
		"?ltime=soon": http.StatusBadRequest,
	} {
		get(t, o, "/node-list"+query).Expect(t, want)
	}
}

// A listing is complete or an error.
func TestTreeThatIsNotRead(t *testing.T) {
	o := Options{Tree: still(nodepoolImages(t), nil, nil), Now: clock(captured)}
	o.Tree.WaitSynced = func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("a request waits for ever")
		}
		return errors.New("no server is reached")
	}
	response := get(t, o, "/image-list")
	response.Expect(t, http.StatusServiceUnavailable)
	if got := response.Body; !strings.Contains(got, "no server is reached") {
		t.Errorf("503 says %q, want why", got)
	}
	// The page shows what was known last, and says so.
	response = get(t, o, "/")
	response.Expect(t, http.StatusOK)
	if got := response.Body; !strings.Contains(got, "may be old: not in step with ZooKeeper: no server is reached") || !strings.Contains(got, "image-002") {
		t.Errorf("the page does not show what was known, and why it may be old:\n%s", got)
	}
}

// What is not followed is not there, rather than empty.
func TestPartsThatAreNotFollowed(t *testing.T) {
	o := Options{Tree: Tree{Images: still(nil, nil, nil).Images}}
	for path, want := range map[string]int{
		"/": http.StatusOK, "/ready": http.StatusOK, "/image-list": http.StatusOK,
		"/node-list": http.StatusNotFound, "/request-list": http.StatusNotFound, "/label-list": http.StatusNotFound,
		"/metrics": http.StatusNotFound, "/log/image-0000000001": http.StatusNotFound, "/nope": http.StatusNotFound,
	} {
		if got := get(t, o, path).Status; got != want {
			t.Errorf("%s: status %d, want %d", path, got, want)
		}
	}
	page := get(t, o, "/").Body
	for _, heading := range []string{"<h2>Nodes", "<h2>Requests", "<h2>Daemons", "/node-list"} {
		if strings.Contains(page, heading) {
			t.Errorf("the page shows %s", heading)
		}
	}
}

// However many ask, few pages are made at a time; who leaves does not wait.
func TestPagesAreMadeInTurn(t *testing.T) {
	h := newHandler(Options{})
	entered, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error)
	for range maxRenderers + 1 {
		go func() {
			_, err := h.render(t.Context(), func() ([]byte, error) {
				entered <- struct{}{}
				<-leave
				return nil, nil
			})
			done <- err
		}()
	}
	for range maxRenderers {
		<-entered
	}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.render(impatient, func() ([]byte, error) { return nil, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a client that left: %v, want Canceled", err)
	}
	leave <- struct{}{}
	<-entered // it is the last one's turn
	for range maxRenderers {
		leave <- struct{}{}
	}
	for range maxRenderers + 1 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// manyNodes is a busy site's nodes.
func manyNodes(n int) []*zkmodel.Node {
	nodes := make([]*zkmodel.Node, n)
	for i := range nodes {
		data := fmt.Sprintf(`{"state": "ready", "state_time": 1795159528.5, "provider": "cloud-%d", "pool": "main",
			"type": ["label-%d"], "external_id": "39fd43df805b45489ed5980be10d6eeb", "public_ipv4": "10.0.0.1",
			"connection_port": 22, "username": "zuul", "launcher": "launcher-1"}`, i%5, i%20)
		nodes[i] = zkmodel.DecodeNode(fmt.Sprintf("%010d", i), []byte(data), recipe.Stat{})
	}
	return nodes
}

// What one look at 5,000 nodes costs.
func BenchmarkAnswers(b *testing.B) {
	o := Options{Tree: still(nil, manyNodes(5000), nil), Now: clock(captured)}
	h := newHandler(o).routes()
	for name, accept := range map[string]string{"/node-list": "text/plain", "/node-list?json": "application/json", "/": "text/html"} {
		b.Run(strings.NewReplacer("/", "_", "?", "_").Replace(name), func(b *testing.B) {
			r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, name, nil)
			r.Header.Set("Accept", accept)
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:40000" // the overview is for our own host
			for b.Loop() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body.String())
				}
				b.ReportMetric(float64(w.Body.Len()), "bytes")
			}
		})
	}
}

// Pages that read ZooKeeper wait for it; the others do not wait for them. Mistake: two readers of why an image is
// built, while ZooKeeper does not answer, keep Nodepool's listings from everybody.
func TestSlowPagesHoldUpNoOther(t *testing.T) {
	o := aSite()
	entered, leave := make(chan struct{}), make(chan struct{})
	o.Explain = func(context.Context, string) ([]Reason, error) {
		entered <- struct{}{}
		<-leave
		return nil, nil
	}
	routes := newHandler(o).routes()
	ask := func(ctx context.Context, path string) int {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:40000"
		w := httptest.NewRecorder()
		routes.ServeHTTP(w, r)
		return w.Code
	}
	waiting, hurry := context.WithCancel(t.Context())
	done := make(chan int)
	go func() { done <- ask(t.Context(), "/images/image/explain") }()
	<-entered
	for range maxRenderers {
		go func() { done <- ask(waiting, "/images/image/explain") }()
	}
	for _, path := range []string{"/", "/images/image", "/image-list"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if status := ask(ctx, path); status != http.StatusOK {
			t.Errorf("%s: status %d", path, status)
		}
		cancel()
	}
	hurry()
	for range maxRenderers {
		if status := <-done; status != http.StatusServiceUnavailable {
			t.Errorf("one that waited and left: status %d", status)
		}
	}
	leave <- struct{}{}
	if status := <-done; status != http.StatusOK {
		t.Errorf("the page that was slow: status %d", status)
	}
}
