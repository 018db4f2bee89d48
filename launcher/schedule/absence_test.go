package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// offered is a record of what launcher nl02 offered in provider b.
func offered(left bool, at time.Time, labels ...string) map[string]zkmodel.Offer {
	o := zkmodel.Offer{
		Hostname: "nl02", Provider: "b", Pool: "main", Labels: labels, Left: left, Stat: recipe.Stat{Mtime: at},
	}
	return map[string]zkmodel.Offer{o.Path(): o}
}

// component is a registered pool of launcher host in provider b.
func component(host string, labels ...string) *zkmodel.Component {
	return &zkmodel.Component{
		Hostname: host, ID: host + "-b-main", Kind: zkmodel.KindPool, PoolName: "main", ProviderName: "b", SupportedLabels: labels,
	}
}

// While a pool is away that could serve a request, ours decline nothing, and nothing
// fails: neither what they lack nor what everybody else has declined.
func TestAwaited(t *testing.T) {
	now := time.Unix(1000, 0)
	const grace = time.Minute
	mine := component("nl01")
	mine.ID, mine.ProviderName, mine.SupportedLabels = "launcher-cloud-main", "cloud", zkmodel.Strings{"a", "b"}
	for name, tc := range map[string]struct {
		known      map[string]zkmodel.Offer
		registered []*zkmodel.Component
		ahead      time.Duration
		labels     []string
		want       string
		again      time.Duration
	}{
		"nobody had it":              {nil, nil, 0, []string{"x"}, "decline", 0},
		"its launcher has just left": {offered(false, now.Add(-time.Hour), "x"), nil, 0, []string{"x"}, "wait", 0},
		"a moment ago":               {offered(true, now.Add(-10*time.Second), "x"), nil, 0, []string{"x"}, "wait", 50 * time.Second},
		"for too long":               {offered(true, now.Add(-grace), "x"), nil, 0, []string{"x"}, "decline", 0},
		"our clock is late":          {offered(true, now.Add(time.Hour-grace), "x"), nil, time.Hour, []string{"x"}, "decline", 0},
		"our clock is early":         {offered(true, now.Add(-time.Hour), "x"), nil, -time.Hour, []string{"x"}, "wait", grace},
		"it had one of two labels":   {offered(false, now, "x"), nil, 0, []string{"x", "a"}, "decline", 0},
		"it had both":                {offered(false, now, "a", "x"), nil, 0, []string{"x", "a"}, "wait", 0},
		"it is back without it":      {offered(false, now, "x"), []*zkmodel.Component{component("nl02", "y")}, 0, []string{"x"}, "decline", 0},
		"another has the pool":       {offered(false, now, "x"), []*zkmodel.Component{component("nl03", "x")}, 0, []string{"x"}, "yield", 0},
		"we have the label":          {offered(false, now, "a"), nil, 0, []string{"a"}, "accept", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Snapshot{
				Now: now, Pools: []*Pool{aPool()}, Registered: append(tc.registered, mine),
				Requests: []*zkmodel.Request{aRequest("100-1", tc.labels...)},
				Away:     Absences(tc.known, append(tc.registered, mine), grace, now, tc.ahead),
			}
			d := Assign(s)[0]
			var again time.Time
			if w, waits := d.(Wait); waits {
				again = w.Again
			}
			if d.Verdict() != tc.want || tc.again != 0 && !again.Equal(now.Add(tc.again)) {
				t.Errorf("%s (%s) until %s, want %s", d.Verdict(), d.Why(), again, tc.want)
			}
			if d.Verdict() == "wait" && !strings.Contains(d.Why(), "nl02") {
				t.Errorf("the reason %q does not say for whom", d.Why())
			}
			s.Requests[0].DeclinedBy = []string{"launcher-cloud-main", "nl03-b-main"}
			if d := Assign(s)[0]; (d.Verdict() == "wait") != (tc.want == "wait" || slices.Contains(tc.labels, "a") && len(tc.labels) == 1) {
				t.Errorf("when all have declined: %s (%s)", d.Verdict(), d.Why())
			}
			if Absences(tc.known, s.Registered, 0, now, tc.ahead) != nil {
				t.Error("somebody is waited for with launcher-grace 0")
			}
		})
	}
}

// Of those that left some are equal; which of them is told of is the same each time.
func TestAbsencesHaveAnOrder(t *testing.T) {
	known := map[string]zkmodel.Offer{}
	var want []string
	for i := range 9 {
		o := zkmodel.Offer{Hostname: fmt.Sprintf("nl%02d", i), Provider: "cloud", Pool: "main", Labels: zkmodel.Strings{"a"}}
		known[o.Path()] = o
		want = append(want, o.Hostname)
	}
	for range 9 {
		var got []string
		for _, a := range Absences(known, nil, time.Minute, time.Now(), 0) {
			got = append(got, a.Launcher)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}
