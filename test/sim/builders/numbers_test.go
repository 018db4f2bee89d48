package builders

import (
	"cmp"
	"maps"
	"strings"
	"testing"
	"time"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// command is that of a build, which has begun.
type command struct {
	host string
	at   time.Duration
	gone time.Duration // when its record went; 0 is not
	lost bool          // the servers went back to before it
}

// known is how long it may take until a builder that runs has noted the number of a build, whatever is between it and the servers.
const known = 3 * time.Minute

// numbered is told of the record of a build or an upload that is made: there never was one of that name.
func (j *judge) numbered(client, record string) {
	host, _, _ := strings.Cut(client, ".")
	if j.ids[record] && !j.unheard[host][record] {
		j.Wrong(client, "%s is used a second time", record)
	}
	j.ids[record] = true
	for _, builds := range j.unheard {
		delete(builds, record)
	}
}

// unnumbered is told that a record goes.
func (j *judge) unnumbered(record string) {
	if c, known := j.commanded[record]; known {
		c.gone = j.Age()
		j.commanded[record] = c
	}
}

// unknownTo notes what builds hosts need not know when the servers have gone back: those of other hosts whose records were not
// there for long enough while the host's builder ran: until all were shut, and since up.
func (j *judge) unknownTo(up map[string]time.Duration, shut time.Duration) {
	for record, c := range j.commanded {
		if j.backup[record] || c.lost {
			continue
		}
		end := shut
		if c.gone > 0 {
			end = min(shut, c.gone)
		}
		for host, since := range up {
			if j.unheard[host] == nil {
				j.unheard[host] = map[string]bool{}
			}
			j.unheard[host][record] = c.host != host && end-max(c.at, since) < known
		}
		c.lost = true
		j.commanded[record] = c
	}
}

// backedUp is told that a backup is to be made: it has no numbers but those that have been given by now.
func (j *judge) backedUp() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.backup = maps.Clone(j.ids)
}

// forgets reports whether a number may come again when the servers are back at the backup. That of an upload which came
// later may: no host notes it. That of a build may not, once its command has begun: hosts note those that they have seen, and
// a builder its own before that. One that ended as it made the record may not know of it; nothing else has the number then.
func (j *judge) forgets(record string) bool {
	_, _, upload := owner(record)
	_, commanded := j.commanded[record]
	return !j.backup[record] && (upload != nil || !commanded)
}

// Mistakes: a number comes again that a failed build, or an upload, had; one is called so that may come again.
func TestNumbersThatMayComeAgain(t *testing.T) {
	t.Parallel()
	upload := func(n string) string { return zkmodel.UploadsPath("debian", "0000000001", "north") + "/" + n }
	for name, test := range map[string]struct {
		before, after []string // the backup is made
		again         string
		back, wrong   bool
		unmade        bool // no command has begun
		by            string
		up            time.Duration // since when builders run
	}{
		"a new one":                          {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000002")},
		"a build's":                          {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000001"), wrong: true},
		"a build's that the backup has":      {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000001"), back: true, wrong: true},
		"a build's that the backup lacks":    {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, wrong: true},
		"a build's of which nobody knew":     {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, unmade: true},
		"a build's, by another":              {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, by: "b2.1", wrong: true},
		"a build's that another missed":      {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, by: "b2.1", up: 1},
		"a build's that it made as it began": {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, up: 1, wrong: true},
		"an upload's":                        {after: []string{upload("0000000001")}, again: upload("0000000001"), wrong: true},
		"an upload's that the backup has":    {before: []string{upload("0000000001")}, again: upload("0000000001"), back: true, wrong: true},
		"an upload's that the backup lacks":  {after: []string{upload("0000000002")}, again: upload("0000000002"), back: true},
	} {
		w := &world{t: t, seed: &series.Seed{Timeline: stage.NewTimeline(), Number: 1}}
		j := newJudge(w)
		make := func(records ...string) {
			for _, r := range records {
				j.numbered("b1", r)
				if !test.unmade {
					j.commanded[r] = command{host: "b1"}
				}
			}
		}
		make(test.before...)
		j.backedUp()
		make(test.after...)
		if test.back {
			maps.DeleteFunc(j.ids, func(p string, _ bool) bool { return j.forgets(p) })
			j.unknownTo(map[string]time.Duration{"b1": test.up, "b2": test.up}, known)
		}
		if j.numbered(cmp.Or(test.by, "b1.1"), test.again); j.Failed() != test.wrong {
			t.Errorf("%s: %v, want wrong %v", name, j.Wrongs(), test.wrong)
		}
	}
}
