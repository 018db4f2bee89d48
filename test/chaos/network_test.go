package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"poolkeeper/test/zktest"
)

// network is between hosts and servers. Whoever has a name in it has a cable of its own.
type network interface {
	// says what it is made of.
	says() string
	// place is where a server runs.
	place(name string) zktest.Place
	// command takes a program to a host.
	command(host string) []string
	// servers are the addresses at which a host finds the servers; those are given as all
	// others know them.
	servers(host string, addrs []string) []string
	// cut takes a cable away, deafen one half of it: what is sent, or what would be heard.
	cut(name string)
	deafen(name string, sends bool)
	// slow makes a cable slow, heal whole.
	slow(name string)
	heal(name string)
}

// namespaces are hosts with a network namespace each, all on one bridge. They exist in the
// namespace in which the test runs, and go with it.
type namespaces struct {
	t     *testing.T
	addrs map[string]string // by name
	lag   []string          // how tc makes a cable slow
	how   string
}

const (
	bridge  = "chaos"
	gateway = "10.99.0.1"
	// nobodys is a hardware address that no cable has: what is sent there is lost.
	nobodys = "02:00:00:00:00:01"
)

// newNamespaces makes hosts with these names.
func newNamespaces(t *testing.T, names []string) *namespaces {
	t.Helper()
	n := &namespaces{t: t, addrs: map[string]string{}}
	n.must("ip", "link", "set", "lo", "up")
	n.must("ip", "link", "add", bridge, "type", "bridge", "forward_delay", "0")
	n.must("ip", "addr", "add", gateway+"/24", "dev", bridge)
	n.must("ip", "link", "set", bridge, "up")
	for i, name := range names {
		n.addrs[name] = fmt.Sprintf("10.99.0.%d", 10+i)
		n.must("ip", "netns", "add", name)
		n.must("ip", "link", "add", cable(name), "type", "veth", "peer", "name", "eth0", "netns", name)
		n.must("ip", "link", "set", cable(name), "master", bridge, "up")
		n.must("ip", "-n", name, "addr", "add", n.addrs[name]+"/24", "dev", "eth0")
		n.must("ip", "-n", name, "link", "set", "lo", "up")
		n.must("ip", "-n", name, "link", "set", "eth0", "up")
	}
	for _, lag := range []string{"netem delay 120ms 60ms loss 3%", "tbf rate 100kbit burst 2kb latency 600ms"} {
		args := strings.Fields("qdisc add dev " + cable(names[0]) + " root " + lag)
		if exec.CommandContext(t.Context(), "tc", args...).Run() == nil {
			n.lag, n.how = strings.Fields(lag), lag
			n.must("tc", "qdisc", "del", "dev", cable(names[0]), "root")
			break
		}
	}
	if n.lag == nil {
		t.Fatal("tc can make no cable slow: neither netem nor tbf is in this kernel")
	}
	return n
}

// cable is the bridge's end of a host's.
func cable(name string) string { return "v-" + name }

// must runs a program that has to work.
func (n *namespaces) must(program string, args ...string) {
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil { //nolint:noctx // at once
		n.t.Errorf("%s %s: %v: %s", program, strings.Join(args, " "), err, out)
	}
}

// try runs one that may have nothing to do.
func (n *namespaces) try(program string, args ...string) {
	_ = exec.Command(program, args...).Run() //nolint:noctx // at once
}

func (n *namespaces) says() string {
	return "a network namespace for each host and server; slow is tc's " + n.how
}

func (n *namespaces) place(name string) zktest.Place {
	return zktest.Place{Addr: n.addrs[name], Command: n.command(name)}
}

func (n *namespaces) command(host string) []string {
	return []string{"nsenter", "--net=/run/netns/" + host, "--"}
}

func (n *namespaces) servers(_ string, addrs []string) []string { return addrs }

func (n *namespaces) cut(name string) { n.must("ip", "link", "set", cable(name), "down") }

// deafen has one side think that the other has another hardware address.
func (n *namespaces) deafen(name string, sends bool) {
	for other, addr := range n.addrs {
		switch {
		case other == name:
		case sends:
			n.must("ip", "-n", name, "neigh", "replace", addr, "lladdr", nobodys, "dev", "eth0", "nud", "permanent")
		default:
			n.must("ip", "-n", other, "neigh", "replace", n.addrs[name], "lladdr", nobodys, "dev", "eth0", "nud", "permanent")
		}
	}
}

func (n *namespaces) slow(name string) {
	n.must("tc", append([]string{"qdisc", "replace", "dev", cable(name), "root"}, n.lag...)...)
	n.must("ip", append([]string{"netns", "exec", name, "tc", "qdisc", "replace", "dev", "eth0", "root"}, n.lag...)...)
}

func (n *namespaces) heal(name string) {
	n.try("tc", "qdisc", "del", "dev", cable(name), "root")
	n.try("ip", "netns", "exec", name, "tc", "qdisc", "del", "dev", "eth0", "root")
	for other, addr := range n.addrs {
		if other != name {
			n.try("ip", "-n", name, "neigh", "del", addr, "dev", "eth0")
			n.try("ip", "-n", other, "neigh", "del", n.addrs[name], "dev", "eth0")
		}
	}
	n.must("ip", "link", "set", cable(name), "up")
}

// proxies are for machines on which we may make no namespaces: what a host has to do with a
// server goes through a proxy. Servers reach each other without any.
type proxies struct {
	t  *testing.T
	by map[string][]*zktest.Proxy // host to its proxies, one a server
}

func (*proxies) says() string {
	return "a TCP proxy for each host and server, as only root can make network namespaces"
}

func (*proxies) place(string) zktest.Place { return zktest.Place{Addr: "127.0.0.1"} }

func (*proxies) command(string) []string { return nil }

func (p *proxies) servers(host string, addrs []string) []string {
	if p.by[host] == nil {
		for _, addr := range addrs {
			p.by[host] = append(p.by[host], zktest.StartProxy(p.t, addr))
		}
	}
	var all []string
	for _, one := range p.by[host] {
		all = append(all, one.Addr())
	}
	return all
}

// each does something to all that passes a name: a host, or a server ("zk-1").
func (p *proxies) each(name string, do func(*zktest.Proxy)) {
	for host, list := range p.by {
		for i, one := range list {
			if host == name || serverName(i) == name {
				do(one)
			}
		}
	}
}

func (p *proxies) cut(name string) { p.each(name, (*zktest.Proxy).Cut) }

func (p *proxies) deafen(name string, sends bool) {
	p.each(name, func(one *zktest.Proxy) {
		if sends {
			one.CutUp()
		} else {
			one.CutDown()
		}
	})
}

func (p *proxies) slow(name string) {
	p.each(name, func(one *zktest.Proxy) { one.Slow(slowBy) })
}

func (p *proxies) heal(name string) { p.each(name, (*zktest.Proxy).Heal) }

// newNetwork takes namespaces where inside has taken us into some.
func newNetwork(t *testing.T, names []string) network {
	t.Helper()
	if os.Getenv(insideEnv) != "" {
		return newNamespaces(t, names)
	}
	return &proxies{t: t, by: map[string][]*zktest.Proxy{}}
}

// serverName is the name of a ZooKeeper server.
func serverName(i int) string { return fmt.Sprintf("zk-%d", i+1) }
