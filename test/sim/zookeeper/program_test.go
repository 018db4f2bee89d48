package zookeeper_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/go-zookeeper/zk"
)

// clients is how many play a program.
const clients = 3

// step is one thing that a client does.
type step struct {
	client  int
	what    string
	path    string
	data    []byte
	version int32
	flags   int32
	acl     []zk.ACL
	watch   bool
	ops     []step // of a multi
	last    bool   // takes the name that was made last, behind path
}

// names are what paths are made of: some are of no node, some of none that may be.
var names = []string{
	"/a", "/a/b", "/a/b/c", "/d", "/d/e", "/d/f", "/g", "/g/h", "/", "/none/x", "/zookeeper", "/zookeeper/quota/x",
	"/zookeeper/config", "/a/\U0001F600", "/a/\uE000", "/g/s-", "/d/s-",
}

// program is what clients do, one step after the other, as a seed wants it.
func program(seed uint64, steps int) []step {
	rng := rand.New(rand.NewPCG(seed, 1))
	list := []step{{client: 0, what: "begin"}}
	for i := range steps {
		s := draw(rng)
		s.client = rng.IntN(clients)
		s.data = []byte(fmt.Sprint(i))
		if s.what == "multi" || s.what == "reads" {
			for range rng.IntN(5) {
				s.ops = append(s.ops, part(rng))
			}
		}
		list = append(list, s)
	}
	return append(list, step{what: "end"})
}

// kinds are drawn from: what stands there more often is done more often.
var kinds = []string{
	"create", "create", "create", "create", "create", "create", "delete", "delete", "delete", "set", "set", "set",
	"get", "get", "get", "exists", "exists", "exists", "children", "children", "children", "multi", "multi", "multi",
	"acl", "setacl", "auth", "sync", "container", "ttl", "leave", "return", "return", "break", "renew", "reconfig", "reads", "reads",
}

func draw(rng *rand.Rand) step {
	s := part(rng)
	s.what = kinds[rng.IntN(len(kinds))]
	s.watch = rng.IntN(2) == 0
	return s
}

// part is a step of a multi, or what any step has.
func part(rng *rand.Rand) step {
	s := step{
		what:    []string{"create", "create", "delete", "set", "check"}[rng.IntN(5)],
		path:    names[rng.IntN(len(names))],
		version: -1,
		flags:   []int32{0, 0, 0, 0, zk.FlagEphemeral, zk.FlagEphemeral, zk.FlagSequence, zk.FlagEphemeralSequential, zk.FlagContainer, zk.FlagTTL}[rng.IntN(10)],
		acl:     zk.WorldACL(zk.PermAll),
		last:    rng.IntN(8) == 0,
	}
	if rng.IntN(3) > 0 {
		s.path = names[rng.IntN(8)]
	}
	if rng.IntN(4) == 0 {
		s.version = rng.Int32N(3)
	}
	switch rng.IntN(20) {
	case 0:
		s.acl = zk.AuthACL(zk.PermAll)
	case 1:
		s.acl = zk.DigestACL(zk.PermAll, "u1", "p")
	case 2:
		s.acl = zk.WorldACL(zk.PermRead)
	case 3:
		s.acl = append(zk.WorldACL(zk.PermAll&^zk.PermRead), zk.DigestACL(zk.PermRead, "u2", "p")...)
	case 4:
		s.acl = []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: []string{"127.0.0.0/8", "127.0.0.1", "10.1.2.3", "x"}[rng.IntN(4)]}}
	case 5:
		s.acl = [][]zk.ACL{nil, {{Perms: 31, Scheme: "world", ID: "you"}}, {{Perms: 31, Scheme: "digest", ID: "u1"}}, {{Perms: 31, Scheme: "odd", ID: "u1"}}}[rng.IntN(4)]
	}
	return s
}

// rare is what a drawn program seldom does.
func rare() []step {
	list := []step{{what: "begin"}}
	add := func(steps ...step) {
		for _, s := range steps {
			s.version = -1
			if s.acl == nil {
				s.acl = zk.WorldACL(zk.PermAll)
			}
			for i := range s.ops {
				s.ops[i].version, s.ops[i].acl = -1, s.acl
			}
			list = append(list, s)
		}
	}
	hidden := append(zk.WorldACL(zk.PermAll&^zk.PermRead), zk.DigestACL(zk.PermRead, "u2", "p")...)
	add(
		// One who watches data and children is told once.
		step{what: "create", path: "/a"},
		step{client: 1, what: "get", path: "/a", watch: true},
		step{client: 1, what: "exists", path: "/a", watch: true},
		step{client: 1, what: "children", path: "/a", watch: true},
		step{what: "delete", path: "/a"},
		// A node can go with its children in one transaction, and come back.
		step{what: "create", path: "/d"},
		step{what: "create", path: "/d/e"},
		step{what: "multi", ops: []step{{what: "delete", path: "/d/e"}, {what: "delete", path: "/d"}, {what: "create", path: "/d"}, {what: "create", path: "/d/s-", flags: zk.FlagSequence}}},
		step{what: "delete", path: "/d"},
		// Children of what is gone with a session, or will go.
		step{what: "create", path: "/g", flags: zk.FlagEphemeral},
		step{client: 2, what: "create", path: "/g/h"},
		step{client: 2, what: "exists", path: "/g", watch: true},
		step{what: "renew"},
		// Who may not read is not told, and has no watch any more; who may is.
		step{what: "create", path: "/a", acl: hidden},
		step{client: 1, what: "exists", path: "/a", watch: true},
		step{client: 2, what: "auth", flags: 2},
		step{client: 2, what: "get", path: "/a", watch: true},
		step{what: "set", path: "/a"},
		step{what: "set", path: "/a"},
		step{client: 2, what: "acl", path: "/a"},
		step{client: 1, what: "acl", path: "/a"},
	)
	return append(list, step{what: "end"})
}
