package canary

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Mistakes: a share that is exceeded by more than one; a canary that never gets a node.
func TestShare(t *testing.T) {
	for _, share := range []float64{0.5, 5, 33, 50, 100} {
		canary, previous := 0, 0
		for range 1000 {
			if May(share, canary, previous) {
				canary++
			} else {
				previous++
			}
			if all := float64(canary + previous); float64(canary) > share/100*all+1 || float64(canary) < share/100*all-1 {
				t.Fatalf("%v%%: %d of %v", share, canary, all)
			}
		}
	}
}

// Mistakes: a build that is blamed for its provider's fault, or for what is rare; one that
// goes on although it fails three times as often; nodes that boot yet count as good, or those
// that wait for a user count as nothing.
func TestWorse(t *testing.T) {
	type tally = zkmodel.Tally
	live := func(booting, booted, bootingBefore, bootedBefore int) Nodes {
		return Nodes{Live{Booting: booting, Booted: booted}, Live{Booting: bootingBefore, Booted: bootedBefore}}
	}
	for name, c := range map[string]struct {
		canary, previous tally
		live             Nodes
		least            int
		worse, known     bool
	}{
		"nothing fails":                  {tally{Served: 50}, tally{Served: 1000}, Nodes{}, 5, false, true},
		"four fail":                      {tally{Failed: 4}, tally{Served: 80}, Nodes{}, 5, false, true},
		"five fail, none before":         {tally{Failed: 2, Scans: 2, Short: 1, Served: 45}, tally{Served: 900}, Nodes{}, 5, true, true},
		"the provider fails":             {tally{Failed: 50}, tally{Failed: 950}, Nodes{}, 5, false, true},
		"twice as often":                 {tally{Short: 10, Served: 40}, tally{Short: 100, Served: 900}, Nodes{}, 5, false, true},
		"three times as often":           {tally{Short: 15, Served: 35}, tally{Short: 100, Served: 900}, Nodes{}, 5, true, true},
		"all nodes, none before":         {tally{Failed: 5}, tally{}, Nodes{}, 5, true, true},
		"fewer are enough, as is said":   {tally{Failed: 1}, tally{Served: 10}, Nodes{}, 1, true, true},
		"those before boot yet":          {tally{Failed: 5}, tally{}, live(0, 0, 80, 0), 5, true, false},
		"one hangs, three serve":         {tally{Failed: 5}, tally{Served: 3}, live(0, 0, 1, 0), 5, true, true},
		"one hangs, one serves":          {tally{Failed: 5}, tally{Served: 1}, live(0, 0, 1, 0), 5, true, false},
		"one hangs, the canary's boot":   {tally{Failed: 5}, tally{Served: 3}, live(5, 0, 1, 0), 5, true, false},
		"half of either, one hangs":      {tally{Failed: 5, Served: 5}, tally{Failed: 2, Served: 2}, live(0, 0, 1, 0), 5, false, true},
		"enough before have ended":       {tally{Failed: 40}, tally{Served: 5}, live(0, 0, 20, 0), 5, true, true},
		"some before boot yet":           {tally{Failed: 5}, tally{Failed: 26}, live(0, 0, 54, 0), 5, false, true},
		"one before boots, others serve": {tally{Failed: 5}, tally{Served: 60}, live(0, 0, 1, 0), 5, true, true},
		"those before wait for users":    {tally{Failed: 5}, tally{}, live(0, 0, 9, 5), 5, true, true},
		"the canary's wait for users":    {tally{Failed: 5}, tally{Failed: 10, Served: 90}, live(0, 45, 0, 0), 5, false, true},
		"the canary's boot yet":          {tally{Failed: 5}, tally{Failed: 10, Served: 90}, live(45, 0, 0, 0), 5, true, true},
		"few before, and none boots":     {tally{Failed: 50}, tally{Served: 1}, Nodes{}, 5, true, true},
	} {
		if worse, known := Worse(c.canary, c.previous, c.live, c.least); worse != c.worse || known != c.known {
			t.Errorf("%s: worse %t, known %t", name, worse, known)
		}
	}
}

// tree is an image with builds 1, 2 … that are ready in north; promoted is the last that
// serves, 0 for no record.
func tree(builds int, promoted int64) *zkmodel.Image {
	i := &zkmodel.Image{Name: "debian"}
	for n := range builds {
		id := string(rune('1' + n))
		b := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "debian", ID: id, State: zkmodel.BuildReady}}
		b.Stat.Czxid = int64(n + 1)
		u := &zkmodel.Upload{
			UploadKey: zkmodel.UploadKey{Image: "debian", Build: id, Provider: "north", ID: "1"}, State: zkmodel.UploadReady, ExternalID: zkmodel.TextValue("x"),
		}
		u.Stat.Czxid = int64(100 + n)
		b.Uploads = []*zkmodel.Upload{u}
		i.Builds = append(i.Builds, b)
	}
	if promoted > 0 {
		i.Canaries = []*zkmodel.Canary{{Provider: "north", Image: "debian", Promoted: zkmodel.BuildRef{Build: i.Builds[promoted-1].ID, Czxid: promoted}}}
	}
	return i
}

// Mistakes: a build that serves untried; one that is tried for ever; two canaries; a
// pinned image whose new build is tried; a build of which something was said; a build that no
// node has booted from serves all where the canary could.
func TestDecide(t *testing.T) {
	start := time.Unix(1_000_000, 0)
	trial := func(i *zkmodel.Image, build int, change func(*zkmodel.Canary)) {
		b := i.Builds[build-1]
		i.Canaries[0] = i.Canaries[0].Begin(b.Uploads[0], b.Build, zkmodel.EpochOf(start))
		i.Canaries[0].Trial.Began = zkmodel.EpochOf(start)
		i.Canaries[0].Trial.Nodes = 10
		if change != nil {
			change(i.Canaries[0])
		}
	}
	counted := func(canary, previous zkmodel.Tally) func(*zkmodel.Canary) {
		return func(c *zkmodel.Canary) {
			c.Counts = map[string]zkmodel.CanaryCounts{
				"one": {Trial: c.Trial.BuildRef, Since: c.Trial.Since, Canary: canary, Previous: previous},
				"old": {Trial: zkmodel.BuildRef{Build: "0"}, Canary: zkmodel.Tally{Failed: 100}},
			}
		}
	}
	verdict := func(i *zkmodel.Image, build int) {
		b := i.Builds[build-1]
		i.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{{Kind: zkmodel.Rejected, Provider: "north", Build: b.ID, BuildCzxid: b.Stat.Czxid}}}
	}
	for name, c := range map[string]struct {
		builds   int
		promoted int64
		change   func(*zkmodel.Image, *Sight)
		kind     Kind
		build    string
		serves   string // afterwards, by the record before
	}{
		"the first time":                        {2, 0, nil, Record, "2", "2"},
		"nothing new":                           {2, 2, nil, Nothing, "", "2"},
		"a new build":                           {3, 2, nil, Begin, "3", "2"},
		"two new builds":                        {4, 2, nil, Begin, "4", "2"},
		"the new is bad":                        {4, 2, func(i *zkmodel.Image, _ *Sight) { verdict(i, 4) }, Begin, "3", "2"},
		"the old is bad":                        {3, 2, func(i *zkmodel.Image, _ *Sight) { verdict(i, 2) }, Begin, "3", "1"},
		"nothing else":                          {2, 1, func(i *zkmodel.Image, _ *Sight) { verdict(i, 1) }, End, "2", "2"},
		"the canary is left, a newer one waits": {3, 1, func(i *zkmodel.Image, _ *Sight) { trial(i, 2, nil); verdict(i, 1) }, End, "2", "2"},
		"the same, its upload is gone":          {3, 1, func(i *zkmodel.Image, _ *Sight) { trial(i, 2, nil); i.Builds[0].Uploads = nil }, End, "2", "2"},
		"the same, the canary is bad, too": {3, 1, func(i *zkmodel.Image, _ *Sight) {
			trial(i, 2, nil)
			i.Builds[0].Uploads, i.Builds[1].Uploads = nil, nil
		}, End, "3", "3"},
		"the previous is deleted, the canary is worse": {2, 1, func(i *zkmodel.Image, _ *Sight) {
			trial(i, 2, counted(zkmodel.Tally{Failed: 5}, zkmodel.Tally{Served: 90}))
			i.Builds[0].State = zkmodel.BuildDeleting
		}, End, "2", "2"},
		"the same, and a newer one waits": {3, 1, func(i *zkmodel.Image, _ *Sight) {
			trial(i, 2, counted(zkmodel.Tally{Failed: 5}, zkmodel.Tally{Served: 90}))
			i.Builds[0].State = zkmodel.BuildDeleting
		}, Retreat, "2", "2"},
		"others know none": {3, 2, func(_ *zkmodel.Image, s *Sight) { s.Refused = "a launcher" }, Promote, "3", "2"},
		"pinned": {3, 2, func(i *zkmodel.Image, _ *Sight) {
			i.Verdicts = &zkmodel.Verdicts{Pins: []zkmodel.Pin{{Provider: "north", Build: "1", BuildCzxid: 1}}}
		}, Nothing, "", "1"},
		"the record is of another tree": {3, 2, func(i *zkmodel.Image, _ *Sight) {
			i.Canaries[0].Promoted.Czxid, i.Canaries[0].Stat.Mzxid = 1_000_000, 9
		}, Promote, "3", "3"},
		"the record is of this tree": {3, 2, func(i *zkmodel.Image, _ *Sight) { i.Canaries[0].Stat.Mzxid = 9 }, Begin, "3", "2"},
		"not all is seen":            {3, 2, func(i *zkmodel.Image, _ *Sight) { i.Unread = zkmodel.ErrUndecodable }, Nothing, "", "2"},
		"a newer one waits":          {4, 2, func(i *zkmodel.Image, _ *Sight) { trial(i, 3, nil) }, Nothing, "", "2"},
		"its verdict is told":        {3, 2, func(i *zkmodel.Image, _ *Sight) { trial(i, 3, nil); verdict(i, 3) }, Drop, "3", "2"},
		"its upload is gone":         {3, 2, func(i *zkmodel.Image, _ *Sight) { trial(i, 3, nil); i.Builds[2].Uploads = nil }, Drop, "3", "2"},
		"its upload is another":      {3, 2, func(i *zkmodel.Image, _ *Sight) { trial(i, 3, nil); i.Builds[2].Uploads[0].Stat.Czxid++ }, Drop, "3", "2"},
		"it is suspect, and no node began": {3, 2, func(i *zkmodel.Image, _ *Sight) {
			trial(i, 3, func(c *zkmodel.Canary) { c.Trial.Began, c.Trial.Nodes = 0, 0 })
			i.Builds[2].Uploads[0].Suspect = "suspect: the cloud says that it does not have it"
		}, Drop, "3", "2"},
		"it is suspect, and a newer one waits": {4, 2, func(i *zkmodel.Image, _ *Sight) {
			trial(i, 3, nil)
			i.Builds[2].Uploads[0].Suspect = "suspect"
		}, Drop, "3", "2"},
		"a suspect one is none": {3, 2, func(i *zkmodel.Image, _ *Sight) { i.Builds[2].Uploads[0].Suspect = "suspect" }, Nothing, "", "2"},
		"worse": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Failed: 5}, zkmodel.Tally{Nodes: 100, Failed: 2, Served: 90}))
			s.Now = start.Add(3 * time.Hour)
		}, Retreat, "3", "2"},
		"worse perhaps": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Failed: 5, Served: 9}, zkmodel.Tally{}))
			s.Live.Previous.Booting, s.Now = 1, start.Add(3*time.Hour)
		}, Nothing, "", "2"},
		"worse perhaps, for long": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Failed: 5, Served: 9}, zkmodel.Tally{}))
			s.Live.Previous.Booting, s.Waited = 1, Patience
		}, Retreat, "3", "2"},
		"better perhaps, for long": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Failed: 5, Served: 9}, zkmodel.Tally{Failed: 1}))
			s.Live.Previous.Booting, s.Waited, s.Now = 9, Patience, start.Add(3*time.Hour)
		}, Promote, "3", "2"},
		"good, too early": {3, 2, func(i *zkmodel.Image, s *Sight) { trial(i, 3, counted(zkmodel.Tally{Served: 9}, zkmodel.Tally{})) }, Nothing, "", "2"},
		"good": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Served: 2, Failed: 1}, zkmodel.Tally{Nodes: 100}))
			s.Live.Canary.Long, s.Now = 1, start.Add(2*time.Hour)
		}, Promote, "3", "2"},
		"too few": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, counted(zkmodel.Tally{Served: 2}, zkmodel.Tally{Nodes: 100}))
			s.Now = start.Add(2 * time.Hour)
		}, Ask, "3", "2"},
		"asked already": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, func(c *zkmodel.Canary) { c.Trial.Asked = 1 })
			s.Now = start.Add(2 * time.Hour)
		}, Nothing, "", "2"},
		"no node yet": {3, 2, func(i *zkmodel.Image, s *Sight) {
			trial(i, 3, func(c *zkmodel.Canary) { c.Trial.Began = 0 })
			s.Now = start.Add(5 * time.Hour)
		}, Nothing, "", "2"},
	} {
		i := tree(c.builds, c.promoted)
		s := Sight{
			Image: i, Provider: "north", Now: start.Add(time.Hour),
			Settings: &configs.Canary{Share: 5, For: 2 * time.Hour, MinNodes: 3, MaxFailures: 5},
		}
		if c.change != nil {
			c.change(i, &s)
		}
		serving := i.Serving("north", zkmodel.Suspect)
		d := Decide(s)
		if d.Kind != c.kind || d.Build != c.build || serving == nil || serving.Build != c.serves {
			t.Errorf("%s: %q build %q (%s); build %s serves", name, d.Kind, d.Build, d.Why, serving.Build)
		}
		if d.Watch != (name == "worse perhaps") {
			t.Errorf("%s: watch %t", name, d.Watch)
		}
		if d.Open != strings.Contains(name, "perhaps") { // else what is decided at last, and not written, waits as long anew
			t.Errorf("%s: open %t", name, d.Open)
		}
		if (d.Kind == Promote || d.Kind == End) && (d.Next.Trial != nil || d.Next.Promoted.Build != c.build) || d.Kind == Retreat && !strings.Contains(d.Why, "5 did not boot") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Mistakes: a node of before the canary that counts; one that counts although nobody can
// tell for how long it was used; a job that is counted by our clock where its user's tells.
func TestHowLongNodesWereUsed(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	since := zkmodel.EpochOf(now.Add(-time.Hour))
	b := New(Deps{Now: func() time.Time { return now }})
	c := &zkmodel.Canary{Trial: &zkmodel.Trial{BuildRef: zkmodel.BuildRef{Build: "3"}, Since: since}}
	trials := map[place]*zkmodel.Canary{{"north", "debian"}: c}
	key := zkmodel.UploadKey{Image: "debian", Build: "3", Provider: "north", ID: "1"}
	node := func(id string, state zkmodel.NodeState, ago time.Duration) *zkmodel.Node {
		n := &zkmodel.Node{ID: id, State: state, StateTime: zkmodel.EpochOf(now.Add(-ago)), Provider: "north", ImageID: key.Path()}
		n.Stat.Ctime = now
		return n
	}
	old := node("old", zkmodel.NodeInUse, time.Hour)
	old.Stat.Ctime = now.Add(-2 * time.Hour)
	other, tried := node("other", zkmodel.NodeBuilding, 0), node("tried", zkmodel.NodeBuilding, 0)
	other.ImageID = zkmodel.UploadKey{Image: "debian", Build: "2", Provider: "north", ID: "1"}.Path()
	tried.Validates = "another upload"
	live := b.See([]*zkmodel.Node{
		node("short", zkmodel.NodeInUse, time.Second), node("long", zkmodel.NodeInUse, time.Minute), other, tried,
		node("flash", zkmodel.NodeReady, time.Hour), node("late", zkmodel.NodeReady, time.Hour), old,
		node("failed", zkmodel.NodeFailed, 0), node("gone", zkmodel.NodeDeleting, 0),
	}, trials)
	if want := (Nodes{Live{Booted: 4, Long: 1}, Live{Booting: 1}}); live[place{"north", "debian"}] != want {
		t.Errorf("there are %+v, want %+v", live, want)
	}
	outcome := func(id string) string {
		notes := b.Ended(node(id, zkmodel.NodeUsed, 0))
		if len(notes) == 0 {
			return "nothing"
		}
		return map[what]string{short: "short", served: "served"}[notes[0].what]
	}
	for id, want := range map[string]string{"short": "short", "long": "served", "flash": "short", "never seen": "nothing", "old": "nothing"} {
		if got := outcome(id); got != want {
			t.Errorf("%s counts as %s, want %s", id, got, want)
		}
	}
	now = now.Add(time.Minute)
	if got := outcome("late"); got != "nothing" {
		t.Errorf("seen ready a minute ago, it counts as %s", got)
	}
	b.See(nil, trials)
	if len(b.uses) != 0 {
		t.Errorf("nodes that are gone are kept: %v", b.uses)
	}
}

// Nothing is decided about a canary for so long at most, from the first look on that found it open.
// Mistakes: a wait that begins anew with each look; one that goes on from an earlier canary's, or
// from before it was decidable.
func TestHowLongACanaryIsOpen(t *testing.T) {
	at, start := place{"north", "debian"}, time.Unix(1_000_000, 0)
	canary := func(id string) *zkmodel.Canary {
		return &zkmodel.Canary{Trial: &zkmodel.Trial{BuildRef: zkmodel.BuildRef{Build: id}}}
	}
	k := &Keeper{trials: map[place]*zkmodel.Canary{at: canary("3")}}
	look := func(after time.Duration, open bool, want time.Duration) {
		t.Helper()
		now := start.Add(after)
		if got := k.waited(at, now); got != want {
			t.Errorf("after %s it is open for %s, not %s", after, got, want)
		}
		k.opened(at, open, now)
	}
	look(0, true, 0)
	look(time.Minute, true, time.Minute)
	look(2*time.Minute, false, 2*time.Minute)
	look(3*time.Minute, true, 0)
	look(4*time.Minute, true, time.Minute)
	k.trials[at] = canary("4")
	look(5*time.Minute, true, 0)
	look(6*time.Minute, true, time.Minute)
}
