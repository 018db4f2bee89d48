package openstack

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"poolkeeper/providers"
)

// How long answers took is told by kinds that ids do not multiply. Mistakes: a kind for each server; a call that
// was never answered; a bound that leaves out what took exactly so long.
func TestCalls(t *testing.T) {
	s := newStub(t)
	p := s.open(t, section())
	if got := p.Calls(); len(got) > 0 {
		t.Errorf("before the first call: %+v", got)
	}
	for range 2 {
		if _, err := p.ListNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"11111111-0000-0000-0000-000000000001", "11111111-0000-0000-0000-000000000002"} {
		_ = p.DeleteImage(t.Context(), id) // it may not be there: that is an answer, too
	}
	got := map[string]uint64{}
	for _, c := range p.Calls() {
		got[c.Operation] = c.Count
		if c.Within[30] != c.Count || c.Seconds <= 0 || len(c.Within) != 9 {
			t.Errorf("told %+v", c)
		}
	}
	if got["GET servers"] != 2 || got["DELETE images"] != 2 || got["POST tokens"] != 1 {
		t.Errorf("counted %v", got)
	}
}

// Bounds count what took no longer than they say.
func TestCallsWithin(t *testing.T) {
	var c calls
	for path, want := range map[string]string{
		"/compute/v2.1/servers/5f0c/action": "POST servers/action", "/v3/auth/tokens": "POST tokens", "/image/v2/images/5f0c/import": "POST images/import", "/5f0c": "POST other",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://cloud.example"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		c.answered(r, 250*time.Millisecond)
		all := c.Calls()
		at := slices.IndexFunc(all, func(one providers.Calls) bool { return one.Operation == want })
		if at < 0 {
			t.Errorf("%s is not counted as %s", path, want)
			continue
		}
		if one := all[at]; one.Within[0.1] != 0 || one.Within[0.25] != 1 || one.Within[30] != 1 {
			t.Errorf("%s is counted as %+v", path, one)
		}
	}
}
