package host

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel/recipe"
)

// Mistakes: the room for a packet is not what was asked for; what fits is refused; a client is of no use any more once
// something was too long.
func TestNoPacketIsLongerThanItMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := zookeeper.New(zookeeper.Options{Servers: 1, Seed: 1})
		defer cluster.Close()
		client, err := recipe.Dial(recipe.Config{Servers: cluster.Addrs(), Timeout: 6 * time.Second, MaxPacket: 4096, Dial: cluster.Dialer("a")})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		s, err := client.Session(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Create(t.Context(), "/long", []byte(strings.Repeat("x", 5000)), recipe.Persistent); err == nil {
			t.Error("5000 bytes were sent in a packet of at most 4096")
		}
		fits := strings.Repeat("x", 3800)
		if _, err := s.Create(t.Context(), "/fits", []byte(fits), recipe.Persistent); err != nil {
			t.Fatal(err)
		}
		if data, _, err := s.Get(t.Context(), "/fits"); err != nil || string(data) != fits {
			t.Errorf("%d bytes come back: %v", len(data), err)
		}
	})
}
