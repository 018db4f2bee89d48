package site

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"poolkeeper/web/layout"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/overview"
	"poolkeeper/zkmodel/wave"
)

// wavesPath is the page of waves.
const wavesPath = "/waves"

// mostRollouts is how many lines the overview has of what comes into service step by step, and
// fewerMatters how many fewer of what needs attention there are beside them.
const (
	mostRollouts = 4
	fewerMatters = 2
)

// rollout is something that comes into service step by step.
type rollout struct {
	What     layout.Link
	State    layout.Badge
	Words    string
	Percent  int64
	Progress bool
	Since    layout.When
}

// rollouts are all of them: waves, builds that prove themselves, the fleet's configuration while
// not all daemons run it.
func (s *snapshot) rollouts(r *overview.Report) (list []rollout) {
	if o := r.Rollout; o != nil && o.Behind > 0 {
		one := rollout{What: to("configuration", "/daemons#fleet"), State: layout.Mark("on its way", "busy"), Words: o.Words()}
		if o.Since != nil {
			one.Since = layout.Moment(*o.Since, s.now)
		}
		list = append(list, one)
	}
	for n := range r.Waves {
		w := &r.Waves[n]
		list = append(list, rollout{
			What: layout.Link{Text: "wave " + w.ID, To: wavesPath + "#" + w.ID}, State: waveBadge(w.State), Words: listing.Words(": ", w.Words(), cmp.Or(w.Note, w.Reason)),
			Percent: int64(100 * w.Over() / max(1, w.Jobs)), Progress: true, Since: layout.Moment(w.Since, s.now),
		})
	}
	for n := range r.Trials {
		t := &r.Trials[n]
		one := rollout{What: buildLink(t.Image, t.Build), State: layout.Mark("on trial", "busy"), Words: "in " + t.Provider + ": " + t.Words(), Since: layout.Moment(t.Since, s.now)}
		switch {
		case t.Asks:
			one.State = layout.Mark("canary asks", "late")
		case t.Kind == overview.Canary:
			one.State = layout.Mark("canary", "busy")
		}
		list = append(list, one)
	}
	return list
}

// waveBadge is the state of a wave or a job.
func waveBadge(state wave.State) layout.Badge {
	kinds := map[wave.State]string{wave.Completed: "good", wave.Failed: "bad", wave.Processing: "busy", wave.Reporting: "busy", wave.Held: "late"}
	return layout.Mark(string(state), cmp.Or(kinds[state], "off"))
}

// waves lists all waves, the newest first: ?state= &q=.
func (s *Site) waves(r *http.Request) (*layout.Page, error) {
	look := s.look()
	known := overview.Beside{}
	if look.beside != nil {
		known = *look.beside
	}
	var states []string
	for _, w := range known.Waves {
		states = append(states, string(w.Status.State))
	}
	f := filterOf(r, field{Name: "state", Key: "state", Options: states}, field{Name: "text", Key: "q"})
	list := slices.Clone(known.Waves)
	slices.Reverse(list)
	list = kept(f, list, func(w *wave.Entry) map[string][]string {
		return map[string][]string{"state": {string(w.Status.State)}, "q": {w.ID, w.By, w.Reason, w.Schedule, w.Status.Note}}
	})
	t := tableOf("Waves, the newest first", "There are no waves.", []string{"Wave", "State", "Begun", "Jobs", "By", "Why"}, list, look.waveRow)
	sh := &sheet{Filter: f, Sub: fmt.Sprint(len(list)), Parts: []part{{ID: "waves", Table: t, Note: "poolkeeper wave show ID prints the jobs of one."}}}
	switch {
	case look.beside == nil:
		t.Empty = "What there is has not been read yet; load this page again."
	case known.Held != nil:
		word := known.Held
		sh.Badges = []layout.Badge{layout.Mark(listing.Words(", ", "all waves are held by "+cmp.Or(word.By, "operator"), word.Reason), "late")}
	}
	return sheetPage(wavesPath, "Waves", sh), nil
}

// waveRow is a line about a wave.
func (s *snapshot) waveRow(w *wave.Entry) row {
	if w.Broken != nil {
		return row{ID: w.ID, Cells: []cell{mono(w.ID), state(layout.Mark("cannot be read", "bad")), {}, {}, {}, {Why: w.Broken.Error()}}}
	}
	o := overview.Wave{Jobs: w.Jobs, Counts: w.Status.Counts}
	jobs := text(fmt.Sprintf("%d of %d", o.Over(), w.Jobs))
	jobs.Progressing, jobs.Progress = !w.Status.State.Over(), int64(100*o.Over()/max(1, w.Jobs))
	for _, one := range slices.Sorted(maps.Keys(w.Status.Counts)) {
		if n := w.Status.Counts[one]; n > 0 {
			jobs = jobs.marked(fmt.Sprintf("%d %s", n, one), waveBadge(one).Kind)
		}
	}
	how := state(waveBadge(w.Status.State))
	if word, held := w.Marks[wave.MarkHold]; held && !w.Status.State.Over() {
		how = how.marked(listing.Words(", ", "held by "+cmp.Or(word.By, "its failures"), word.Reason), "late")
	}
	begun := since(layout.Moment(w.Stat.Ctime, s.now))
	if ended := w.Status.Ended; ended != nil {
		begun = begun.small("took " + listing.Span(ended.Sub(w.Stat.Ctime).Round(time.Second)))
	}
	return row{ID: w.ID, Cells: []cell{mono(w.ID), how.small(w.Status.Note), begun, jobs, text(cmp.Or(w.By, w.Schedule)), text(w.Reason)}}
}
