package schedule

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/zkmodel"
)

// What is decided follows from no text: somebody who left a reason empty once had a
// request accepted for it, as an empty reason said that nothing was in its way.
func TestAnEmptyReasonDecidesNothing(t *testing.T) {
	r := aRequest("100-1", "a")
	for name, c := range map[string]struct {
		snapshot Snapshot
		want     string
	}{
		"left out of the configuration": {Snapshot{Pools: []*Pool{aPool(func(p *Pool) { p.Frozen = map[string]string{"a": ""} })}}, "wait"},
		"its launch failed here":        {Snapshot{Pools: []*Pool{aPool()}, Failed: map[string]map[string]string{r.ID: {aPool().ID: ""}}}, "decline"},
	} {
		c.snapshot.Requests = []*zkmodel.Request{r}
		if got := verdicts(Assign(&c.snapshot)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Of answers of one kind the best is chosen, and no kind is taken for another: a pool
// that declines must not hide one that has room, nor one that waits one that accepts.
func TestBetterAnswersCountFirst(t *testing.T) {
	accepts := aPool(func(p *Pool) { p.ID, p.Provider = "yes", "yes" })
	waits := aPool(func(p *Pool) { p.ID, p.Provider, p.Unavailable = "later", "later", "provider later is not open yet" })
	declines := aPool(func(p *Pool) { p.ID, p.Provider, p.Disabled = "never", "never", true })
	leaves := aPool(func(p *Pool) { p.ID, p.Provider, p.Idle = "others", "others", true })
	for _, c := range []struct {
		pools []*Pool
		want  string
	}{
		{[]*Pool{leaves, declines, waits, accepts}, "accept"},
		{[]*Pool{leaves, declines, waits}, "wait"},
		{[]*Pool{leaves, declines}, "decline"},
		{[]*Pool{leaves}, "yield"},
		{nil, "yield"},
	} {
		s := &Snapshot{Pools: c.pools, Requests: []*zkmodel.Request{aRequest("100-1", "a")}}
		if d := Assign(s)[0]; d.Verdict() != c.want || d.Why() == "" {
			t.Errorf("%d pools: %s (%s), want %s", len(c.pools), d.Verdict(), d.Why(), c.want)
		}
	}
}

// A request that waits tells why, in the words of the last look; one that a pool of ours
// declined keeps what it was told then, and one that has moved on since keeps its own.
// What is listed is a copy: written into the request, the words would reach its record.
func TestWaitingRequestsTellWhy(t *testing.T) {
	waits, declined, accepted, pending := aRequest("100-1", "a"), aRequest("100-2", "a"), aRequest("100-3", "a"), aRequest("100-4", "a")
	declined.Reason, pending.State = "no pool has the label a", zkmodel.RequestPending
	last := []Decision{
		Wait{About: About{Request: waits, Reason: "room in the cloud"}},
		Wait{About: About{Request: declined, Reason: "room in the cloud"}},
		Accept{About: About{Request: accepted}},
		Yield{About: About{Request: pending, Reason: "another may take it"}},
	}
	list := Explain([]*zkmodel.Request{waits, declined, accepted, pending}, last, func(r *zkmodel.Request) bool { return r == declined })
	for i, want := range []string{"room in the cloud", "no pool has the label a", "", ""} {
		if list[i].Reason != want {
			t.Errorf("request %s: %q, want %q", list[i].ID, list[i].Reason, want)
		}
	}
	if waits.Reason != "" {
		t.Errorf("the request itself was changed: %q", waits.Reason)
	}
}

// What a round asks for goes into the next: a grace that begins anew in each round leaves
// a request to another launcher for ever, also when an error had it left alone between;
// and the grace of a request that is gone is forgotten.
func TestWhatFollowsFromARound(t *testing.T) {
	now := time.Now()
	first, second := now.Add(time.Second), now.Add(2*time.Second)
	about := func(id string) About { return About{Request: aRequest(id, "a")} }
	snap := &Snapshot{Since: map[string]time.Time{"busy": now, "gone": now, "waits": now}, Busy: map[string]bool{"busy": true}}
	out := Follows(snap, []Decision{
		Yield{About: about("yields"), Since: now, Again: second},
		Wait{About: about("waits"), Since: first, Again: first, NeedsQuota: true, Pool: &Pool{Provider: "north"}, Evict: []string{"1", "2"}},
		Wait{About: about("others"), Evict: []string{"3"}}, // for a pool that may come back
		Accept{About: about("accepted"), Since: now},
		Accept{About: about("ours")},
		Decline{About: about("declined")},
	})
	want := Outcome{
		Since:  map[string]time.Time{"yields": now, "waits": first, "accepted": now, "busy": now},
		Again:  first,
		Quotas: map[string]bool{"north": true},
		Evict:  []string{"1", "2", "3"},
	}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
