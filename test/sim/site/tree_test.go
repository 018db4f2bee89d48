package site

import (
	"maps"
	"path"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// tree is what the leader has, as far as the judge needs it. Records are not changed, but replaced.
type tree struct {
	nodes    map[string]*zkmodel.Node
	requests map[string]*zkmodel.Request
	lines    map[string][]contender // by the lock's directory
	last     map[string]string      // who held a lock before, by its directory
	held     map[string]time.Time   // when nodes came to be held
	pools    map[string]registered  // by path
	ready    map[string]bool        // builds and uploads, by path
	since    map[place]int          // in which transaction an image became ready that is, without a pause
}

// registered is a pool, and since when it is.
type registered struct {
	id string
	at time.Time
}

// contender is one that stands in line for a lock.
type contender struct {
	name    string
	session int64
	client  string
	at      time.Time
}

func newTree() *tree {
	return &tree{nodes: map[string]*zkmodel.Node{}, requests: map[string]*zkmodel.Request{}, lines: map[string][]contender{}, last: map[string]string{}, held: map[string]time.Time{}, pools: map[string]registered{}, ready: map[string]bool{}, since: map[place]int{}}
}

// clone is a copy that does not change.
func (t *tree) clone() *tree {
	one := &tree{nodes: maps.Clone(t.nodes), requests: maps.Clone(t.requests), lines: map[string][]contender{}, last: maps.Clone(t.last), held: maps.Clone(t.held), pools: maps.Clone(t.pools), ready: maps.Clone(t.ready), since: maps.Clone(t.since)}
	for dir, line := range t.lines {
		one.lines[dir] = append([]contender(nil), line...)
	}
	return one
}

// enter has one stand in line.
func (t *tree) enter(p string, session int64, client string) {
	dir, name := path.Split(p)
	t.lines[path.Clean(dir)] = append(t.lines[path.Clean(dir)], contender{name, session, client, time.Now()})
}

// leave has one go.
func (t *tree) leave(p string) {
	dir := path.Dir(p)
	if first := t.holder(dir); first.name == path.Base(p) {
		t.last[dir] = first.client
	}
	for i, c := range t.lines[dir] {
		if c.name == path.Base(p) {
			t.lines[dir] = append(t.lines[dir][:i:i], t.lines[dir][i+1:]...)
		}
	}
	if len(t.lines[dir]) == 0 {
		delete(t.lines, dir)
	}
}

// holder is who holds a lock: the one with the lowest number.
func (t *tree) holder(dir string) contender {
	var first contender
	for _, c := range t.lines[dir] {
		if first.name == "" || number(c.name) < number(first.name) {
			first = c
		}
	}
	return first
}

func number(name string) string { return name[len(name)-10:] }

// isContender reports whether a path is that of one that stands in line for a lock.
func isContender(p string) bool { return recipe.IsContender(path.Base(p)) }

// recordOf is which node or request a path is the record of; others are "".
func recordOf(p string) (node, request string) {
	dir, name := path.Dir(p), path.Base(p)
	switch dir {
	case zkmodel.NodesRoot:
		return name, ""
	case zkmodel.RequestsRoot:
		return "", name
	}
	return "", ""
}

// requestAt is the request that a path is the record of, or a contender for its lock; "" for others.
func requestAt(p string) string {
	if isContender(p) {
		if dir := path.Dir(p); path.Dir(dir) == zkmodel.LocksRoot {
			return path.Base(dir)
		}
		return ""
	}
	_, request := recordOf(p)
	return request
}

// isLauncher reports whether a client is a launcher's process.
func isLauncher(client string) bool { return strings.HasPrefix(client, "l") }

// isRequestor reports whether a client is a requestor.
func isRequestor(client string) bool { return strings.HasPrefix(client, "z") }

// operator is the client of the world itself, and of people in it.
const operator = "operator"
