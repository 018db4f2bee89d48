package listing

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel/wave"
)

// Waves lists waves.
func Waves(waves []*wave.Entry) *Table {
	t := &Table{kind: "waves", columns: []column{
		{title: "ID", key: "id"},
		{title: "State", key: "state", by: ByState},
		{title: "Jobs", key: "jobs"},
		{title: "Completed", key: "completed"},
		{title: "Failed", key: "failed"},
		{title: "Created", key: "created"},
		{title: "Ended", key: "ended", detail: true},
		{title: "By", key: "by", detail: true},
		{title: "Priority", key: "priority", detail: true},
		{title: "Driver", key: "driver", detail: true},
		{title: "Reason", key: "reason"},
		{title: "Note", key: "note"},
	}}
	for _, e := range waves {
		t.note(e.Broken)
		t.rows = append(t.rows, []cell{
			text(e.ID), text(e.Status.State), number(e.Jobs), number(e.Status.Counts[wave.Completed]), number(e.Status.Counts[wave.Failed]),
			moment(&e.Stat.Ctime), moment(e.Status.Ended), text(e.By), text(e.Precedence()), text(e.Status.Driver), text(e.Reason), text(note(e)),
		})
	}
	return t
}

// note is why a wave does not go on, or what is wanted of it.
func note(e *wave.Entry) string {
	if _, cancelled := e.Marks[wave.MarkCancel]; cancelled && !e.Status.State.Over() {
		return "is being cancelled"
	}
	return e.Status.Note
}

// moment is a cell of a time; nil is none.
func moment(t *time.Time) cell {
	if t == nil || t.IsZero() {
		return cell{}
	}
	return cell{text: t.UTC().Format("2006-01-02 15:04:05"), value: t.UTC().Format(time.RFC3339), rank: float64(t.Unix())}
}

// jobColumns are those of jobs under way and of reports.
func jobColumns() []column {
	return []column{
		{title: "Image", key: "image"},
		{title: "State", key: "state"},
		{title: "Build", key: "build"},
		{title: "Builder", key: "builder", detail: true},
		{title: "Tries", key: "tries"},
		{title: "Uploaded to", key: "uploads"},
		{title: "Closed", key: "closed"},
		{title: "Estimate", key: "estimate", detail: true},
		{title: "Took", key: "took", detail: true},
		{title: "Why", key: "why"},
	}
}

// WaveJobs lists jobs of a wave as they stand.
func WaveJobs(rows []wave.Row) *Table {
	t := &Table{kind: "jobs", columns: jobColumns()}
	for _, r := range rows {
		why := strings.Join(slices.DeleteFunc([]string{r.Note, r.Reason}, func(s string) bool { return s == "" }), "; ")
		t.rows = append(t.rows, jobRow(r.Image, r.State, r.Build, r.Builder, r.Tries, r.Uploads, r.Closed, r.Estimate, r.Took, why))
	}
	return t
}

// WaveReport lists what has become of the jobs of a wave.
func WaveReport(r *wave.Report) *Table {
	t := &Table{kind: "jobs", columns: jobColumns()}
	for _, j := range r.Jobs {
		t.rows = append(t.rows, jobRow(j.Image, j.State, j.Build, j.Builder, j.Tries, j.Uploads, j.Closed, j.Estimate, j.Took, j.Reason))
	}
	return t
}

func jobRow(image string, state wave.State, build, builder string, tries int, uploads, closed map[string]string, estimate, took *wave.Estimate, why string) []cell {
	var shut []string
	for _, provider := range slices.Sorted(maps.Keys(closed)) {
		shut = append(shut, fmt.Sprintf("%s (%s)", provider, closed[provider]))
	}
	return []cell{
		text(image), text(state), text(build), text(builder), number(tries),
		list(slices.Sorted(maps.Keys(uploads))), list(shut), taking(estimate), taking(took), text(why),
	}
}

// taking is a cell of what a build takes.
func taking(e *wave.Estimate) cell {
	if e == nil {
		return cell{}
	}
	return cell{text: e.String(), value: e}
}
