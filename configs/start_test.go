package configs_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"poolkeeper/configs"
)

// Catches a key that a running daemon does not take, of which nothing is said.
func TestNeedRestart(t *testing.T) {
	one := &configs.Config{ZooKeeper: configs.ZooKeeper{Servers: []string{"a:1"}, TLS: &configs.ZooKeeperTLS{Cert: "x"}}}
	two := &configs.Config{ZooKeeper: configs.ZooKeeper{Servers: []string{"b:1"}, TLS: &configs.ZooKeeperTLS{Cert: "x"}}}
	if keys := configs.NeedRestart(one, two); len(keys) > 0 {
		t.Errorf("other servers alone need a restart because of %q", keys)
	}
	two.ZooKeeper = configs.ZooKeeper{
		Chroot: "/x", Timeout: time.Second, TLS: &configs.ZooKeeperTLS{Cert: "y"}, Auth: &configs.ZooKeeperAuth{},
	}
	two.WebApp.Port, two.WebApp.Tokens = 1, []configs.WebToken{{Name: "ann"}}
	want := []string{"webapp.port", "zookeeper-auth", "zookeeper-servers[].chroot", "zookeeper-timeout", "zookeeper-tls"}
	if diff := cmp.Diff(want, configs.NeedRestart(one, two)); diff != "" {
		t.Errorf("what needs a restart (-want +got):\n%s", diff)
	}
}
