package reap

import (
	"errors"
	"strings"
	"testing"
	"time"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

var errUnreadable = errors.New("unreadable")

// What is due to one unlocked node, and after how long. Mistakes: a node that is in use, or of which nobody can tell
// whose it is, is deleted; one that nobody has stays for ever.
func TestWhatIsDue(t *testing.T) {
	t.Parallel()
	written := time.Unix(2_000_000_000, 0)
	taken := func(n *zkmodel.Node) { n.AllocatedTo = "200-1" }
	main := schedule.PoolKey{Provider: "cloud", Pool: "main"}
	stock := func(n *zkmodel.Node) {
		n.AllocatedTo, n.Requestor, n.Launcher = "200-9", schedule.MinReadyRequestor, "gone"
	}
	for name, c := range map[string]struct {
		state  zkmodel.NodeState
		change func(n *zkmodel.Node)
		rules  func(r *Rules)
		want   Duty
		after  time.Duration
		why    string
	}{
		"locked":                             {state: zkmodel.NodeUsed, change: func(n *zkmodel.Node) { n.Locked = true }, want: DutyNone},
		"ours":                               {state: zkmodel.NodeUsed, change: func(n *zkmodel.Node) { n.ID = "mine" }, want: DutyNone},
		"of a provider that we do not serve": {state: zkmodel.NodeUsed, change: func(n *zkmodel.Node) { n.Provider = "far" }, want: DutyNone},
		"deleted by an operator, of nobody":  {state: zkmodel.NodeDeleting, change: func(n *zkmodel.Node) { n.Provider = "" }, want: DutyRemove, why: "it is deleting"},
		"of nobody":                          {state: zkmodel.NodeUsed, change: func(n *zkmodel.Node) { n.Provider = "" }, want: DutyNone},
		"deleted in a cloud of others":       {state: zkmodel.NodeDeleting, change: func(n *zkmodel.Node) { n.Provider = "far" }, want: DutyNone},
		"what it is cannot be told":          {state: zkmodel.NodeUsed, change: func(n *zkmodel.Node) { n.Broken, n.Stat.Version = errUnreadable, 1 }, want: DutyNone},
		"a lock came too late":               {change: func(n *zkmodel.Node) { n.Broken, n.Stat.Czxid, n.Provider = errUnreadable, 7, "" }, want: DutyRemove, after: orphanTime, why: "its record is empty"},
		"used":                               {state: zkmodel.NodeUsed, change: taken, want: DutyRemove, why: "it is used"},
		"in use":                             {state: zkmodel.NodeInUse, change: taken, want: DutyRemove, after: lossTime, why: "the session that had it is gone"},
		"in launch, its launcher is gone":    {state: zkmodel.NodeBuilding, change: stock, want: DutyRemove, after: lossTime, why: "the session that had it is gone"},
		"in launch for a request":            {state: zkmodel.NodeBuilding, change: taken, want: DutyNone},
		"never begun":                        {state: zkmodel.NodeInit, change: stock, want: DutyRecover, after: lossTime, why: "its request is gone"},
		"of another's state":                 {state: "melting", want: DutyNone},
		"ready for a request":                {state: zkmodel.NodeReady, change: taken, want: DutyNone},
		"ready for one that is gone":         {state: zkmodel.NodeReady, change: func(n *zkmodel.Node) { n.AllocatedTo = "200-9" }, want: DutySettle, why: "request 200-9 is gone"},
		"ready, young":                       {state: zkmodel.NodeReady, want: DutySettle, after: time.Hour, why: "it was ready for 1h0m0s"},
		"ready, its build was rejected":      {state: zkmodel.NodeReady, rules: func(r *Rules) { r.Judged = map[string]string{"7": "rejected"} }, want: DutySettle, why: "its build was rejected"},
		"ready, its provider is drained":     {state: zkmodel.NodeReady, rules: func(r *Rules) { r.Drained = map[string]string{"cloud": "ann drains it"} }, want: DutySettle, why: "ann drains it"},
		"ready, its pool is disabled":        {state: zkmodel.NodeReady, rules: func(r *Rules) { r.Disabled = map[schedule.PoolKey]bool{main: true} }, want: DutySettle, why: "its pool is disabled"},
		"its pool is disabled, and it is left out": {state: zkmodel.NodeReady, rules: func(r *Rules) {
			r.Disabled, r.Frozen = map[schedule.PoolKey]bool{main: true}, map[string]bool{"7": true}
		}, want: DutyNone},
		"a machine of a drained provider that exists already": {state: zkmodel.NodeReady, change: func(n *zkmodel.Node) { n.Launcher = schedule.StaticLauncher }, rules: func(r *Rules) {
			r.Drained, r.Disabled = map[string]string{"cloud": "ann drains it"}, map[schedule.PoolKey]bool{main: true}
		}, want: DutyNone},
		"held":                          {state: zkmodel.NodeHold, want: DutyExpire, after: time.Hour, why: "it was held for 1h0m0s"},
		"held for a minute":             {state: zkmodel.NodeHold, change: func(n *zkmodel.Node) { n.HoldExpiration = 60 }, want: DutyExpire, after: time.Minute},
		"held, left out":                {state: zkmodel.NodeHold, rules: func(r *Rules) { r.Frozen = map[string]bool{"7": true} }, want: DutyNone},
		"held for two hours, left out":  {state: zkmodel.NodeHold, change: func(n *zkmodel.Node) { n.HoldExpiration = 7200 }, rules: func(r *Rules) { r.Frozen = map[string]bool{"7": true} }, want: DutyExpire, after: 2 * time.Hour},
		"held, no limit":                {state: zkmodel.NodeHold, rules: func(r *Rules) { r.Hold = 0 }, want: DutyNone},
		"stock that we keep, begun":     {state: zkmodel.NodeBuilding, change: stock, rules: keepStock, want: DutyAdopt, after: lossTime, why: "its request for stock is gone"},
		"stock that we keep, not begun": {state: zkmodel.NodeInit, change: stock, rules: keepStock, want: DutyAdopt, after: lossTime},
		"stock that we keep, used":      {state: zkmodel.NodeUsed, change: stock, rules: keepStock, want: DutyRemove},
		"stock whose request is there":  {state: zkmodel.NodeBuilding, change: func(n *zkmodel.Node) { stock(n); n.AllocatedTo = "200-2" }, rules: keepStock, want: DutyRemove, after: lossTime},
		"of a requestor":                {state: zkmodel.NodeBuilding, change: func(n *zkmodel.Node) { stock(n); n.Requestor = "zuul" }, rules: keepStock, want: DutyRemove, after: lossTime},
		"nobody's, of the stock":        {state: zkmodel.NodeBuilding, change: func(n *zkmodel.Node) { stock(n); n.AllocatedTo = "" }, rules: keepStock, want: DutyRemove, after: lossTime},
		"stock of another pool":         {state: zkmodel.NodeBuilding, change: func(n *zkmodel.Node) { stock(n); n.Pool = "more" }, rules: keepStock, want: DutyRemove, after: lossTime},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := aNode(c.state)
			n.StateTime, n.Stat = zkmodel.EpochOf(written), recipe.Stat{Mtime: written}
			if c.change != nil {
				c.change(n)
			}
			rules := Rules{Ages: Ages{Hold: time.Hour, Ready: map[string]time.Duration{"a": time.Hour}}, Served: map[string]bool{"cloud": true}}
			if c.rules != nil {
				c.rules(&rules)
			}
			s := &schedule.Snapshot{
				Nodes: []*zkmodel.Node{n}, Registered: []*zkmodel.Component{{ID: "here"}},
				Requests: []*zkmodel.Request{{ID: "200-1", State: zkmodel.RequestPending}, {ID: "200-2", State: zkmodel.RequestFulfilled}},
			}
			look := func(after time.Duration) ([]Reaping, time.Time) {
				s.Now = written.Add(after)
				return Due(s, NewDuties(), func(id string) bool { return id == "mine" }, rules)
			}
			list, again := look(c.after)
			switch {
			case c.want == DutyNone:
				if list, again := look(1000 * time.Hour); len(list) > 0 || !again.IsZero() {
					t.Errorf("%+v is due, or at %s", list, again)
				}
			case len(list) != 1 || list[0].Duty != c.want || list[0].Node != n || !strings.HasPrefix(list[0].Why, c.why) || !again.IsZero():
				t.Errorf("%+v is due, want %s: %s", list, c.want, c.why)
			}
			if c.after > 0 {
				if list, again := look(c.after - 1); len(list) > 0 || !again.Equal(written.Add(c.after)) {
					t.Errorf("a moment before: %+v, again at %s", list, again)
				}
			}
		})
	}
}

// keepStock keeps label a of the pool main in stock.
func keepStock(r *Rules) {
	r.Stocked = map[schedule.PoolKey][]string{{Provider: "cloud", Pool: "main"}: {"a"}}
}

// Each state that we know of a request has its duty, by which it is served or taken over.
func TestDutiesOfRequests(t *testing.T) {
	t.Parallel()
	for state, want := range map[zkmodel.RequestState]Duty{
		zkmodel.RequestRequested: DutyAssign, zkmodel.RequestPending: DutyReclaim, zkmodel.RequestFulfilled: DutyNone, "melting": DutyNone,
	} {
		if got := NewDuties().Request(state); got != want {
			t.Errorf("%s: %s, want %s", state, got, want)
		}
	}
}
