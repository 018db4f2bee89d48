package fleet_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
)

// What ran is known from the disk whatever has become of the file's rights; where nobody can
// tell, nothing is taken. It would catch a restored backup that lets an old version in, and a
// file that stays open to others when it is written anew.
func TestWhatRanIsNotForgotten(t *testing.T) {
	w := newTown(t)
	file := filepath.Join(t.TempDir(), "fleet-builder.json")
	w.push(w.anna, "one")
	old := w.offer()
	w.push(w.anna, "two")
	two := w.offer()
	w.listener(file).takes(two)
	must(t, os.Chmod(file, 0o640))
	l := w.listener(file)
	if got := l.takes(old); got != "" || !strings.Contains(l.Self().Reason, fleet.ErrOlder.Error()) {
		t.Errorf("with an open file it takes %q, %+v", got, l.Self())
	}
	if got := l.takes(two); got != "two" {
		t.Errorf("with an open file it takes %q, %+v", got, l.Self())
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	must(t, os.WriteFile(file, []byte("{"), 0o600))
	l = w.listener(file)
	for _, o := range []fleet.Offer{old, two} {
		if got := l.takes(o); got != "" || !strings.Contains(l.Self().Reason, "nobody can tell which version ran before") {
			t.Errorf("with a broken file it takes %q, %+v", got, l.Self())
		}
	}
	must(t, os.Remove(file))
	l = w.listener(file)
	if got := l.takes(two); got != "two" {
		t.Errorf("without a file it takes %q", got)
	}
	// The text of what runs is lost: it runs on, and that is told.
	if got := l.takes(fleet.Offer{Version: two.Version, Err: recipe.ErrDamaged}); got != "two" || l.Self().Reason == "" {
		t.Errorf("without its text it runs %q, %+v", got, l.Self())
	}
}

// Labels of static machines are lost like others, and found where they stay.
func TestLossesOfStaticPools(t *testing.T) {
	load := func(labels string) *configs.Config {
		cfg, err := configs.Load("nodepool.yaml", configs.Options{Text: []byte("labels: [{name: metal}, {name: other}]\nproviders:\n" +
			"- {name: rack, driver: static, pools: [{name: main, nodes: [{name: h, labels: " + labels + ", username: u, host-key-checking: false}]}]}\n")})
		must(t, err)
		return cfg
	}
	nodes := []*zkmodel.Node{{Provider: "rack", Pool: "main", Type: []string{"metal"}}}
	before := load("[metal, other]")
	if got := fleet.Losses(before, load("[other]"), nil, nodes); strings.Join(got, ";") != "label metal of pool main of provider rack: 1 node" {
		t.Errorf("lost: %q", got)
	}
	for _, was := range []*configs.Config{before, nil} {
		if got := fleet.Losses(was, load("[metal]"), nil, nodes); len(got) > 0 {
			t.Errorf("lost: %q", got)
		}
	}
}
