package buildlog

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newHandler is a Handler of some logs, and of a tree with some images.
func newHandler(logs Logs, images ...*zkmodel.Image) *Handler {
	return NewHandler(logs, func() []*zkmodel.Image { return images }, hclog.NewNullLogger())
}

// routes are the paths of a Handler.
func routes(h *Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/log/{name}", h.ServeLog)
	mux.HandleFunc("/build-log/{name}", func(w http.ResponseWriter, r *http.Request) {
		p, err := h.Page(r)
		if errors.Is(err, layout.ErrNotFound) {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		var body []byte
		if err == nil {
			body, err = new(layout.Layout).Render(p, layout.Status{})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		_, _ = w.Write(body)
	})
	mux.HandleFunc("/build-log/{name}/follow", h.ServeFollow)
	return mux
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// get answers a GET; headers are pairs.
func get(t *testing.T, h *Handler, target string, headers ...string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	routes(h).ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}

// expect checks an answer's status.
func (a answer) expect(t *testing.T, status int) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
}

// answering is an answer over the network, to be read as it comes.
type answering struct {
	answer
	io.ReadCloser
}

// fetch gets a page over the network; it is closed when the test ends.
func fetch(t *testing.T, url string) answering {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = response.Body.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return answering{answer{status: response.StatusCode, header: response.Header}, response.Body}
}

// text reads a stream to its end.
func (s answering) text(t *testing.T) string {
	t.Helper()
	data, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
