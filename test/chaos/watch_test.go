package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/providers"
	"poolkeeper/providers/fake"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// lookEvery is how often the tree and the clouds are looked at, imagesEvery how often
	// at images.
	lookEvery   = 200 * time.Millisecond
	imagesEvery = time.Second
	// oddTime is how long something may be odd: until what was killed has come
	// back or was noticed, and its successor, perhaps killed too, has cleaned up.
	oddTime = 45 * time.Second
	// leakTime is how long it may take after the last fault until what has no record any more
	// is found: two searches, a minute apart, by one launcher.
	leakTime = 4 * time.Minute
	// freshTime is how long a node that a patient requestor gave back, as a server
	// went, may lie in stock beside the others.
	freshTime = 20 * time.Second
	// holdSlack is how much earlier a hold may end: daemons ask ZooKeeper what time it is, and
	// on a slow network know it by half of what that took.
	holdSlack = 500 * time.Millisecond
	// mostErrors are shown; the rest is counted.
	mostErrors = 30
)

// watch looks at the clouds and the tree all the time.
type watch struct {
	t      *testing.T
	w      *world
	client *recipe.Client
	clouds map[string]*fake.Provider
	others map[string]string // what another installation has in the clouds
	images *imageRules
	flow   flow

	mu      sync.Mutex
	counts  map[string]int
	taken   map[string]string        // node, and how often the tree had gone back, to who was given it
	kept    map[string]time.Time     // node to when it may go at the earliest
	spared  time.Time                // when a node of kept was last given back
	waits   map[int][]time.Duration  // of plain requests, by priority
	since   map[string]time.Time     // what is odd, since when
	oddest  map[string]time.Duration // how long things were odd at most, by why
	nodes   []*zkmodel.Node          // of the last look
	excused map[string]excuse        // what may be in a cloud without a record, by its id there
	lying   map[string]time.Time     // until when each cloud may refuse for lack of room
	era     int                      // how often the tree had gone back
	// when the tree was first seen of that time, and images
	seenEra, imagesEra int
	seen, imagesSeen   time.Time
}

// excuse is why something is in a cloud without a record, and since when.
type excuse struct {
	why   string
	since time.Time
}

func newWatch(t *testing.T, w *world) *watch {
	t.Helper()
	client, err := recipe.Dial(recipe.Config{Servers: w.ensemble.Addrs()})
	w.must(err)
	t.Cleanup(client.Close)
	v := &watch{
		t: t, w: w, client: client, clouds: map[string]*fake.Provider{}, images: newImageRules(), counts: map[string]int{},
		taken: map[string]string{}, kept: map[string]time.Time{}, waits: map[int][]time.Duration{},
		since: map[string]time.Time{}, oddest: map[string]time.Duration{}, excused: map[string]excuse{}, lying: map[string]time.Time{},
	}
	for _, name := range cloudNames() {
		v.clouds[name] = w.open(name)
	}
	v.others = w.others(v.clouds)
	return v
}

// run checks what must always hold, until ctx ends.
func (v *watch) run(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var images time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		v.look(ctx)
		if time.Since(images) > imagesEvery {
			images = time.Now()
			v.lookAtImages(ctx)
		}
		v.flow.check(time.Now(), v.w.faults.isUnled(), v.honest, v.wrong)
	}
}

// look is one look at nodes and requests.
func (v *watch) look(ctx context.Context) {
	era := len(v.w.faults.backs())
	l, err := v.glance(ctx)
	if len(v.w.faults.backs()) != era || v.w.faults.isGoing() {
		return // half of it is of another time
	}
	v.enter(era, l != nil)
	if l != nil {
		v.count("looks")
		v.excuseLeaks(l)
		v.othersAreThere(l)
		machineRules(l, v.wrong)
	}
	switch {
	case err == nil:
		v.count("looks at one moment")
		v.check(l)
	case errors.Is(err, errMoving):
		v.count("looks while something moved")
	default: // no server, as a rule
		v.count("looks in vain")
	}
}

// lookAtImages is one look at images.
func (v *watch) lookAtImages(ctx context.Context) {
	backs := v.w.faults.backs()
	g, err := v.gallery(ctx)
	if err != nil || len(v.w.faults.backs()) != len(backs) || v.w.faults.isGoing() {
		return
	}
	v.count("looks at images")
	v.images.check(g, backs, v.wrong)
	v.othersImages(g)
	v.mu.Lock()
	if v.imagesEra != len(backs) {
		v.imagesEra, v.imagesSeen = len(backs), time.Now()
	}
	recent := len(backs) > 0 && time.Since(v.imagesSeen) < settleBack
	var wrong []string
	for id, what := range g.nameless(recent) {
		if _, known := v.excused[id]; known {
			continue
		}
		v.excused[id] = excuse{what, time.Now()} // told once
		if !recent {
			wrong = append(wrong, id+": "+what)
		}
	}
	v.mu.Unlock()
	for _, what := range wrong {
		v.wrong("%s", what)
	}
}

// settleBack is how long what was under way when the tree went back may still make things,
// from when on we see the tree.
const settleBack = 10 * time.Second

// enter begins another time, when the tree has gone back: what was true before it is not
// remembered.
func (v *watch) enter(era int, seen bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if seen && v.seenEra != era {
		v.seenEra, v.seen = era, time.Now()
	}
	if era == v.era {
		return
	}
	v.era = era
	v.kept, v.since = map[string]time.Time{}, map[string]time.Time{}
	v.spared = time.Now().Add(oddTime)
}

// sinceBack is how long ago the tree went back last.
func (v *watch) sinceBack() time.Duration {
	if backs := v.w.faults.backs(); len(backs) > 0 {
		return time.Since(backs[len(backs)-1])
	}
	return time.Hour
}

// excuseLeaks notes machines whose records went with the time in which they were made, and
// takes what is excused out of the look. As long as they are there, a cloud has less room than
// the records say. One that has a record is none of them: it was only seen before that.
// It returns those that are there, and why. Images take two searches ten minutes apart, and so
// stay beyond the end.
func (v *watch) excuseLeaks(l *look) map[string]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	recorded, left := map[string]bool{}, map[string]string{}
	for _, n := range l.nodes {
		recorded[n.ExternalID.Text()] = true
	}
	for provider, list := range l.machines {
		l.machines[provider] = slices.DeleteFunc(list, func(m providers.NodeInfo) bool {
			_, known := v.excused[m.ExternalID]
			if !known && !recorded[m.ExternalID] && v.era > 0 && time.Since(v.seen) < settleBack && m.Metadata[providers.MetaSite] != otherSite {
				v.excused[m.ExternalID] = excuse{"machine without a record since the tree went back", l.at}
				known = true
			}
			if known = known && !recorded[m.ExternalID]; known {
				left[m.ExternalID] = v.excused[m.ExternalID].why
				v.liesUntil(provider, time.Now().Add(oddTime))
			}
			return known
		})
	}
	return left
}

// othersAreThere: what another installation has is there, and is not ours to count.
func (v *watch) othersAreThere(l *look) {
	there := map[string]bool{}
	for provider, list := range l.machines {
		l.machines[provider] = slices.DeleteFunc(list, func(m providers.NodeInfo) bool {
			there[m.ExternalID] = true
			return m.Metadata[providers.MetaSite] == otherSite
		})
	}
	for id, what := range v.others {
		if strings.HasPrefix(what, "machine") && !there[id] {
			delete(v.others, id)
			v.wrong("the %s of another installation was deleted: %s", what, id)
		}
	}
}

// othersImages is the same for images.
func (v *watch) othersImages(g *gallery) {
	there := map[string]bool{}
	for _, list := range g.clouds {
		for _, image := range list {
			there[image.ExternalID] = true
		}
	}
	for id, what := range v.others {
		if strings.HasPrefix(what, "image") && !there[id] {
			delete(v.others, id)
			v.wrong("the %s of another installation was deleted: %s", what, id)
		}
	}
}

// orphan excuses a machine whose record goes by hand.
func (v *watch) orphan(id, why string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.excused[id] = excuse{why, time.Now()}
	v.spared = time.Now()
}

// lies excuses refusals of a cloud, for some time and until they are forgotten.
func (v *watch) lies(provider string, d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.liesUntil(provider, time.Now().Add(d+oddTime))
}

// liesUntil is called with mu held.
func (v *watch) liesUntil(provider string, until time.Time) {
	if until.After(v.lying[provider]) {
		v.lying[provider] = until
	}
}

// honest reports whether a cloud has, and has had for a while, all the room that it tells of.
func (v *watch) honest(provider string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !time.Now().Before(v.lying[provider])
}

// latest are the nodes of the last look.
func (v *watch) latest() []*zkmodel.Node {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.nodes)
}

// check holds one moment against the rules.
func (v *watch) check(l *look) {
	v.mu.Lock()
	v.nodes = l.nodes
	strict := time.Since(v.spared) > freshTime
	kept := maps.Clone(v.kept)
	v.mu.Unlock()
	if strict {
		v.count("looks at which the stock was counted exactly")
	}
	if v.honest("south") { // the one cloud that its pools can fill
		v.count("looks at which the cloud that can be full was honest")
	}
	recordRules(l, v.w.limited, v.honest, v.wrong)
	if v.sinceBack() > oddTime {
		requestRules(l, v.wrongOfTree)
		stockRules(l, strict, v.wrong)
	}
	for id, until := range kept {
		if l.by.Before(until.Add(-holdSlack)) && l.node(id) == nil && v.release(id) {
			v.wrong("node %s went %s before its hold was over", id, until.Sub(l.by))
		}
	}
	v.grumble(l)
}

// grumble complains once of what is odd for too long.
func (v *watch) grumble(l *look) {
	v.mu.Lock()
	odd := oddities(l)
	for what := range v.since {
		if odd[what] == "" {
			delete(v.since, what)
		}
	}
	limit := oddTime
	if v.sinceBack() < leakTime {
		limit = leakTime
	}
	var late []string
	for what, why := range odd {
		first, known := v.since[what]
		if !known {
			first = l.at
			v.since[what] = first
		}
		age := l.at.Sub(first)
		if before := v.oddest[why]; age > limit && before <= limit {
			late = append(late, fmt.Sprintf("%s: %s for %s", what, why, age))
		}
		v.oddest[why] = max(v.oddest[why], age)
	}
	v.mu.Unlock()
	for _, one := range late {
		v.wrong("%s", one)
	}
}

// wrong notes what must not happen.
func (v *watch) wrong(format string, args ...any) {
	v.t.Helper()
	what := fmt.Sprintf(format, args...)
	v.w.faults.note("WRONG", what)
	if v.count("violations") <= mostErrors {
		v.t.Errorf("%s %s", time.Now().Format(clockTime), what)
	}
}

// wrongOfTree is wrong, and compares the servers: what nobody has done may be theirs.
func (v *watch) wrongOfTree(format string, args ...any) {
	v.wrong(format, args...)
	if v.count("times that servers were compared") <= 2 {
		v.w.compareServers()
	}
}

// count counts, and tells how many there are now.
func (v *watch) count(what string) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.counts[what]++
	return v.counts[what]
}

// take notes who was given a node; false when another one was before, unless the tree has
// gone back since.
func (v *watch) take(node, who string) bool {
	node = fmt.Sprint(len(v.w.faults.backs()), " ", node)
	v.mu.Lock()
	defer v.mu.Unlock()
	first := v.taken[node] == ""
	v.taken[node] = who
	return first
}

// keep notes until when a node is held.
func (v *watch) keep(node string, until time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.kept[node] = until
}

// release forgets that a node is held; false when it was forgotten before.
func (v *watch) release(node string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, there := v.kept[node]
	delete(v.kept, node)
	return there
}

// spare notes that a node of kept may have come back.
func (v *watch) spare() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Now().After(v.spared) {
		v.spared = time.Now()
	}
}

// served notes how long a request took.
func (v *watch) served(w wish, took time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if w.plain {
		v.waits[w.Priority] = append(v.waits[w.Priority], took)
	}
}
