package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Mistakes: wave cancel --builds that gives up a build which another wave has asked for, or that was
// under way before the wave's own request, or none; one that does not when the image is named.
func TestWaveCancelGivesUpItsOwnBuilds(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	u := newTool(t, "diskimages: [{name: mine}, {name: others}, {name: due}]\n")
	store, models := wave.NewStore(u.session), zkmodel.NewStore(u.session, nil)
	jobs := []wave.Job{{Image: "mine"}, {Image: "others"}, {Image: "due"}}
	if made, err := store.Create(ctx, &wave.Wave{ID: "spring", MaxFailures: "0"}, jobs); err != nil || !made {
		t.Fatalf("create: %v, %v", made, err)
	}
	builds := map[string]string{}
	begin := func(image string) {
		t.Helper()
		lock, err := models.LockBuilds(ctx, image)
		if err != nil {
			t.Fatal(err)
		}
		b := &zkmodel.Build{Image: image, Builder: "x"}
		if err := models.CreateBuild(ctx, lock, b); err != nil {
			t.Fatal(err)
		}
		builds[image] = b.ID
	}
	begin("due")
	held, err := store.Queue().Take(ctx, "spring", "test")
	if err != nil {
		t.Fatal(err)
	}
	d, err := store.Open(ctx, held, "spring")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Ask(ctx, &wave.Wave{ID: "autumn", MaxFailures: "0", Follow: true}, jobs[1]); err != nil {
		t.Fatal(err)
	}
	processing := wave.Progress{State: wave.Processing}
	changes := []wave.Change{
		{Rank: 0, Step: wave.Step{Progress: processing, Flag: wave.FlagMade}},
		{Rank: 1, Step: wave.Step{Progress: processing}},
		{Rank: 2, Step: wave.Step{Progress: processing, Flag: wave.FlagMade}},
	}
	if err := d.Apply(ctx, changes, func(s *wave.Status) { s.State = wave.Processing }); err != nil {
		t.Fatal(err)
	}
	begin("mine")
	begin("others")
	cancelled := func(image string) string {
		data, _, err := u.session.Get(ctx, zkmodel.CancelPath(image))
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			t.Fatal(err)
		}
		return string(data)
	}
	code, out, stderr := u.run("wave", "cancel", "spring", "--builds")
	if code != exitDone || cancelled("mine") != builds["mine"] || cancelled("others") != "" || cancelled("due") != "" {
		t.Errorf("%s%s: given up: %q, %q, %q", out, stderr, cancelled("mine"), cancelled("others"), cancelled("due"))
	}
	for _, image := range []string{"others", "due"} {
		want := "Build " + image + "-" + builds[image] + " goes on: the wave has not asked for it; image-build-cancel " + image + " gives it up\n"
		if !strings.Contains(out, want) {
			t.Errorf("%s: want %s", out, want)
		}
	}
	code, out, stderr = u.run("wave", "cancel", "spring", "others", "--builds")
	if code != exitDone || cancelled("others") != builds["others"] {
		t.Errorf("named: %s%s", out, stderr)
	}
}

// Mistake: a line of docs/waves.md that nothing runs as it stands.
func TestLinesOfTheWavesPageAreRun(t *testing.T) {
	page, err := os.ReadFile("../../docs/waves.md")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/script/wave.txtar")
	if err != nil {
		t.Fatal(err)
	}
	run := map[string]bool{}
	for line := range strings.Lines(string(script)) {
		run[strings.TrimSpace(line)] = true
	}
	lines := 0
	for line := range strings.Lines(string(page)) {
		if command, ok := strings.CutPrefix(strings.TrimSpace(line), "$ "); ok {
			lines++
			if !run["exec "+command] {
				t.Errorf("testdata/script/wave.txtar does not run %q", command)
			}
		}
	}
	if lines < 10 {
		t.Errorf("the page shows %d lines", lines)
	}
}
