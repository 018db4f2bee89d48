package launcher_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"poolkeeper/launcher/step"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// onePoolOfSlots is onePool with a provider of slots on its nodes.
var onePoolOfSlots = strings.Replace(onePool, "{name: large}]", "{name: slot}, {name: large}]", 1) + `
  - name: slots
    driver: metastatic
    pools:
      - name: main
        labels: [{name: slot, backing-label: small, max-parallel-jobs: 1, grace-time: 0}]
`[1:]

// roomySlots is onePoolOfSlots with a second slot beside that of the job.
var roomySlots = strings.Replace(onePoolOfSlots, "max-parallel-jobs: 1", "max-parallel-jobs: 2", 1)

// slotStories tell how a launcher comes to the steps of a node that is a slot, on a backing node
// that is there: no machine is launched.
func slotStories() map[step.Step]crashStory {
	launch := crashStory{config: roomySlots, before: runJob, act: func(s *site) []string {
		return []string{s.submit(zuul.Wish{Labels: []string{"slot"}})}
	}, after: jobsRan}
	end := crashStory{config: roomySlots, before: runJob, act: func(s *site) []string {
		_, job := s.given("slot")
		s.back(job)
		return nil
	}, after: jobsRan}
	return map[step.Step]crashStory{
		step.Accepted: launch, step.Begun: launch, step.Created: launch, step.Booted: launch, step.Fulfilled: launch,
		step.DeleteLocked: end, step.DeleteMarked: end, step.DeleteCloud: end, step.Deleted: end,
	}
}

// As TestKilledAtEveryStep, of nodes that are slots: a job beside runs on, no slot is left used or
// given twice, and the backing node goes when both are done.
func TestKilledAtEveryStepOfASlot(t *testing.T) {
	for at, story := range slotStories() {
		for _, count := range []int{1, 3} {
			t.Run(map[int]string{1: "one", 3: "three"}[count]+"/"+string(at), func(t *testing.T) {
				t.Parallel()
				story.run(t, at, count)
			})
		}
	}
}

// runJob has a job in a slot, which no launcher's death may end.
func runJob(s *site) {
	s.t.Helper()
	n, job := s.given("slot")
	s.jobs = map[string][]*zuul.Node{n.ID: job}
}

// jobsRan sees that jobs run as they did, on their backing nodes, and ends them; then no slot
// and no backing node is left.
func jobsRan(s *site, requests []string) {
	s.t.Helper()
	s.useAll(requests)
	for id, job := range s.jobs {
		if n := s.node(id); n.State != zkmodel.NodeInUse {
			s.t.Errorf("the job's node is %s", n.State)
		}
		s.backing(s.node(id))
		s.back(job)
	}
	s.emptied("slots")
	s.emptied("cloud")
}

// slotDisorder tells of slots what disorder tells of machines.
func (s *site) slotDisorder(nodes map[string]*zkmodel.Node) string {
	ctx := context.WithoutCancel(s.t.Context())
	used := map[string]string{} // by node
	backed := map[string]bool{}
	for _, p := range s.config.Providers {
		if p.BackingLabels() == nil {
			continue
		}
		names, err := s.store.Session().Children(ctx, zkmodel.BackingFolder(p.Name))
		if err != nil {
			return "" // there are none yet
		}
		for _, name := range names {
			data, stat, err := s.store.Session().Get(ctx, zkmodel.BackingFolder(p.Name)+"/"+name)
			if err != nil {
				return err.Error()
			}
			b, err := zkmodel.DecodeBacking(p.Name, name, data, stat)
			if err != nil {
				return err.Error()
			}
			if n := nodes[b.Node]; n == nil || n.State != zkmodel.NodeInUse || n.BacksFor() != p.Name {
				return fmt.Sprintf("backing node %+v has no node", b)
			}
			backed[b.Node] = true
			for number, slot := range b.Slots {
				if slot.Node == "" {
					continue
				}
				on, _ := nodes[slot.Node].OnSlot()
				if nodes[slot.Node] == nil || on.Backing != b.Node || on.Slot != number || used[slot.Node] != "" {
					return fmt.Sprintf("slot %d of %s is used by %s, whose record says %+v", number, b.Node, slot.Node, on)
				}
				used[slot.Node] = b.Node
			}
		}
	}
	for id, n := range nodes {
		if _, is := n.OnSlot(); is && used[id] == "" {
			return "node " + id + " has no slot"
		}
		if n.BacksFor() != "" && !backed[id] {
			return "node " + id + " backs nothing that is known"
		}
	}
	return ""
}
