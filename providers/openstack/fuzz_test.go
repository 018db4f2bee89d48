package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
)

// questions are calls whose answers are replaced, and the list that each is of.
var questions = []struct{ call, list string }{
	{"GET /image/v2/images", "images"},
	{"/servers/detail", "servers"},
	{"POST /identity/v3/auth/tokens", ""},
	{"/flavors/detail", ""},
	{"/networks", ""},
	{"DELETE /image/v2/images", ""},
}

// FuzzAnswers: whatever a cloud answers, a list is what it says or an error, never what it does not
// say: an empty list gives up all that is there. Errors are of the contract, short, of one line, and
// without our password.
func FuzzAnswers(f *testing.F) {
	for which := range questions {
		for _, body := range []string{
			"", "{}", "null", "[]", `{"images": []}`, `{"servers": []}`, `{"servers": null}`, `{"images": {}}`, `{"images": [{}]}`, `{"servers": [{"id": 5}]}`, `<html><h1>502</h1></html>`, "\xff",
			`{"images": [], "next": "/v2/images?marker=x"}`, `{"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": ":"}]}`, `{"error": {"message": "a\nb", "code": 200}}`, `{"token": {}}`,
			`{"images": [{"id": "x", "provider": 5, "size": 1e400}]}`, `{"flavors": [{"id": "1", "ram": -1, "extra_specs": 5}]}`,
		} {
			f.Add(uint8(which), 200, []byte(body))
		}
		f.Add(uint8(which), 413, []byte(`{"overLimit": {"message": "slow down", "retryAfter": "x"}}`))
		f.Add(uint8(which), 403, []byte(`{"forbidden": {"message": "Quota exceeded for x"}}`))
	}
	s := newStub(f)
	s.password = "Tr0ub4dor"
	p := s.open(f, section())
	p.pace.call, p.pace.total = time.Second, 20*time.Millisecond
	const id = "00000000-0000-0000-0000-00000000000a"
	f.Fuzz(func(t *testing.T, which uint8, status int, body []byte) {
		q := questions[int(which)%len(questions)]
		if status < 200 || status > 599 {
			status = 200 + int(uint(status)%400)
		}
		s.calm()
		s.fail(q.call, 1000, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(body)
			return true
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if q.call == "POST /identity/v3/auth/tokens" {
			s.mu.Lock()
			clear(s.tokens)
			s.mu.Unlock()
		}
		images, err := p.ListImages(ctx)
		judge(t, err)
		if q.list == "images" {
			says(t, q.list, body, status, len(images), err)
		}
		nodes, err := p.ListNodes(ctx)
		judge(t, err)
		if q.list == "servers" {
			says(t, q.list, body, status, len(nodes), err)
		}
		_, err = p.NodeResources(ctx, "main", "small")
		judge(t, err)
		judge(t, p.DeleteImage(ctx, id))
	})
}

// says fails for a list that was taken from an answer that has none.
func says(t *testing.T, name string, body []byte, status, entries int, err error) {
	t.Helper()
	if err != nil || status >= 400 { // refused, or asked for again
		return
	}
	var answer map[string]any
	_ = json.NewDecoder(strings.NewReader(string(body))).Decode(&answer)
	list, ok := answer[name].([]any)
	if !ok || entries > len(list) {
		t.Errorf("status %d, %q is a list of %d %s", status, body, entries, name)
	}
}

// judge fails for an error that an operator cannot use, or should not see.
func judge(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	known := false
	for _, one := range []error{
		providers.ErrInvalid, providers.ErrNotFound, providers.ErrQuota, providers.ErrTransient, providers.ErrUnusable, providers.ErrNotSupported, context.DeadlineExceeded,
	} {
		known = known || errors.Is(err, one)
	}
	text := err.Error()
	if !known || len(text) > 4000 || strings.ContainsAny(text, "\n\x00\x1b") || strings.Contains(text, "Tr0ub4dor") || !strings.Contains(text, "north") {
		t.Errorf("the error %q", text)
	}
}
