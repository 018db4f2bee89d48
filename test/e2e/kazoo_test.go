package e2e

import (
	"encoding/json"
	"path"
	"testing"

	"poolkeeper/test/journey"
	"poolkeeper/test/zktest"
)

// znode is one node of the tree, as Python's kazoo reads it.
type znode struct {
	Path      string
	Ephemeral bool
	Data      string
}

// record is the node's JSON.
func (z znode) record(t *testing.T) map[string]any {
	t.Helper()
	var record map[string]any
	if err := json.Unmarshal([]byte(z.Data), &record); err != nil {
		t.Fatalf("%s holds no record: %v: %q", z.Path, err, z.Data)
	}
	return record
}

// match reads the parts of the path that a pattern of path.Match leaves open;
// nil when it does not match.
func (z znode) match(t *testing.T, pattern string) bool {
	t.Helper()
	ok, err := path.Match(pattern, z.Path)
	if err != nil {
		t.Fatal(err)
	}
	return ok
}

// walk prints every node below /nodepool, a JSON object a line.
const walk = `
import json
def walk(path):
    try:
        data, stat = zk.get(path)
        names = sorted(zk.get_children(path))
    except NoNodeError:
        return
    say(json.dumps({"Path": path, "Ephemeral": stat.ephemeralOwner != 0, "Data": data.decode()}))
    for name in names:
        walk(path + "/" + name)
walk("/nodepool")
say("{}")
`

// dump reads the whole tree with kazoo.
func dump(t *testing.T, j *journey.Journey) []znode {
	t.Helper()
	z := j.Config().ZooKeeper
	kazoo := zktest.StartKazoo(t, z.Servers[0], z.Chroot, walk)
	var tree []znode
	for {
		var node znode
		line := kazoo.Hear()
		if err := json.Unmarshal([]byte(line), &node); err != nil {
			t.Fatalf("kazoo said %q: %v", line, err)
		}
		if node.Path == "" {
			return tree
		}
		tree = append(tree, node)
	}
}
