package site_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"poolkeeper/providers"
	"poolkeeper/test/aws/endpoint"
	"poolkeeper/test/zuul"
)

// A launcher finds what nobody has a record of, in two looks: a machine, and a volume and a host of nodes that are gone. It deletes them and
// says so; those of another installation, and the machine of a node, it leaves alone. One that is killed between the two looks has the next go on.
func TestLeaksOfASite(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	e := s.amazon
	tree, _, err := zk.Connect([]string{s.zookeeper}, time.Minute, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	first := s.launcher()
	request, err := s.zuul.Submit(zuul.Wish{Labels: []string{"work"}})
	if err != nil {
		t.Fatal(err)
	}
	used := s.take(request)
	kept := e.Instances()[0]
	ours := maps.Clone(kept.Tags)
	ours[providers.MetaNode], ours[providers.MetaLaunch] = "0000009999", "gone"
	theirs := maps.Clone(ours)
	theirs[providers.MetaSite] = "elsewhere"
	leaked := []string{e.LeaveInstance(ours), e.LeaveVolume(maps.Clone(ours)), e.LeaveHost(maps.Clone(ours))}
	others := []string{e.LeaveInstance(theirs), e.LeaveVolume(maps.Clone(theirs)), e.LeaveHost(maps.Clone(theirs)), e.LeaveVolume(map[string]string{}), kept.ID}
	patiently(t, "the first look notes the machine", func() bool {
		data, _, err := tree.Get("/poolkeeper/leaked-machines/amazon")
		return err == nil && strings.Contains(string(data), leaked[0])
	})
	if !s.runs(leaked[0]) {
		t.Error("one look deletes a machine")
	}
	s.kill(first)
	next := s.launcher()
	patiently(t, "the leaks go", func() bool {
		return !s.runs(leaked[0]) && !e.Exists(leaked[1]) && !e.Exists(leaked[2])
	})
	for _, want := range []string{"Deleting a machine without a record", "kind=volumes count=1", "kind=hosts count=1"} {
		patiently(t, "the log says "+want, func() bool { // when the answers have come
			log, err := os.ReadFile(filepath.Join(s.dir, "daemons.log"))
			return err == nil && strings.Contains(string(log), want)
		})
	}
	for _, id := range others {
		if !e.Exists(id) || strings.HasPrefix(id, "i-") && !s.runs(id) {
			t.Errorf("%s is deleted", id)
		}
	}
	if err := s.zuul.Return(used); err != nil {
		t.Fatal(err)
	}
	if err := s.zuul.WaitGone(t.Context(), used.ID); err != nil {
		t.Error(err)
	}
	s.kill(next)
}

// runs says whether a machine has not ended.
func (s *site) runs(id string) bool {
	return slices.ContainsFunc(s.amazon.Instances(), func(i endpoint.Thing) bool { return i.ID == id && i.State() == "running" })
}
