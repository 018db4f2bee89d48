package secret

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// Older keys stay while the fleet's configuration is sealed to one, or the files that this
// host loads it with, and while it cannot be read or looked through. Catches: the only key
// of what was pushed is destroyed without a word.
func TestKeysOfTheFleetStay(t *testing.T) {
	s := newSecretSite(t, "nodepool.yaml", "clouds.yaml", "other.yaml")
	of, pushed := &Cmd{Key: s.key}, s.read(s.files[0])
	if err := (RotateCmd{Files: []string{s.files[0], s.files[2]}}).Run(t.Context(), s.app(), of); err != nil {
		t.Fatal(err)
	}
	version := Version{Name: "zk:version-7", Text: []byte(pushed), Files: s.files[1:2]}
	var failed error
	drop := func(files ...string) error {
		a := s.app()
		a.Config = filepath.Join(s.dir, "none") // what -c says is not looked at
		a.Fleet = func(context.Context) (Version, error) { return version, failed }
		return ResealCmd{Files: files, DropOld: true}.Run(t.Context(), a, of)
	}
	keys := s.read(s.key)
	refused := func(want error, files ...string) {
		t.Helper()
		if err := drop(files...); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if s.read(s.key) != keys {
			t.Fatal("a key is gone")
		}
	}
	refused(errOldFleet, s.files...)
	version.Text = []byte(s.read(s.files[0]))
	refused(errOldKey, s.files[2]) // clouds.yaml
	version.Text = []byte("a: [")
	refused(errUnknownSite, s.files...)
	failed = errors.New("no ZooKeeper")
	refused(failed, s.files...)
	refused(errUnknownSite, s.files...)
	failed, version.Text = nil, []byte(s.read(s.files[0]))
	if err := drop(s.files[1:]...); err != nil {
		t.Fatal(err)
	}
	if s.read(s.key) == keys {
		t.Error("the old key is still there")
	}
	s.opens(3)
}
