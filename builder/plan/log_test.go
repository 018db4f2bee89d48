package plan

import (
	"testing"

	"poolkeeper/zkmodel"
)

// The log of a build is where its builder serves it now.
func TestWhereLogsAre(t *testing.T) {
	const now, before = "http://me:2/", "http://me:1/"
	type row = struct {
		url, log, builder string
		here              bool
		state             zkmodel.BuildState
		want              string
	}
	for name, c := range map[string]row{
		"as it was":                 {now, now, "my-id", true, zkmodel.BuildReady, ""},
		"another port":              {now, before, "my-id", true, zkmodel.BuildReady, "move-log 1"},
		"another port, failed":      {now, before, "my-id", true, zkmodel.BuildFailed, "move-log 1"},
		"another port, log is gone": {now, before, "my-id", false, zkmodel.BuildReady, "move-log 1"},
		"served no more":            {"", before, "my-id", true, zkmodel.BuildReady, "move-log 1"},
		"served again":              {now, "", "my-id", true, zkmodel.BuildReady, "move-log 1"},
		"never served, and gone":    {now, "", "my-id", false, zkmodel.BuildReady, ""},
		"another builder's":         {now, before, "other-id", true, zkmodel.BuildReady, ""},
		"nobody's":                  {now, before, "", true, zkmodel.BuildReady, ""},
		"being deleted":             {now, before, "my-id", true, zkmodel.BuildDeleting, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.build(c.state, hour, func(b *zkmodel.Build) { b.Log, b.BuilderID = c.log, c.builder })
			s.Logs = map[string]Log{s.Image.Builds[len(s.Image.Builds)-1].ID: {URL: c.url, Here: c.here}}
			got := ""
			for _, a := range Decide(s.Input).Actions {
				if a.Kind == MoveLog {
					got = string(a.Kind) + " " + a.Build[len(a.Build)-1:]
				}
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
