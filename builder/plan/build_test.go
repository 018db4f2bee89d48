package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rebuild"
	"poolkeeper/zkmodel/recipe"
)

const (
	hour = time.Hour
	day  = 24 * time.Hour
)

func TestWhenToBuild(t *testing.T) {
	type row = struct {
		set  func(s *scene)
		want string
	}
	failed := func(n int) func(*zkmodel.Build) { return func(b *zkmodel.Build) { b.Failures = n; b.Formats = nil } }
	play(t, map[string]row{
		"nothing is there":  {func(*scene) {}, "build"},
		"it is fresh":       {func(s *scene) { s.uploaded(hour) }, ""},
		"it is old":         {func(s *scene) { s.uploaded(25 * hour) }, "build"},
		"age is off":        {func(s *scene) { s.image().RebuildAge = 0; s.uploaded(999 * day) }, ""},
		"asked for":         {func(s *scene) { s.uploaded(hour); s.request() }, "build"},
		"asked for, served": {func(s *scene) { s.request(); s.uploaded(hour) }, "clear-request 1"},
		"asked for in a build": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, 0)
			s.request()
			s.everywhere(b)
		}, "build"},
		"paused by config": {func(s *scene) { s.image().Pause = true; s.request() }, ""},
		"paused by flag":   {func(s *scene) { s.Image.Paused = true; s.request() }, ""},
		"no formats":       {func(s *scene) { s.Config.Providers = nil; s.request() }, ""},
		"not configured":   {func(s *scene) { s.Config.DiskImages = nil; s.request() }, ""},
		"another host's":   {func(s *scene) { s.Config.Only = []string{"other", "im"}; s.request() }, ""},
		"another host's, served": {func(s *scene) {
			s.Config.Only = []string{"other"}
			s.request()
			s.uploaded(hour)
		}, "clear-request 1"},
		// An image that other builders build is not given up: what is there stays, is uploaded and goes as ever.
		"another host's, the rest goes on": {func(s *scene) {
			s.Config.Only = []string{"other"}
			s.build(zkmodel.BuildReady, 25*hour)
		}, "upload 1 north qcow2; upload 1 south raw"},
		"another host's, old": {func(s *scene) { s.Config.Only = []string{"other"}; s.uploaded(999 * day) }, ""},
		"for other hosts": {func(s *scene) {
			s.image().HostLabels = []string{"ssd", "big"}
			s.Config.HostLabels = []string{"ssd"}
			s.request()
		}, ""},
		"for hosts as ours": {func(s *scene) { s.image().HostLabels = []string{"ssd"}; s.Config.HostLabels = []string{"big", "ssd"} }, "build"},
		"selected":          {func(s *scene) { s.Config.Only = []string{"other", "i?g"} }, "build"},
		"for others":        {func(s *scene) { s.image().Architecture = "arm64"; s.request() }, ""},
		"for us":            {func(s *scene) { s.image().Architecture = "amd64" }, "build"},
		"host cannot build": {func(s *scene) { s.Host.Unfit = "no logs"; s.request() }, ""},
		"host cannot build, the rest goes on": {func(s *scene) {
			s.Host.Unfit = "no logs"
			s.build(zkmodel.BuildReady, 25*hour)
		}, "upload 1 north qcow2; upload 1 south raw"},
		"locked":       {func(s *scene) { s.Image.BuildsLocked = true; s.request() }, ""},
		"locked by us": {func(s *scene) { s.Image.BuildsLocked = true; s.InFlight.Locked = true }, "build"},
		"a format is missing": {func(s *scene) {
			b := s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Formats = zkmodel.Formats{"qcow2"} })
			s.upload(b, "north", zkmodel.UploadReady)
		}, "build"},
		"builders with other formats do not take turns": {func(s *scene) {
			s.Config.Providers = s.Config.Providers[:1]
			s.upload(s.build(zkmodel.BuildReady, 2*hour), "north", zkmodel.UploadReady)
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) {
				b.Formats, b.Builder, b.BuilderID = zkmodel.Formats{"vhd"}, "other", "other-id"
			})
		}, ""},
		"just failed": {func(s *scene) { s.build(zkmodel.BuildFailed, 0, failed(1)) }, "remove-files 1"},
		"failed a while ago": {func(s *scene) {
			s.build(zkmodel.BuildFailed, 2*time.Minute, failed(1))
		}, "build; remove-files 1"},
		"failed often": {func(s *scene) {
			s.build(zkmodel.BuildFailed, 20*time.Minute, failed(6))
		}, "remove-files 1"},
		"failed, then asked for": {func(s *scene) {
			s.build(zkmodel.BuildFailed, 0, failed(9))
			s.request()
		}, "build; remove-files 1"},
		"asked for, then failed": {func(s *scene) {
			s.request()
			s.build(zkmodel.BuildFailed, 0, failed(1))
		}, "remove-files 1"},
		"failed before it was ready": {func(s *scene) {
			s.build(zkmodel.BuildFailed, hour, failed(9))
			s.uploaded(0)
		}, "delete-build 1; remove-files 1"},
		"no space": {func(s *scene) { s.Host.Free = 1 << 20 }, ""},
		"space":    {func(s *scene) { s.Host.Free = 2 << 30 }, "build"},
		"no space for another like the last": {func(s *scene) {
			s.Host.Free = 2 << 30
			s.uploaded(25 * hour).Files = map[string]zkmodel.ImageFile{"raw": {Size: 1 << 30}}
		}, ""},
	})
}

func TestStrandedBuilds(t *testing.T) {
	type row = struct {
		set  func(s *scene)
		want string
	}
	theirs := func(b *zkmodel.Build) { b.Builder, b.BuilderID = "gone.example.org", "gone-id" }
	play(t, map[string]row{
		"its builder is alive": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { theirs(b); b.Builder = "other.example.org" })
		}, ""},
		"its builder has just left": {func(s *scene) { s.build(zkmodel.BuildReady, hour, theirs) }, ""},
		"its builder left long ago": {func(s *scene) {
			s.Others.Since = s.Now.Add(-hour)
			s.build(zkmodel.BuildReady, hour, theirs)
		}, "build"},
		"its builder was seen since": {func(s *scene) {
			s.Others.Since, s.Others.Seen = s.Now.Add(-hour), map[string]time.Time{"gone": s.Now.Add(-time.Minute)}
			s.build(zkmodel.BuildReady, hour, theirs)
		}, ""},
		"its files are gone from here": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour)
			s.Local[0].Formats = nil
		}, "build"},
		"its files are gone, and an older one's are not": {func(s *scene) {
			s.build(zkmodel.BuildReady, 2*hour)
			s.build(zkmodel.BuildReady, hour)
			s.Local[1].Formats = nil
		}, "build; upload 1 north qcow2; upload 1 south raw"},
		"a provider came after its file was removed": {func(s *scene) {
			s.image().DeleteAfterUpload = true
			s.upload(s.build(zkmodel.BuildReady, hour), "north", zkmodel.UploadReady)
			s.Local[0].Formats = nil
		}, "build"},
		"its files went as every provider has it": {func(s *scene) {
			s.image().DeleteAfterUpload = true
			s.uploaded(hour)
			s.Local[0].Formats = nil
		}, ""},
		"another builder on this host has its files": {func(s *scene) {
			s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.BuilderID = "peer-id" })
			s.Others.Alive[s.Host.Name], s.Local = true, nil
		}, ""},
		"it is everywhere": {func(s *scene) {
			s.Others.Since = s.Now.Add(-hour)
			s.everywhere(s.build(zkmodel.BuildReady, hour, theirs))
		}, ""},
		"nobody waits for it": {func(s *scene) {
			s.Others.Since = s.Now.Add(-hour)
			for i := range s.Config.Providers {
				s.Config.Providers[i].DiskImages[0].Pause = true
			}
			s.build(zkmodel.BuildReady, hour, theirs)
		}, ""},
	})
}

func TestNextLook(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(s *scene)
		want time.Time
	}{
		"never":         {func(s *scene) { s.image().RebuildAge = 0; s.uploaded(hour) }, time.Time{}},
		"by age":        {func(s *scene) { s.uploaded(hour) }, noon().Add(23 * hour)},
		"by schedule":   {func(s *scene) { s.image().RebuildSchedule = "30 13 * * *"; s.uploaded(hour) }, noon().Add(90 * time.Minute)},
		"by a far one":  {func(s *scene) { s.image().RebuildSchedule = "0 0 1 1 *"; s.uploaded(hour) }, noon().Add(23 * hour)},
		"window opens":  {func(s *scene) { s.image().BuildWindows = window(t, "22:00-06:00") }, noon().Add(10 * hour)},
		"away for long": {func(s *scene) { s.build(zkmodel.BuildReady, hour, func(b *zkmodel.Build) { b.Builder = "gone" }) }, noon().Add(5 * time.Minute)},
		"space":         {func(s *scene) { s.Host.Free = 0 }, noon().Add(time.Minute)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(c.set)
			if got := Decide(s.Input); !got.Next.Equal(c.want) || len(got.Actions) > 0 {
				t.Errorf("got %s, %s", got.Next, brief(got))
			}
		})
	}
}

func window(t *testing.T, text string) []configs.BuildWindow {
	t.Helper()
	w, err := configs.ParseBuildWindow(text)
	if err != nil {
		t.Fatal(err)
	}
	return []configs.BuildWindow{w}
}

func TestWindowsHoldWhatNobodyAskedFor(t *testing.T) {
	s := newScene(func(s *scene) { s.image().BuildWindows = window(t, "22:00-06:00") })
	s.uploaded(25 * hour)
	if got := brief(Decide(s.Input)); got != "" {
		t.Errorf("at noon: %s", got)
	}
	s.Now = s.Now.Add(10 * hour)
	if got := brief(Decide(s.Input)); got != "build" {
		t.Errorf("at ten: %s", got)
	}
	s.Now = noon()
	s.request()
	if got := brief(Decide(s.Input)); got != "build" {
		t.Errorf("asked for: %s", got)
	}
}

// However many times of the schedule were missed, one build catches up.
func TestMissedScheduleIsCaughtUpOnce(t *testing.T) {
	s := newScene(func(s *scene) { s.image().RebuildAge = 0; s.image().RebuildSchedule = "0 * * * *" })
	s.uploaded(50 * hour)
	got := Decide(s.Input)
	if brief(got) != "build" || !strings.HasPrefix(why(got, Build), "scheduled for") {
		t.Fatalf("got %s: %s", brief(got), why(got, Build))
	}
	s.uploaded(0)
	if got := Decide(s.Input); brief(got) != "" || !got.Next.Equal(noon().Add(hour)) {
		t.Errorf("caught up: %s, next %s", brief(got), got.Next)
	}
}

func TestScheduleIsInItsZone(t *testing.T) {
	s := newScene(func(s *scene) {
		s.image().RebuildAge, s.image().RebuildSchedule, s.image().RebuildTimezone = 0, "0 3 * * *", "America/New_York"
	})
	s.uploaded(hour)
	if got, want := Decide(s.Input).Next, time.Date(2026, 3, 5, 8, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("next at %s", got.UTC())
	}
}

// With one schedule, images are due one after another: each at its own time,
// which is the same for all who ask, and not later than rebuild-jitter allows.
func TestScheduleHasJitter(t *testing.T) {
	b := &zkmodel.Build{Stat: recipe.Stat{Ctime: noon()}}
	due := func(name string, jitter int, windows ...string) time.Time {
		t.Helper()
		image := &configs.DiskImage{Name: name, RebuildSchedule: "0 0 * * *", RebuildTimezone: "UTC", RebuildJitter: jitter}
		for _, text := range windows {
			w, err := configs.ParseBuildWindow(text)
			if err != nil {
				t.Fatal(err)
			}
			image.BuildWindows = append(image.BuildWindows, w)
		}
		at, ok, err := rebuild.DueBySchedule(image, b)
		if again, _, _ := rebuild.DueBySchedule(image, b); err != nil || !ok || !again.Equal(at) {
			t.Fatalf("due at %s, %t, %v, then %s", at, ok, err, again)
		}
		return at
	}
	midnight := noon().Add(12 * hour)
	seen := map[time.Time]bool{}
	for i := range 20 {
		name := fmt.Sprintf("image-%d", i)
		late := due(name, 10).Sub(midnight)
		seen[midnight.Add(late)] = true
		if late < 0 || late > 144*time.Minute {
			t.Errorf("%s is %s late, want at most a tenth of a day", name, late)
		}
		if at := due(name, 0); !at.Equal(midnight) {
			t.Errorf("without jitter %s is due at %s", name, at)
		}
		if at := due(name, 100, "23:00-00:20"); at.Before(midnight) || !at.Before(midnight.Add(20*time.Minute)) {
			t.Errorf("%s is due at %s, outside its window", name, at)
		}
	}
	if len(seen) < 15 {
		t.Errorf("20 images have %d times", len(seen))
	}
}

// Jitter makes builds due earlier by a share that differs from build to build,
// and is the same for all who ask.
func TestJitter(t *testing.T) {
	image := &configs.DiskImage{Name: "img", RebuildAge: 10 * hour, RebuildJitter: 10}
	seen := map[time.Time]bool{}
	for _, id := range []string{"0000000001", "0000000002", "0000000003", "5446a9b04ed29e48"} {
		b := &zkmodel.Build{Image: "img", ID: id, StateTime: zkmodel.EpochOf(noon())}
		due, ok := rebuild.DueByAge(image, b, time.Now())
		again, _ := rebuild.DueByAge(image, b, time.Now())
		if !ok || due.Before(noon().Add(9*hour)) || due.After(noon().Add(10*hour)) || !due.Equal(again) {
			t.Errorf("%s: due %s, %s", id, due, again)
		}
		seen[due] = true
	}
	if len(seen) != 4 {
		t.Errorf("%d times for 4 builds", len(seen))
	}
}

func TestBackoffGrowsAndEnds(t *testing.T) {
	b := Backoff{First: time.Minute, Max: hour}
	if b.After(0, "x") != 0 {
		t.Error("no failure, no wait")
	}
	before := time.Duration(0)
	for n := 1; n < 200; n++ {
		wait := b.After(n, "x")
		if wait < before || wait > hour*11/10 || wait < min(time.Minute<<min(n-1, 10), hour)*9/10 {
			t.Fatalf("after %d failures: %s", n, wait)
		}
		before = wait
	}
	if b.After(3, "x") == b.After(3, "y") {
		t.Error("two subjects wait equally long")
	}
}

func TestPlanTellsOfLackingSpace(t *testing.T) {
	small := func(s *scene) { s.Host.Free = 1 << 20 }
	if got := Decide(newScene(small).Input).NoSpace; got != "1.0 MiB free, about 1.0 GiB needed" {
		t.Errorf("due, no room: %q", got)
	}
	notDue := newScene(small)
	notDue.build(zkmodel.BuildReady, time.Hour)
	if got := Decide(notDue.Input).NoSpace; got != "" {
		t.Errorf("not due: %q", got)
	}
	if got := Decide(newScene().Input).NoSpace; got != "" {
		t.Errorf("room: %q", got)
	}
}

// When an image is due is told before it is, and stays told while the build waits: an alarm
// for builds that do not come counts from there. It is not told where nothing asks for a
// build, or a rule forbids it: a paused image would be late for ever.
func TestWhenAnImageIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		set  func(s *scene)
		want time.Time
	}{
		"in time":            {func(s *scene) { s.uploaded(hour) }, noon().Add(23 * hour)},
		"late":               {func(s *scene) { s.uploaded(27 * hour) }, noon().Add(-3 * hour)},
		"late, in no window": {func(s *scene) { s.image().RebuildAge = 2 * hour; s.uploaded(3 * hour) }, noon().Add(-hour)},
		"asked for":          {func(s *scene) { s.uploaded(hour); s.request() }, noon()},
		"nothing asks":       {func(s *scene) { s.image().RebuildAge = 0; s.uploaded(999 * day) }, time.Time{}},
		"paused":             {func(s *scene) { s.Image.Paused = true; s.uploaded(27 * hour) }, time.Time{}},
		"never built":        {func(*scene) {}, time.Time{}},
		// A build that hangs, and a host that cannot build, make nothing fresh.
		"late, it is being built":      {func(s *scene) { s.Image.BuildsLocked = true; s.uploaded(27 * hour) }, noon().Add(-3 * hour)},
		"late, we are building it":     {func(s *scene) { s.InFlight.Builds = "0000000007"; s.uploaded(27 * hour) }, noon().Add(-3 * hour)},
		"late, the host has withdrawn": {func(s *scene) { s.Host.Unfit = "no logs"; s.uploaded(27 * hour) }, noon().Add(-3 * hour)},
		"asked for, it is being built": {func(s *scene) { s.Image.BuildsLocked = true; s.uploaded(hour); s.request() }, noon()},
	} {
		s := newScene()
		c.set(s)
		if got := Decide(s.Input).Due; !got.Equal(c.want) {
			t.Errorf("%s: due at %s, want %s", name, got, c.want)
		}
	}
}
