package configs

import "fmt"

// staticPool decodes one pool of machines that exist already.
func (l *loader) staticPool(p *Provider) func(value) Pool {
	seen := map[string]bool{} // over all pools of the provider
	return func(v value) Pool {
		pool := defaultPool(p)
		keys := l.poolKeys(&pool)
		keys["nodes"] = list(&pool.Nodes, func(v value) StaticNode { return l.staticNode(v, seen) })
		v.require(v.decode("pool", keys), "name")
		return pool
	}
}

func (l *loader) staticNode(v value, seen map[string]bool) StaticNode {
	n := defaultStaticNode()
	keys := fields{
		"name":              checkedName("node", &n.Name),
		"labels":            l.labelNames(&n.Labels),
		"username":          text(&n.Username),
		"timeout":           wholeSeconds(&n.Timeout, 0),
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
		n.ConnectionPort = connectionPort(n.ConnectionType)
	}
	identity := fmt.Sprintf("%s %s %d", n.Name, n.Username, n.ConnectionPort)
	if seen[identity] {
		v.fail("another node of the provider has the same name, username and port")
	}
	seen[identity] = true
	return n
}
