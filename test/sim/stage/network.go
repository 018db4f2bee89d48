package stage

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"poolkeeper/test/sim/zookeeper"
)

// MaxPacket is for connections of worlds in which no packet is longer. The library has room for one ready in each
// direction, by default 1.5 MB that are to be cleared for each connection.
const MaxPacket = 128 << 10

// Network makes the faults of networks, hosts and ZooKeeper's servers. Each ends by itself.
type Network struct {
	Cluster *zookeeper.Cluster
	Servers int
	Line    *Timeline
	Rand    *rand.Rand    // of the fault that is made
	Longest time.Duration // how long a fault may last

	away atomic.Bool // a server is
}

// Faults are those that Fault makes.
func Faults() []string {
	return []string{
		"cut", "cut up", "cut down", "pause", "break", "slow", "lost answer", "lag", "leader change", "isolate", "kill", "clock step",
		"doubled events",
	}
}

// CameTwice is what Heal counts when an event did so: the fault alone may meet none.
const CameTwice = "an event comes twice"

// Fault makes one, to a host where it is one of hosts.
func (n *Network) Fault(fault string, m *Machine) { n.FaultBy(n.Rand, fault, m) }

// FaultBy is Fault for one that comes later than others that were drawn behind it.
func (n *Network) FaultBy(rng *rand.Rand, fault string, m *Machine) {
	d := time.Duration(rng.Int64N(int64(n.Longest)))
	server := 1 + rng.IntN(n.Servers)
	switch fault {
	case "cut":
		n.Line.Fault(fault, m.Name, "for %s", d)
		n.Cluster.Cut(m.Name)
		n.heal(m, d)
	case "cut up":
		n.Line.Fault(fault, m.Name, "for %s", d)
		n.Cluster.CutUp(m.Name)
		n.heal(m, d)
	case "cut down":
		n.Line.Fault(fault, m.Name, "for %s", d)
		n.Cluster.CutDown(m.Name)
		n.heal(m, d)
	case "pause":
		n.pause(m, d)
	case "break":
		n.Line.Fault(fault, m.Name, "")
		n.Cluster.Break(m.Name)
	case "slow":
		n.Line.Fault(fault, m.Name, "by %s", d/10)
		n.Cluster.Slow(m.Name, d/10)
	case "lost answer":
		n.Line.Fault(fault, m.Name, "")
		n.Cluster.DropAnswer(m.Name)
	case "doubled events":
		n.Line.Fault(fault, m.Name, "for %s, up to %s later", d, d/10)
		n.Cluster.Double(m.Name, d/10)
		n.heal(m, d)
	case "clock step":
		by := d - n.Longest/2
		n.Line.Fault(fault, m.Name, "by %s", by)
		m.Set(by)
	case "lag":
		n.Line.Fault(fault, fmt.Sprint("server ", server), "by %s", d/4)
		n.Cluster.Lag(server, d/4)
	case "leader change":
		n.Line.Fault(fault, "servers", "")
		n.Cluster.LeaderChange()
	case "isolate":
		n.without(fault, server, d, n.Cluster.Isolate, n.Cluster.Join)
	case "kill":
		n.without(fault, server, d, n.Cluster.Kill, n.Cluster.Start)
	}
}

func (n *Network) heal(m *Machine, after time.Duration) {
	time.AfterFunc(after, func() { n.Cluster.Heal(m.Name) })
}

// pause stops a process: neither its timers nor its packets move.
func (n *Network) pause(m *Machine, d time.Duration) {
	n.Line.Fault("pause", m.Name, "for %s", d)
	m.Pause()
	n.Cluster.Cut(m.Name)
	time.AfterFunc(d, func() {
		n.Line.Note(m.Name, "goes on")
		m.Resume()
		n.Cluster.Heal(m.Name)
	})
}

// A majority of servers is always left, so that work goes on, most of the time.
func (n *Network) without(fault string, server int, d time.Duration, begin, end func(server int)) {
	if n.away.Swap(true) {
		return
	}
	n.Line.Fault(fault, fmt.Sprint("server ", server), "for %s", d)
	begin(server)
	time.AfterFunc(d, func() {
		end(server)
		n.away.Store(false)
	})
}

// Heal waits until all faults have ended, and ends those that do not by themselves.
func (n *Network) Heal(machines ...*Machine) {
	<-time.After(n.Longest)
	for _, m := range machines {
		n.Cluster.Heal(m.Name)
	}
	for server := range n.Servers {
		n.Cluster.Lag(server+1, 0)
	}
	if n.Cluster.Traffic().Doubled > 0 {
		n.Line.Count(CameTwice)
	}
	n.Line.Note("world", "has no more faults")
}
