package launcher_test

import (
	"slices"
	"testing"
	"time"

	"poolkeeper/configs"
	"poolkeeper/test/sshd"
	"poolkeeper/test/zktest"
	"poolkeeper/test/zuul"
	"poolkeeper/zkmodel"
)

// A machine that shows other keys than it was registered with, as after it was
// installed anew, is handed over with those that it shows.
func TestStaticMachineWithOtherKeys(t *testing.T) {
	t.Parallel()
	server := sshd.Start(t, 0)
	s := withSlots(t, 1, func(n *configs.StaticNode) {
		n.HostKeyChecking, n.ConnectionPort, n.Timeout, n.HostKeys = true, server.Port, 4*time.Second, nil
	})
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "two slots registered")
	before := s.nodes()[0].HostKeys
	server.Close()
	again := sshd.Start(t, server.Port)
	out := s.wait(s.submit(zuul.Wish{Labels: []string{"iron"}}))
	if out.State != "fulfilled" {
		t.Fatalf("%+v", out)
	}
	n := s.node(out.Nodes[0])
	if len(n.HostKeys) == 0 || slices.Equal(n.HostKeys, before) {
		t.Errorf("handed over with the keys %v, which it had before", n.HostKeys)
	}
	again.Close()
}

// Keys that the configuration changes are those of the free slots at once.
func TestStaticKeysOfTheConfigurationChange(t *testing.T) {
	t.Parallel()
	s := newSite(t, twoSlots)
	first := s.launch(s.withStatic)
	zktest.Eventually(t, func() bool { return s.free() == 2 }, "two slots registered")
	first.stop()
	s.config.Providers[0].Pools[0].Nodes[0].HostKeys = []string{"ssh-rsa NEW", "ssh-ed25519 NEW"}
	s.launch(s.withStatic)
	zktest.Eventually(t, func() bool {
		count := 0
		for _, n := range s.nodes() {
			if n.State == zkmodel.NodeReady && slices.Equal(n.HostKeys, []string{"ssh-rsa NEW", "ssh-ed25519 NEW"}) {
				count++
			}
		}
		return count == 2
	}, "both slots have the new keys")
}
