package wave_test

import (
	"strings"
	"testing"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// A job of image-build changes no flag, whatever it sees, but for a cancel. Mistakes: each
// case names one.
func TestDecideFollows(t *testing.T) {
	w := &wave.Wave{ID: "w", Until: wave.UntilBuilt, Follow: true}
	before, after := noon.Add(-time.Second), noon.Add(time.Second)
	processing := wave.Progress{State: wave.Processing}
	tried := wave.Progress{State: wave.Processing, Tries: 2, Reason: "build 6: no space"}
	for name, tc := range map[string]struct {
		was   wave.Progress
		sight wave.Sight
		state wave.State
		tries int
		note  string // part of the note or the reason
	}{
		"waits for room": {wave.Progress{State: wave.Pending}, scene(asked(100), func(s *wave.Sight) { s.Room = false }), wave.Processing, 0, ""},
		"waits for a window": {
			processing,
			scene(asked(100), func(s *wave.Sight) { s.Window = noon.Add(time.Hour) }),
			wave.Processing, 0, "although the next build window begins",
		},
		"a pause is not told":              {processing, scene(asked(100), func(s *wave.Sight) { s.Paused = "paused by ann" }), wave.Processing, 0, "paused by ann"},
		"built, and not over":              {processing, scene(asked(100), build(160, zkmodel.BuildReady)), wave.Completed, 0, ""},
		"a failure is not told":            {processing, scene(asked(100), build(160, zkmodel.BuildFailed)), wave.Processing, 1, "no space"},
		"a failure counts twice":           {wave.Progress{State: wave.Processing, Tries: 1, After: 160, Reason: "no space"}, scene(asked(100), build(160, zkmodel.BuildFailed)), wave.Processing, 1, "no space"},
		"it waits for ever":                {tried, scene(asked(100), build(160, zkmodel.BuildFailed)), wave.Failed, 3, "the request stays"},
		"another's request keeps it":       {processing, scene(asked(150), func(s *wave.Sight) { s.Paused = "paused by ann" }), wave.Cancelled, 0, "a later request"},
		"so it does when a build failed":   {wave.Progress{State: wave.Processing, Tries: 1, After: 160, Reason: "no space"}, scene(asked(170)), wave.Failed, 1, "no space; a later request"},
		"ended before a build that runs":   {processing, scene(asked(150), build(160, zkmodel.BuildBuilding), locked), wave.Processing, 0, ""},
		"a builder cleared the flag":       {tried, scene(func(s *wave.Sight) { s.Now = after }), wave.Processing, 2, ""},
		"it is gone at first sight":        {processing, scene(), wave.Processing, 0, ""},
		"withdrawn, and waits for ever":    {wave.Progress{State: wave.Processing, NotBefore: &before}, scene(), wave.Cancelled, 0, "withdrawn"},
		"failed, and waits for ever":       {wave.Progress{State: wave.Processing, NotBefore: &before, Tries: 1, Reason: "no space"}, scene(), wave.Failed, 1, "no space"},
		"its builder is gone by one look":  {processing, scene(asked(100), build(160, zkmodel.BuildBuilding)), wave.Processing, 0, ""},
		"its builder is never gone":        {wave.Progress{State: wave.Processing, NotBefore: &before}, scene(asked(100), build(160, zkmodel.BuildBuilding)), wave.Processing, 1, "is gone"},
		"what seemed lost stays suspected": {wave.Progress{State: wave.Processing, NotBefore: &before}, scene(asked(100), build(160, zkmodel.BuildBuilding), locked), wave.Processing, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			step := wave.Decide(w, wave.Job{Image: "a"}, tc.was, tc.sight)
			if step.State != tc.state || step.Flag != wave.FlagStays || step.Tries != tc.tries || !strings.Contains(step.Note+step.Reason, tc.note) {
				t.Errorf("%s, flag %q, %d tries, %q, %q", step.State, step.Flag, step.Tries, step.Note, step.Reason)
			}
			if seems := step.NotBefore != nil; seems != !step.Again.IsZero() {
				t.Errorf("looked at again at %s, as of %v", step.Again, step.NotBefore)
			}
		})
	}
	cancelled := scene(asked(100), func(s *wave.Sight) { s.Cancel = "by ann" })
	if step := wave.Decide(w, wave.Job{Image: "a"}, processing, cancelled); step.State != wave.Cancelled || step.Flag != wave.FlagTaken {
		t.Errorf("cancelled: %+v", step)
	}
}
