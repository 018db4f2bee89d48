// Package overview is what a site is at, on one screen: how fresh images are, what needs
// attention, what is in use, who waits and who runs. It is a pure function of the tree, as it
// was read once, and of the configuration.
package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/wave"
)

// Version is that of the JSON: keys are added to it, and none changes its meaning.
const Version = "v1"

// State says in a word how a site is.
type State string

// The states.
const (
	Well      State = "ok"
	Attention State = "attention" // something needs a person, some time
	Urgent    State = "urgent"    // and now: see attention.Item
)

// Report is the overview. Its JSON is documented in docs/status.md: times are RFC 3339,
// durations in seconds.
type Report struct {
	Version   string     `json:"version"`
	Time      time.Time  `json:"time"`
	State     State      `json:"state"`
	Attention []Matter   `json:"attention"`
	Images    []Image    `json:"images"`
	Providers []Capacity `json:"providers"`
	Pools     []Capacity `json:"pools"`
	Requests  Waiting    `json:"requests"`
	Waves     []Wave     `json:"waves"`
	Trials    []Trial    `json:"trials"`
	Pauses    []Pause    `json:"pauses"`
	Daemons   []Daemon   `json:"daemons"`
	// Configuration is the number of the fleet's version; 0 where daemons have files.
	Configuration uint64 `json:"configuration,omitempty"`
	// Rollout is how far that has come; nil where daemons have files.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Items is what Attention was folded of.
	Items []attention.Item `json:"-"`
}

// Matter is what needs attention, alike things in one.
type Matter struct {
	Kind      attention.Kind `json:"kind"`
	Urgent    bool           `json:"urgent"`
	Count     int            `json:"count"`
	What      string         `json:"what"`
	Why       string         `json:"why,omitempty"`
	Since     *time.Time     `json:"since,omitempty"`
	Do        string         `json:"do"` // what to type
	Images    []string       `json:"images,omitempty"`
	Providers []string       `json:"providers,omitempty"`
}

// Wave is one that is under way.
type Wave struct {
	ID     string             `json:"id"`
	State  wave.State         `json:"state"`
	Jobs   int                `json:"jobs"`
	Counts map[wave.State]int `json:"counts"`
	Since  time.Time          `json:"since"`
	By     string             `json:"by,omitempty"`
	Reason string             `json:"reason,omitempty"`
	Note   string             `json:"note,omitempty"` // why it does not go on
}

// Over is how many of its jobs are over.
func (w *Wave) Over() int {
	return w.Counts[wave.Completed] + w.Counts[wave.Failed] + w.Counts[wave.Cancelled]
}

// Words says how far it has come.
func (w *Wave) Words() string {
	text := fmt.Sprintf("%d/%d jobs, %d failed", w.Over(), w.Jobs, w.Counts[wave.Failed])
	if held := w.Counts[wave.Held]; held > 0 {
		text += fmt.Sprintf(", %d held", held)
	}
	return text
}

// Pause is something that a person or the configuration keeps from going on.
type Pause struct {
	What    string     `json:"what"` // provider, image, upload, daemon, waves, wave, node
	Names   []string   `json:"names"`
	By      string     `json:"by"` // "configuration", "operator", or who
	Why     string     `json:"why,omitempty"`
	Drained bool       `json:"drained,omitempty"` // of a provider: its nodes go, too
	Since   *time.Time `json:"since,omitempty"`
	Until   *time.Time `json:"until,omitempty"` // when it ends by itself
}

// Daemon is one that runs.
type Daemon struct {
	Kind          string    `json:"kind"`
	Host          string    `json:"host"`
	State         string    `json:"state"`
	Version       string    `json:"version"`
	Since         time.Time `json:"since"`
	Configuration uint64    `json:"configuration,omitempty"` // of the fleet, that it runs
	Behind        bool      `json:"behind,omitempty"`        // it does not run the newest
}

// New makes the overview.
func New(t *Tree, cfg *configs.Config) *Report {
	r := &Report{
		Version: Version, Time: whole(t.Now), State: Well, Attention: []Matter{}, Images: []Image{}, Requests: Waiting{Causes: []Wait{}},
	}
	images := map[string]*zkmodel.Image{}
	for _, image := range t.Images {
		images[image.Name] = image
	}
	items := t.items()
	c := t.capacity(cfg)
	r.Providers, r.Pools = c.providers, c.pools
	if t.saw(PartRequests) {
		r.Requests = t.waiting(cfg, images, c)
		r.Requests.explain(items)
	}
	if t.saw(PartImages) {
		for n := range cfg.DiskImages {
			r.Images = append(r.Images, t.imageOf(cfg, &cfg.DiskImages[n], images[cfg.DiskImages[n].Name]))
		}
		items = append(items, t.lateItems(r.Images, items)...)
	}
	r.Daemons, r.Configuration = t.daemons()
	items = append(items, t.nobody(cfg, items)...)
	items = slices.Concat(items, t.limitItems(c), t.fleetItems(), t.sinkItems(cfg))
	r.Items = items
	for _, g := range attention.Fold(items) {
		r.Attention = append(r.Attention, Matter{
			Kind: g.Kind, Urgent: g.Urgent, Count: g.Count, What: g.What, Why: g.Why, Since: at(g.Since), Do: g.Do,
			Images: g.Images, Providers: g.Providers,
		})
		if r.State != Urgent {
			r.State = Attention
		}
		if g.Urgent {
			r.State = Urgent
		}
	}
	r.Waves, r.Trials, r.Pauses, r.Rollout = t.waves(), t.trials(cfg), t.pauses(cfg), t.rollout()
	return r
}

// items is what needs attention, as the page finds it, and what could not be read.
func (t *Tree) items() []attention.Item {
	site := attention.Site{
		Now: t.Now, Images: t.Images, Nodes: t.Nodes, Requests: t.Requests, Pools: t.Pools, NoComponents: !t.saw(PartDaemons), Trials: t.Trials, Guarded: t.Guarded, LeftOut: t.LeftOut,
	}
	for n := range t.Daemons {
		site.Daemons = append(site.Daemons, &t.Daemons[n].Component)
	}
	items := site.Items()
	for _, u := range t.Unread {
		items = append(items, attention.Item{Kind: attention.Unread, What: "What the tree has of " + u.Part + " cannot be read", Why: u.Err.Error(), Name: u.Part})
	}
	return items
}

// nobody tells that no daemon runs that the configuration has work for, also where the tree
// has none yet, or is not the right one. What was said of it already is not said again.
func (t *Tree) nobody(cfg *configs.Config, said []attention.Item) (items []attention.Item) {
	if !t.saw(PartDaemons) {
		return nil
	}
	missing := func(component string, kind attention.Kind) bool {
		return !slices.ContainsFunc(t.Daemons, func(d zkmodel.Daemon) bool { return d.Kind == component }) &&
			!slices.ContainsFunc(said, func(i attention.Item) bool { return i.Kind == kind })
	}
	if len(cfg.DiskImages) > 0 && missing(zkmodel.KindBuilder, attention.NoBuilder) {
		items = append(items, attention.Item{Kind: attention.NoBuilder, What: "No builder is running", Why: "images are neither built nor uploaded"})
	}
	pools := slices.ContainsFunc(cfg.Providers, func(p configs.Provider) bool { return len(p.Pools) > 0 })
	if pools && missing(zkmodel.KindLauncher, attention.NoLauncher) {
		items = append(items, attention.Item{Kind: attention.NoLauncher, Urgent: true, What: "No launcher is running", Why: "requests are not served"})
	}
	return items
}

// daemons are those that run, and the number of the configuration that they are to run.
func (t *Tree) daemons() (list []Daemon, current uint64) {
	list = []Daemon{}
	if t.Current != nil {
		current = t.Current.Number
	}
	for _, d := range t.Daemons {
		one := Daemon{Kind: d.Kind, Host: cmp.Or(d.Hostname, d.Name), State: d.State, Version: d.Version, Since: whole(d.Since)}
		if d.Paused != nil && *d.Paused {
			one.State = zkmodel.ComponentPaused
		}
		if d.Broken != nil {
			one.State = "broken"
		}
		for _, m := range t.Members {
			if m.Err == nil && m.Kind == d.Kind && m.Host == d.Hostname {
				one.Configuration, one.Behind = m.Number, t.Current != nil && !m.Runs(t.Current)
			}
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b Daemon) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Host, b.Host)) })
	return list, current
}

// waves are those that are under way, the oldest first.
func (t *Tree) waves() []Wave {
	list := []Wave{}
	for _, e := range t.Waves {
		if e.Broken != nil || !e.Active() || e.Follow { // one of image-build is its build
			continue
		}
		list = append(list, Wave{
			ID: e.ID, State: e.Status.State, Jobs: e.Jobs, Counts: e.Status.Counts, Since: whole(e.Stat.Ctime), By: e.By, Reason: e.Reason, Note: e.Status.Note,
		})
	}
	return list
}

// pauses are what does not go on because a person or the configuration says so.
func (t *Tree) pauses(cfg *configs.Config) []Pause {
	list := []Pause{}
	var said []Pause
	var byOperator, byFile, uploads, daemons []string
	for _, image := range t.Images {
		switch {
		case image.PausedBy != nil:
			said = append(said, pauseOf("image", image.Name, &image.PausedBy.Pause))
		case image.Paused:
			byOperator = append(byOperator, image.Name)
		}
	}
	for n := range cfg.DiskImages {
		if cfg.DiskImages[n].Pause {
			byFile = append(byFile, cfg.DiskImages[n].Name)
		}
	}
	for n := range cfg.Providers {
		for _, image := range cfg.Providers[n].DiskImages {
			if image.Pause {
				uploads = append(uploads, image.Name+" in "+cfg.Providers[n].Name)
			}
		}
	}
	for _, d := range t.Daemons {
		if d.Reason == "" && (d.State == zkmodel.ComponentPaused || d.Paused != nil && *d.Paused) {
			daemons = append(daemons, d.Kind+" "+d.Hostname)
		}
	}
	add := func(what, by string, names []string) {
		if len(names) > 0 {
			list = append(list, Pause{What: what, By: by, Names: names})
		}
	}
	for _, p := range t.Stopped {
		if p.Over(t.Now) {
			continue
		}
		one := pauseOf("provider", p.Provider, &p.Pause)
		one.Drained = p.Drain
		list = append(list, one)
	}
	list = append(list, said...)
	add("image", "operator", byOperator)
	add("image", "configuration", byFile)
	add("upload", "configuration", uploads)
	add("daemon", "operator", daemons)
	if t.Held != nil {
		list = append(list, Pause{What: "waves", By: cmp.Or(t.Held.By, "operator"), Names: []string{"all"}, Why: t.Held.Reason, Until: t.Held.Until})
	}
	for _, e := range t.Waves {
		for _, mark := range slices.Sorted(maps.Keys(e.Marks)) {
			if job := mark.Job(); !e.Status.State.Over() && (mark == wave.MarkHold || mark == wave.MarkHold.Of(job)) {
				word := e.Marks[mark]
				list = append(list, Pause{
					What: "wave", By: cmp.Or(word.By, "its failures"), Names: []string{listing.Words(" ", e.ID, job)}, Why: word.Reason, Until: word.Until,
				})
			}
		}
	}
	return append(list, t.heldNodes()...)
}

// heldNodes are the nodes that people keep, those together of which the same is said.
func (t *Tree) heldNodes() []Pause {
	var list []Pause
	places := map[string]int{}
	for _, n := range t.Nodes {
		if n.Broken != nil || n.State != zkmodel.NodeHold {
			continue
		}
		by, why := n.HeldBy()
		end := at(n.HoldEnds())
		key := n.Comment
		if end != nil {
			key += end.String()
		}
		place, there := places[key]
		if !there {
			place = len(list)
			places[key] = place
			list = append(list, Pause{What: "node", By: cmp.Or(by, "operator"), Why: why, Since: at(n.Since()), Until: end})
		}
		list[place].Names = append(list[place].Names, n.ID)
	}
	return list
}

// pauseOf is a pause of which is known who it is by.
func pauseOf(what, name string, p *zkmodel.Pause) Pause {
	return Pause{What: what, Names: []string{name}, By: cmp.Or(p.By, "operator"), Why: p.Reason, Since: at(p.Since.Time()), Until: at(p.Ends())}
}

// whole is a time as the JSON has it.
func whole(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }

// at is whole of a time that may not be known.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = whole(t)
	return &t
}

// Figures are the performance data of a monitoring plugin.
func (r *Report) Figures() string {
	counts := map[Freshness]int{}
	for n := range r.Images {
		for _, p := range r.Images[n].Places {
			counts[p.State]++
		}
	}
	oldest := int64(0)
	for _, w := range r.Requests.Causes {
		oldest = max(oldest, w.Oldest)
	}
	return fmt.Sprintf("attention=%d fresh=%d stale=%d missing=%d waiting=%d oldest=%ds",
		len(r.Attention), counts[Fresh], counts[Stale], counts[Missing], r.Requests.Count, oldest)
}
