package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
)

// Mistakes: an action that is done for whoever reaches the page, from this host or where
// it is open to all; one of which no line says who asked for it, and what came of it.
func TestActionsWantTheTokenAndAreWrittenDown(t *testing.T) {
	const token = "0123456789abcdef"
	for name, tc := range map[string]struct {
		access Access
		given  string
		fails  error
		done   bool
		line   string
	}{
		"the token":           {Access{Token: token}, token, nil, true, "[INFO]  audit: Action done"},
		"a failure":           {Access{Token: token}, token, errors.New("it is deleting"), true, `Action failed: action=hold client=127.0.0.1:5 target=7 error="it is deleting"`},
		"another token":       {Access{Token: token}, "x", errNoToken, false, "Action refused"},
		"no token, this host": {Access{Token: token}, "", errNoToken, false, "Action refused"},
		"open to all":         {Access{Open: true}, "", errNoToken, false, "Action refused"},
		"no token is set":     {Access{}, "x", errNoToken, false, "Action refused"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			h := newHandler(Options{Access: tc.access, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.RemoteAddr = "127.0.0.1:5"
			if tc.given != "" {
				r.Header.Set("Authorization", "Bearer "+tc.given)
			}
			done := false
			err := h.act(r, "hold", "7", func(context.Context) error {
				done = true
				return tc.fails
			})
			if !errors.Is(err, tc.fails) || done != tc.done {
				t.Errorf("done: %v, %v", done, err)
			}
			if text := log.String(); !strings.Contains(text, tc.line) || !strings.Contains(text, "action=hold client=127.0.0.1:5 target=7") || strings.Contains(text, token) {
				t.Errorf("audit line %q", text)
			}
		})
	}
}

// Mistake: a path that changes something before its time, even with the token.
func TestNoPathActs(t *testing.T) {
	const token = "0123456789abcdef"
	h := newHandler(Options{Access: Access{Token: token}}).routes()
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		for _, path := range []string{"/", "/node-list", "/image-list", "/log/x", "/actions", "/hold"} {
			r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
}
