package wave_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// noon is when all is decided.
var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// scene is what a decision sees, changed by a test.
func scene(change ...func(*wave.Sight)) wave.Sight {
	s := wave.Sight{
		Image: &zkmodel.Image{Name: "a"}, Since: 100, Now: noon, Room: true,
		Backoff: func(n int) time.Duration { return time.Duration(n) * time.Minute },
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

// build adds a build that began at a transaction, with ready uploads.
func build(zxid int64, state zkmodel.BuildState, uploads ...string) func(*wave.Sight) {
	return func(s *wave.Sight) {
		b := &zkmodel.BuildTree{Build: &zkmodel.Build{Image: "a", ID: "7", State: state, Builder: "x", Reason: "no space", Stat: recipe.Stat{Czxid: zxid}}}
		for _, p := range uploads {
			b.Uploads = append(b.Uploads, &zkmodel.Upload{UploadKey: zkmodel.UploadKey{Provider: p, ID: "1"}, State: zkmodel.UploadReady})
		}
		s.Image.Builds = append(s.Image.Builds, b)
	}
}

// asked sets the flag.
func asked(zxid int64) func(*wave.Sight) {
	return func(s *wave.Sight) { s.Image.BuildRequested = &recipe.Stat{Czxid: zxid} }
}

func locked(s *wave.Sight) { s.Image.BuildsLocked = true }

// Mistakes: each case names one.
func TestDecide(t *testing.T) {
	uploaded := &wave.Wave{ID: "w", Until: wave.UntilUploaded}
	built := &wave.Wave{ID: "w", Until: wave.UntilBuilt}
	job := wave.Job{Image: "a", Providers: []string{"north", "south"}}
	pending, processing, held := wave.Progress{State: wave.Pending}, wave.Progress{State: wave.Processing}, wave.Progress{State: wave.Held}
	later, longAgo := noon.Add(time.Hour), noon.Add(-wave.GiveUp)
	for name, tc := range map[string]struct {
		wave  *wave.Wave
		was   wave.Progress
		sight wave.Sight
		state wave.State
		flag  wave.Flag
		note  string // part of the note or the reason
	}{
		"nothing is asked for":                 {uploaded, pending, scene(), wave.Processing, wave.FlagMade, ""},
		"asked for without room":               {uploaded, pending, scene(func(s *wave.Sight) { s.Room = false }), wave.Pending, wave.FlagStays, ""},
		"another's flag is made again":         {uploaded, pending, scene(asked(50)), wave.Processing, wave.FlagStays, ""},
		"a flag that is being served, adopted": {uploaded, pending, scene(asked(50), build(60, zkmodel.BuildBuilding), locked), wave.Processing, wave.FlagReplaced, ""},
		"an old build completes":               {uploaded, pending, scene(build(60, zkmodel.BuildReady, "north", "south")), wave.Processing, wave.FlagMade, ""},
		"another's build is not seen":          {uploaded, pending, scene(build(160, zkmodel.BuildReady, "north", "south")), wave.Completed, wave.FlagStays, ""},
		"another's build under way":            {uploaded, pending, scene(build(160, zkmodel.BuildBuilding), locked), wave.Processing, wave.FlagStays, ""},
		"held, and begins":                     {uploaded, pending, scene(func(s *wave.Sight) { s.Hold = "by ann" }), wave.Held, wave.FlagStays, "by ann"},
		"released, and stays":                  {uploaded, held, scene(), wave.Processing, wave.FlagMade, ""},
		"held, and another's build is not seen": {
			uploaded, held, scene(build(160, zkmodel.BuildReady, "north", "south"), func(s *wave.Sight) { s.Hold = "by ann" }),
			wave.Completed, wave.FlagStays, "",
		},
		"paused, and begins":         {uploaded, pending, scene(func(s *wave.Sight) { s.Paused = "paused" }), wave.Pending, wave.FlagStays, "paused"},
		"paused, and its flag stays": {uploaded, processing, scene(asked(150), func(s *wave.Sight) { s.Paused = "paused" }), wave.Pending, wave.FlagTaken, "paused"},
		"all its builders are paused, and it is asked for": {
			uploaded, pending, scene(asked(50), func(s *wave.Sight) { s.Resting = "x is paused" }), wave.Pending, wave.FlagStays, "x is paused",
		},
		"all its builders are paused, and it takes room": {
			uploaded, processing, scene(asked(150), func(s *wave.Sight) { s.Resting = "x is paused" }), wave.Pending, wave.FlagTaken, "x is paused",
		},
		"a builder is paused that builds it": {
			uploaded, processing, scene(asked(150), build(160, zkmodel.BuildBuilding), locked, func(s *wave.Sight) { s.Resting = "x is paused" }),
			wave.Processing, wave.FlagStays, "",
		},
		"outside of its window":         {uploaded, pending, scene(func(s *wave.Sight) { s.Window = later }), wave.Pending, wave.FlagStays, "13:00:00"},
		"tried again too soon":          {uploaded, wave.Progress{State: wave.Pending, NotBefore: &later}, scene(), wave.Pending, wave.FlagStays, "13:00:00"},
		"cancelled, and stays":          {uploaded, processing, scene(asked(150), func(s *wave.Sight) { s.Cancel = "by ann" }), wave.Cancelled, wave.FlagTaken, "by ann"},
		"given up while it waits":       {uploaded, processing, scene(asked(150)), wave.Processing, wave.FlagStays, ""},
		"withdrawn, and waits for ever": {uploaded, processing, scene(), wave.Pending, wave.FlagTaken, "withdrawn"},
		"failed, and is not tried again": {
			uploaded, processing, scene(asked(150), build(160, zkmodel.BuildFailed)),
			wave.Pending, wave.FlagTaken, "no space",
		},
		"failed for ever": {
			uploaded,
			wave.Progress{State: wave.Processing, Tries: 2},
			scene(asked(150), build(160, zkmodel.BuildFailed)),
			wave.Failed, wave.FlagTaken, "no space",
		},
		"a failure counts twice": {
			uploaded,
			wave.Progress{State: wave.Processing, Tries: 2, After: 160},
			scene(asked(170), build(160, zkmodel.BuildFailed)),
			wave.Processing, wave.FlagStays, "",
		},
		"a failure before it began counts": {uploaded, pending, scene(asked(110), build(160, zkmodel.BuildFailed)), wave.Processing, wave.FlagReplaced, ""},
		"its builder is gone, and the flag": {
			uploaded, processing, scene(build(160, zkmodel.BuildBuilding)),
			wave.Pending, wave.FlagTaken, "is gone",
		},
		"its builder is gone, and another is at hand": {
			uploaded, processing, scene(asked(150), build(160, zkmodel.BuildBuilding)),
			wave.Processing, wave.FlagStays, "is gone",
		},
		"builders die for ever": {
			uploaded,
			wave.Progress{State: wave.Processing, Tries: 2},
			scene(asked(150), build(160, zkmodel.BuildBuilding)),
			wave.Failed, wave.FlagTaken, "is gone",
		},
		"built is enough":     {built, processing, scene(asked(150), build(160, zkmodel.BuildReady)), wave.Completed, wave.FlagStays, ""},
		"built is not enough": {uploaded, processing, scene(build(160, zkmodel.BuildReady, "north")), wave.Processing, wave.FlagStays, "uploads to south"},
		"a provider that is closed is waited for": {uploaded, processing, scene(build(160, zkmodel.BuildReady, "north"),
			func(s *wave.Sight) { s.Closed = map[string]string{"south": "no quota"} }), wave.Completed, wave.FlagStays, ""},
		"a flag of ours asks for one more": {
			uploaded, processing, scene(asked(170), build(160, zkmodel.BuildReady, "north", "south")),
			wave.Completed, wave.FlagTaken, "",
		},
		"uploaded by a later build": {
			uploaded, processing, scene(build(160, zkmodel.BuildReady, "north"), build(170, zkmodel.BuildReady, "south")),
			wave.Completed, wave.FlagStays, "",
		},
		"a provider where the build is rejected is waited for": {
			uploaded, processing, scene(build(160, zkmodel.BuildReady, "north"), func(s *wave.Sight) {
				s.Image.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{{Kind: zkmodel.Rejected, Provider: "south", Build: "7", BuildCzxid: 160, By: "ann"}}}
			}), wave.Completed, wave.FlagStays, "",
		},
		"a build that failed its validation is good": {
			uploaded, processing, scene(build(160, zkmodel.BuildReady, "north"), func(s *wave.Sight) {
				s.Image.Verdicts = &zkmodel.Verdicts{List: []zkmodel.Verdict{
					{Kind: zkmodel.Rejected, Provider: "south", Build: "7", BuildCzxid: 160, By: zkmodel.ByValidation, Reason: "ssh: refused"},
				}}
			}), wave.Failed, wave.FlagStays, "validation at south: rejected by validation: ssh: refused",
		},
		"nobody says that the builder with the files is gone": {
			uploaded, processing, scene(build(160, zkmodel.BuildReady, "north"), func(s *wave.Sight) { s.Gone = func(b string) bool { return b == "x" } }),
			wave.Processing, wave.FlagStays, "x, which has the files, is not there",
		},
		"nobody says that no builder has the image": {
			uploaded, processing, scene(asked(150), func(s *wave.Sight) { s.Absent = "no builder has it" }),
			wave.Processing, wave.FlagStays, "no builder has it",
		},
		"no space, and a build is asked for": {uploaded, pending, scene(func(s *wave.Sight) { s.Full = "no space" }), wave.Pending, wave.FlagStays, "no space"},
		"no space, and a flag is not adopted": {
			uploaded, pending, scene(asked(50), func(s *wave.Sight) { s.Full = "no space" }),
			wave.Processing, wave.FlagStays, "",
		},
		"no builder has it, for ever": {
			uploaded,
			wave.Progress{State: wave.Processing, Missing: &longAgo},
			scene(asked(150), func(s *wave.Sight) { s.Absent, s.Nobody = "no builder has it", true }),
			wave.Failed, wave.FlagTaken, "no builder has it, for 30m0s",
		},
		"perhaps no builder has it, and it fails": {
			uploaded,
			wave.Progress{State: wave.Processing, Missing: &longAgo},
			scene(asked(150), func(s *wave.Sight) { s.Absent = "perhaps" }),
			wave.Processing, wave.FlagStays, "perhaps",
		},
		"its files are gone for ever": {
			uploaded,
			wave.Progress{State: wave.Processing, Missing: &longAgo, Build: "7", Builder: "x"},
			scene(build(160, zkmodel.BuildReady, "north"), func(s *wave.Sight) { s.Gone = func(string) bool { return true } }),
			wave.Pending, wave.FlagTaken, "has not been there for 30m0s",
		},
		"a builder is given up for how long the one before it was away": {
			uploaded,
			wave.Progress{State: wave.Processing, Missing: &longAgo, Build: "6", Builder: "gone"},
			scene(build(160, zkmodel.BuildReady, "north"), func(s *wave.Sight) { s.Gone = func(string) bool { return true } }),
			wave.Processing, wave.FlagStays, "x, which has the files, is not there",
		},
		"what cannot be read is absent": {
			uploaded, processing, scene(func(s *wave.Sight) { s.Image.Unread = errors.New("no rights") }),
			wave.Processing, wave.FlagStays, "no rights",
		},
	} {
		t.Run(name, func(t *testing.T) {
			step := wave.Decide(tc.wave, job, tc.was, tc.sight)
			if step.State != tc.state || step.Flag != tc.flag || !strings.Contains(step.Note+step.Reason, tc.note) {
				t.Errorf("%s, flag %q, %q, %q; want %s, flag %q, %q", step.State, step.Flag, step.Note, step.Reason, tc.state, tc.flag, tc.note)
			}
		})
	}
}

// Mistakes: uploads that fail and are waited for without end.
// lost adds a build that its builder left when it was killed.
func lost(zxid int64) func(*wave.Sight) { return build(zxid, zkmodel.BuildBuilding) }

// Mistakes: a build that was lost, or failed, and in whose place a builder has begun another one before the wave has seen it, is
// no try; the job is tried for ever.
func TestReplacedBuildsAreTries(t *testing.T) {
	t.Parallel()
	w, job := &wave.Wave{ID: "w", Until: wave.UntilBuilt}, wave.Job{Image: "a"}
	for name, tc := range map[string]struct {
		was   wave.Progress
		sight wave.Sight
		tries int
		state wave.State
	}{
		"one is lost, another runs":           {wave.Progress{State: wave.Processing}, scene(asked(150), lost(160), build(170, zkmodel.BuildBuilding), locked), 1, wave.Processing},
		"one is lost, another is ready":       {wave.Progress{State: wave.Processing}, scene(lost(160), build(170, zkmodel.BuildReady)), 1, wave.Completed},
		"one failed, one is lost, one runs":   {wave.Progress{State: wave.Processing}, scene(asked(150), build(155, zkmodel.BuildFailed), lost(160), build(170, zkmodel.BuildBuilding), locked), 2, wave.Processing},
		"the third is lost":                   {wave.Progress{State: wave.Processing, Tries: 2}, scene(asked(150), lost(160), build(170, zkmodel.BuildBuilding), locked), 3, wave.Failed},
		"the third is lost, another is ready": {wave.Progress{State: wave.Processing, Tries: 2}, scene(lost(160), build(170, zkmodel.BuildReady)), 3, wave.Completed},
		"one was lost before the last try":    {wave.Progress{State: wave.Processing, Tries: 1, After: 160}, scene(asked(150), lost(160), build(170, zkmodel.BuildBuilding), locked), 1, wave.Processing},
		"a ready one is replaced by another":  {wave.Progress{State: wave.Processing}, scene(build(160, zkmodel.BuildReady), lost(170)), 0, wave.Completed},
	} {
		step := wave.Decide(w, job, tc.was, tc.sight)
		if step.Tries != tc.tries || step.State != tc.state {
			t.Errorf("%s: %d tries, %s; want %d, %s", name, step.Tries, step.State, tc.tries, tc.state)
		}
	}
}

// Mistakes: the last state that a job left in order is lost by a failure, a retry or a hold.
func TestLastSuccessfulStatus(t *testing.T) {
	t.Parallel()
	var p wave.Progress
	p.State = wave.Pending
	for _, step := range []struct{ to, last wave.State }{
		{wave.Held, ""},
		{wave.Pending, ""},
		{wave.Processing, wave.Pending},
		{wave.Pending, wave.Pending},
		{wave.Processing, wave.Pending},
		{wave.Failed, wave.Pending},
		{wave.Pending, wave.Pending},
		{wave.Processing, wave.Pending},
		{wave.Completed, wave.Processing},
	} {
		if err := wave.Move(&p, step.to, noon); err != nil || p.Last != step.last {
			t.Errorf("after %s: %q, want %q (%v)", step.to, p.Last, step.last, err)
		}
	}
}

func TestUploadsThatFailEndAJob(t *testing.T) {
	s := scene(build(160, zkmodel.BuildReady, "north"))
	s.Image.Builds[0].Uploads = append(s.Image.Builds[0].Uploads, &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Provider: "south"}, State: zkmodel.UploadFailed, Failures: wave.MaxTries, Reason: "quota",
	})
	step := wave.Decide(&wave.Wave{Until: wave.UntilUploaded}, wave.Job{Image: "a", Providers: []string{"north", "south"}}, wave.Progress{State: wave.Processing}, s)
	if step.State != wave.Failed || !strings.Contains(step.Reason, "quota") || step.Uploads["north"] == "" {
		t.Errorf("%+v", step)
	}
}

// What is sent, has passed its trial and waits for a canary alone counts, for uploaded and for
// validated; what is still tried does not. Mistakes: a wave that takes as long as a canary; one
// that is completed with an upload which fails its trial a minute later.
func TestWaitingForACanaryIsUploaded(t *testing.T) {
	s := scene(build(160, zkmodel.BuildReady, "north"))
	b := s.Image.Builds[0]
	b.Uploads = append(b.Uploads, &zkmodel.Upload{
		UploadKey: zkmodel.UploadKey{Provider: "south"}, State: zkmodel.UploadUploading, ExternalID: zkmodel.TextValue("id"),
	})
	job := wave.Job{Image: "a", Providers: []string{"north", "south"}}
	for _, tc := range []struct{ canary, passed, done bool }{{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false}} {
		s.Passed = func(u *zkmodel.Upload) bool { return tc.passed && u.Provider == "south" }
		if s.Image.Canaries = nil; tc.canary {
			s.Image.Canaries = []*zkmodel.Canary{{Provider: "south", Trial: &zkmodel.Trial{BuildRef: zkmodel.BuildRef{Build: "other"}}}}
		}
		for _, until := range []wave.Until{wave.UntilUploaded, wave.UntilValidated} {
			step := wave.Decide(&wave.Wave{Until: until}, job, wave.Progress{State: wave.Processing}, s)
			if (step.State == wave.Completed) != tc.done || tc.done && step.Uploads["south"] == "" {
				t.Errorf("%+v, until %s: %+v", tc, until, step)
			}
		}
	}
}

// Mistakes, over whatever a decision may see: a transition that the table does not have; a
// job that is over without a build; a flag that is left when a job gives up; a decision
// that changes its mind when it is asked again.
func TestDecideProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := scene()
		zxid := int64(90)
		for range rapid.IntRange(0, 4).Draw(t, "builds") {
			zxid += rapid.Int64Range(5, 15).Draw(t, "zxid")
			build(zxid, rapid.SampledFrom(zkmodel.BuildStates()).Draw(t, "build"), rapid.SliceOfN(rapid.SampledFrom([]string{"north", "south"}), 0, 2).Draw(t, "at")...)(&s)
		}
		if rapid.Bool().Draw(t, "asked") {
			asked(rapid.Int64Range(90, 150).Draw(t, "flag"))(&s)
		}
		s.Image.BuildsLocked, s.Room = rapid.Bool().Draw(t, "locked"), rapid.Bool().Draw(t, "room")
		text := rapid.SampledFrom([]string{"", "", "yes"})
		s.Cancel, s.Hold, s.Paused = text.Draw(t, "cancel"), text.Draw(t, "hold"), text.Draw(t, "paused")
		if rapid.Bool().Draw(t, "window") {
			s.Window = noon.Add(time.Hour)
		}
		was := wave.Progress{
			State: rapid.SampledFrom([]wave.State{wave.Pending, wave.Held, wave.Processing}).Draw(t, "state"),
			Tries: rapid.IntRange(0, 2).Draw(t, "tries"), After: rapid.Int64Range(0, 140).Draw(t, "after"),
		}
		w, job := &wave.Wave{Until: rapid.SampledFrom([]wave.Until{wave.UntilBuilt, wave.UntilUploaded}).Draw(t, "until")}, wave.Job{Image: "a", Providers: []string{"north"}}
		step := wave.Decide(w, job, was, s)
		if strings.Contains(step.Note, "move from") {
			t.Fatal(step.Note)
		}
		if step.State == wave.Completed && step.Build == "" {
			t.Fatalf("completed without a build: %+v", step)
		}
		gaveUp := was.State == wave.Processing && (step.State == wave.Pending || step.State == wave.Cancelled)
		if gaveUp && step.Flag != wave.FlagTaken {
			t.Fatalf("its flag stays: %+v", step)
		}
		if asks := step.Flag == wave.FlagMade || step.Flag == wave.FlagReplaced; asks && (s.Hold != "" || s.Paused != "" || s.Cancel != "" || !s.Room) {
			t.Fatalf("a build is asked for: %+v", step)
		}
		if s.Image.BuildRequested == nil && step.Flag == wave.FlagReplaced || s.Image.BuildRequested != nil && step.Flag == wave.FlagMade {
			t.Fatalf("flag %s", step.Flag)
		}
	})
}

// Mistakes: a row that the table lacks or has beyond the drawing; a state that is stuck.
func TestTransitions(t *testing.T) {
	for _, table := range [][]wave.Transition{wave.Transitions(), wave.JobTransitions()} {
		for _, from := range wave.States() {
			leaves := slices.ContainsFunc(table, func(row wave.Transition) bool { return row.From == from })
			known := slices.ContainsFunc(table, func(row wave.Transition) bool { return row.From == from || row.To == from })
			if known && !leaves && from != wave.Completed {
				t.Errorf("nothing leads out of %s", from)
			}
		}
	}
	p := wave.Progress{State: wave.Completed}
	if err := wave.Move(&p, wave.Processing, noon); !errors.Is(err, zkmodel.ErrTransition) || p.State != wave.Completed {
		t.Errorf("%s, %v", p.State, err)
	}
	p = wave.Progress{State: wave.Pending}
	if err := wave.Move(&p, wave.Processing, noon); err != nil || p.State != wave.Processing || !p.StateTime.Equal(noon) {
		t.Errorf("%+v, %v", p, err)
	}
	s := wave.Status{State: wave.Pending}
	if err := wave.Move(&s, wave.Completed, noon); !errors.Is(err, zkmodel.ErrTransition) {
		t.Error("a wave is completed before it began")
	}
}

// Mistakes: a limit that is none, or one that is taken for another.
func TestLimit(t *testing.T) {
	for _, tc := range []struct {
		text string
		n    int
		want int
	}{{"20%", 10, 2}, {"20%", 3, 0}, {"0", 10, 0}, {"5", 3, 5}, {"100%", 7, 7}} {
		if got, err := wave.Limit(tc.text, tc.n); got != tc.want || err != nil {
			t.Errorf("%s of %d is %d, %v", tc.text, tc.n, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "101%", "%", "1.5"} {
		if _, err := wave.Limit(text, 10); err == nil {
			t.Errorf("%q is a limit", text)
		}
	}
	for _, id := range []string{"", "a/b", "..", ".a", "a b", strings.Repeat("a", 101)} {
		if wave.CheckID(id) == nil {
			t.Errorf("%q is an id", id)
		}
	}
}
