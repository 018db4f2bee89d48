package fleet_test

import (
	"bytes"
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

// What is on the disk is closed to others, and used only as it was written and while its
// signer may push; that it was there keeps older versions away all the same.
func TestKeptOnDisk(t *testing.T) {
	w := newTown(t)
	file := filepath.Join(t.TempDir(), "fleet-builder.json")
	w.push(w.anna, "one")
	old := w.offer()
	w.push(w.bo, "two")
	if got := w.listener(file).takes(w.offer()); got != "two" {
		t.Fatalf("runs %q", got)
	}
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	text, err := os.ReadFile(file)
	must(t, err)
	for name, harm := range map[string]func(){
		"cut":            func() { must(t, os.WriteFile(file, text[:len(text)/2], 0o600)) },
		"another text":   func() { must(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("dHdv"), []byte("dHdw")), 0o600)) },
		"open to others": func() { must(t, os.Chmod(file, 0o644)) },
		"empty":          func() { must(t, os.WriteFile(file, nil, 0o600)) },
	} {
		harm()
		l := w.listener(file)
		if k, _ := l.Pick(); k != nil || l.says("kept on disk cannot be used") != 1 {
			t.Errorf("%s: begins with %+v:\n%s", name, k, l.log)
		}
		must(t, os.WriteFile(file, text, 0o600))
		must(t, os.Chmod(file, 0o600))
	}
	w.bo = newKey(t) // who may push no longer
	l := w.listener(file)
	if k, _ := l.Pick(); k != nil {
		t.Errorf("begins with %+v", k)
	}
	if got := l.takes(old); got != "" || !strings.Contains(l.Self().Reason, fleet.ErrOlder.Error()) {
		t.Errorf("goes back to %q, %+v", got, l.Self())
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
