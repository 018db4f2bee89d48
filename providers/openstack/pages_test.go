package openstack

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"poolkeeper/providers"
)

// A list that is null is none, and one that follows itself ends: on the first all machines would be given
// up, the second fills the memory.
func TestListsThatAreNone(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	for body, call := range map[string]string{
		`{"images": null}`:  "/v2/images",
		`{"servers": null}`: "/servers/detail",
		`{"images": [{"id": "a"}], "next": "/v2/images?marker=a"}`:                                                   "/v2/images",
		`{"servers": [{"id": "a"}], "servers_links": [{"rel": "next", "href": "SELF/compute/v2.1/servers/detail"}]}`: "/servers/detail",
	} {
		s.calm()
		s.fail("GET ", 1<<20, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, call) {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(strings.ReplaceAll(body, "SELF", s.URL)))
			return true
		})
		// What follows itself for ever fails here, and does not fill the memory.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var err error
		if call == "/v2/images" {
			_, err = p.ListImages(ctx)
		} else {
			_, err = p.ListNodes(ctx)
		}
		if !errors.Is(err, providers.ErrTransient) || !strings.Contains(err.Error(), "no whole list") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
