package buildlog

import (
	"errors"
	"net/http"
	"testing"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"poolkeeper/test/webtest"
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
type answer = webtest.Answer

// get answers a GET; headers are pairs.
func get(t *testing.T, h *Handler, target string, headers ...string) answer {
	t.Helper()
	return webtest.Get(t, routes(h), target, headers...)
}
