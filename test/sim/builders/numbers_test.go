package builders

import (
	"maps"
	"testing"

	"poolkeeper/test/sim/series"
	"poolkeeper/test/sim/stage"
	"poolkeeper/zkmodel"
)

// numbered is told of the record of a build or an upload that is made: there never was one of that name.
func (j *judge) numbered(client, record string) {
	if j.ids[record] {
		j.Wrong(client, "%s is used a second time", record)
	}
	j.ids[record] = true
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
	return !j.backup[record] && (upload != nil || !j.commanded[record])
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
	}{
		"a new one":                         {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000002")},
		"a build's":                         {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000001"), wrong: true},
		"a build's that the backup has":     {before: []string{zkmodel.BuildPath("debian", "0000000001")}, again: zkmodel.BuildPath("debian", "0000000001"), back: true, wrong: true},
		"a build's that the backup lacks":   {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, wrong: true},
		"a build's of which nobody knew":    {after: []string{zkmodel.BuildPath("debian", "0000000002")}, again: zkmodel.BuildPath("debian", "0000000002"), back: true, unmade: true},
		"an upload's":                       {after: []string{upload("0000000001")}, again: upload("0000000001"), wrong: true},
		"an upload's that the backup has":   {before: []string{upload("0000000001")}, again: upload("0000000001"), back: true, wrong: true},
		"an upload's that the backup lacks": {after: []string{upload("0000000002")}, again: upload("0000000002"), back: true},
	} {
		w := &world{t: t, seed: &series.Seed{Timeline: stage.NewTimeline(), Number: 1}}
		j := newJudge(w)
		make := func(records ...string) {
			for _, r := range records {
				j.numbered("b1", r)
				j.commanded[r] = !test.unmade
			}
		}
		make(test.before...)
		j.backedUp()
		make(test.after...)
		if test.back {
			maps.DeleteFunc(j.ids, func(p string, _ bool) bool { return j.forgets(p) })
		}
		if make(test.again); j.Failed() != test.wrong {
			t.Errorf("%s: %v, want wrong %v", name, j.Wrongs(), test.wrong)
		}
	}
}
