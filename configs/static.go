package configs

import (
	"fmt"
	"slices"
	"time"
)

// StaticNode is a machine that exists already.
type StaticNode struct {
	Name            string
	Labels          []string
	Username        string
	Timeout         time.Duration
	HostKeyChecking bool
	HostKeys        []string
	ConnectionPort  int
	ConnectionType  string
	ShellType       string
	PythonPath      string
	MaxParallelJobs int
}

// staticDriver is the entry of the table of drivers.
func staticDriver() driver {
	return driver{
		name: DriverStatic, noImages: true,
		keys: func(l *loader, p *Provider) fields {
			return fields{"pools": named(&p.Pools, poolName, l.staticPool(p))}
		},
	}
}

// staticPool decodes one pool of machines that exist already.
func (l *loader) staticPool(p *Provider) func(value) Pool {
	seen := map[string]bool{} // over all pools of the provider
	return func(v value) Pool {
		pool := defaultPool(p)
		keys := l.poolKeys(&pool)
		keys["nodes"] = l.staticNodes(&pool.Nodes, seen)
		v.require(v.decode("pool", keys), "name")
		return pool
	}
}

// staticNodes decodes machines, of which several may have one name.
func (l *loader) staticNodes(out *[]StaticNode, seen map[string]bool) decodeFunc {
	return func(v value) {
		list(out, func(v value) StaticNode { return l.staticNode(v, seen) })(v)
		count := len(*out)
		*out = slices.DeleteFunc(*out, func(n StaticNode) bool { return n.Name == "" })
		if len(*out) < count {
			v.section().doubt(nil)
		}
	}
}

func (l *loader) staticNode(v value, seen map[string]bool) StaticNode {
	n := defaultStaticNode()
	keys := fields{
		"name":              checkedName("node", &n.Name),
		"labels":            l.labelNames(&n.Labels),
		"username":          text(&n.Username),
		"timeout":           patience(&n.Timeout, day),
		"host-key-checking": flag(&n.HostKeyChecking),
		"host-key":          textOrTexts(&n.HostKeys),
		"connection-port":   port(&n.ConnectionPort),
		"connection-type":   text(&n.ConnectionType),
		"shell-type":        text(&n.ShellType),
		"python-path":       text(&n.PythonPath),
		"max-parallel-jobs": number(&n.MaxParallelJobs, 1, unlimited),
		"ssh-port":          renamed("connection-port", port(&n.ConnectionPort)),
	}
	v.require(v.decode("static node", keys), "name", "labels")
	if n.ConnectionPort == 0 {
		n.ConnectionPort = ConnectionPort(n.ConnectionType)
	}
	identity := fmt.Sprintf("%s %s %d", n.Name, n.Username, n.ConnectionPort)
	if seen[identity] {
		v.fail("another node of the provider has the same name, username and port")
	}
	seen[identity] = true
	return n
}
