package providertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"poolkeeper/providers"
)

func nodeTests(h Harness) []contract {
	tests := []contract{
		{"a node is created, runs, is listed and deleted", lifeCycle},
		{"one node id is one machine", oneMachine},
		{"a node may be deleted while it starts", deleteStarting},
		{"deleting is idempotent, and of nothing no error", deleteNodes},
		{"limits and sizes agree with what fits", limits},
		{"the console is text of at most the wanted length", console},
	}
	if h.Room > 0 {
		tests = append(tests, contract{"a full cloud says so, and has room again after a deletion", quota})
	}
	if !h.NoImages {
		tests = append(tests, contract{"a node outlives the deletion of its image", imageDeleted})
	}
	if h.Slots {
		tests = append(tests, contract{"a slot is one node's, and that of a node which goes is the next one's", slots})
	}
	if !h.Volatile {
		tests = append(tests, contract{"nodes outlive a restart", nodesOutlive})
	}
	return tests
}

func lifeCycle(s *suite) {
	spec := s.spec()
	id := s.create(spec)
	instance := s.wait(id)
	if instance.ExternalID != id || instance.InterfaceIP == "" && instance.Connection == nil {
		s.Errorf("WaitNode of %s gave %+v", id, instance)
	}
	s.checkConnection(instance.Connection)
	s.checkNode(spec, id)
	s.remove(id)
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
	if _, err := s.cloud.WaitNode(s.ctx, id); !errors.Is(err, providers.ErrNotFound) {
		s.Errorf("WaitNode after DeleteNode gave %v", err)
	}
}

// checkConnection wants all that Zuul needs to reach a node without an address, and the token
// in nothing that people read.
func (s *suite) checkConnection(c *providers.Connection) {
	s.Helper()
	if c == nil {
		return
	}
	data := c.Data()
	for _, key := range []string{"namespace", "host", "token", "user"} {
		if text, _ := data[key].(string); text == "" {
			s.Errorf("connection %s has no %s", c, key)
		}
	}
	if !strings.Contains(c.Host, "://") || c.Type != "namespace" && c.Type != "kubectl" || (c.Type == "kubectl") != (c.Pod != "") {
		s.Errorf("connection %s of type %q", c, c.Type)
	}
	if !c.SkipTLS && c.CACert == "" {
		s.Errorf("connection %s has no authority", c)
	}
	text, err := json.Marshal(c)
	if shown := fmt.Sprintf("%s %v %+v %#v %+v", c, *c, *c, *c, providers.Instance{Connection: c}) + string(text); err != nil || strings.Contains(shown, c.Token) {
		s.Errorf("the token is shown (%v)", err)
	}
}

// checkNode wants exactly one node of this suite: the one created.
func (s *suite) checkNode(spec providers.NodeSpec, id string) {
	s.Helper()
	list := s.nodes()
	if len(list) != 1 {
		s.Fatalf("ListNodes gave %d nodes, created was 1", len(list))
	}
	if list[0].ExternalID != id || list[0].Name != s.named(spec) {
		s.Errorf("listed %+v, created was %s named %s", list[0], id, s.named(spec))
	}
	s.checkMetadata(spec.Metadata, list[0].Metadata)
}

func oneMachine(s *suite) {
	spec := s.spec()
	first := s.create(spec)
	if second := s.create(spec); second != first {
		s.Errorf("CreateNode gave %s, then %s", first, second)
	}
	s.wait(first)
	if third := s.create(spec); third != first {
		s.Errorf("CreateNode gave %s, and %s when it ran", first, third)
	}
	s.checkNode(spec, first)
	s.remove(first)
	s.remove(s.create(spec)) // the id is free again
}

func deleteStarting(s *suite) {
	id := s.create(s.spec())
	waited := make(chan error, 1)
	go func() {
		_, err := s.cloud.WaitNode(s.ctx, id)
		waited <- err
	}()
	s.remove(id)
	// The wait may have won the race.
	if err := <-waited; err != nil && !errors.Is(err, providers.ErrNotFound) {
		s.Errorf("WaitNode during DeleteNode gave %v", err)
	}
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

func deleteNodes(s *suite) {
	id := s.create(s.spec())
	for _, victim := range []string{"no-such-node", "../" + id, id, id} {
		s.remove(victim)
		if want := victim != id; (len(s.nodes()) == 1) != want {
			s.Errorf("DeleteNode of %s: %d nodes are left", victim, len(s.nodes()))
		}
	}
	if _, err := s.cloud.WaitNode(s.ctx, "no-such-node"); !errors.Is(err, providers.ErrNotFound) {
		s.Errorf("WaitNode of nothing gave %v", err)
	}
}

func quota(s *suite) {
	var ids []string
	for range s.Room {
		ids = append(ids, s.create(s.spec()))
	}
	one := s.spec()
	if id, err := s.cloud.CreateNode(s.ctx, one); !errors.Is(err, providers.ErrQuota) {
		s.Fatalf("CreateNode beyond %d gave %q, %v", s.Room, id, err)
	}
	if n := len(s.nodes()); n != s.Room {
		s.Errorf("%d nodes are listed, %d fit", n, s.Room)
	}
	s.remove(ids[0])
	s.create(one)
}

func limits(s *suite) {
	all, err := s.cloud.Limits(s.ctx, nil)
	if err != nil {
		s.Fatalf("Limits: %v", err)
	}
	one, err := s.cloud.NodeResources(s.ctx, s.Pool, s.Label)
	if err != nil {
		s.Fatalf("NodeResources: %v", err)
	}
	machine := one[providers.Cores] > 0 && one[providers.RAM] > 0
	if one[providers.Instances] != 1 || machine == s.Slots || s.Slots && len(one) > 1 {
		s.Errorf("NodeResources gave %v", one)
	}
	if s.Room == 0 {
		return
	}
	fits := s.Room
	for name, need := range one {
		if limit, ok := all[name]; ok && need > 0 {
			fits = min(fits, limit/need)
		}
	}
	if fits != s.Room {
		s.Errorf("limits %v hold %d nodes of %v, but %d fit", all, fits, one, s.Room)
	}
}

func imageDeleted(s *suite) {
	spec := s.spec()
	id := s.create(spec)
	s.wait(id)
	if err := s.cloud.DeleteImage(s.ctx, spec.ImageID); err != nil {
		s.Fatalf("DeleteImage under a node: %v", err)
	}
	if left := s.images(); len(left) > 0 {
		s.Errorf("the deleted image is listed: %+v", left)
	}
	s.wait(id)
	s.checkNode(spec, id)
	if s.AnyImage {
		return
	}
	other := s.spec()
	if _, err := s.cloud.CreateNode(s.ctx, other); !errors.Is(err, providers.ErrNotFound) {
		s.Errorf("CreateNode from the deleted image gave %v", err)
	}
}

func console(s *suite) {
	id := s.create(s.spec())
	s.wait(id)
	text, err := s.cloud.ConsoleLog(s.ctx, id, 4)
	if err != nil && !errors.Is(err, providers.ErrNotSupported) {
		s.Errorf("ConsoleLog: %v", err)
	}
	if len(text) > 4 {
		s.Errorf("ConsoleLog gave %d bytes, wanted were 4", len(text))
	}
}

func nodesOutlive(s *suite) {
	spec := s.spec()
	id := s.create(spec)
	s.wait(id)
	s.reopen()
	s.checkNode(spec, id)
	if again := s.create(spec); again != id {
		s.Errorf("CreateNode gave %s, after the restart %s", id, again)
	}
	s.wait(id)
	s.remove(id)
	if left := s.nodes(); len(left) > 0 {
		s.Errorf("left behind: %+v", left)
	}
}

// slots are told with the node that they are on, which no two have alike.
func slots(s *suite) {
	taken := map[string]string{}
	take := func() (id, slot string) {
		spec := s.spec()
		id = s.create(spec)
		on := s.wait(id).Slot
		if on == nil || on.Backing == "" || on.Metadata[providers.MetaNode] != spec.NodeID {
			s.Fatalf("node %s is on %+v", id, on)
		}
		return id, fmt.Sprintf("%s/%d", on.Backing, on.Number)
	}
	for range parties {
		id, slot := take()
		if taken[slot] != "" {
			s.Errorf("%s and %s are both on %s", taken[slot], id, slot)
		}
		taken[slot] = id
	}
	for slot, id := range taken {
		s.remove(id)
		if _, again := take(); again != slot {
			s.Errorf("the slot %s is free, the next node has %s", slot, again)
		}
		break
	}
}
