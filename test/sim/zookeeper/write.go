package zookeeper

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"
)

// operation is a write as a client names it, alone or in a multi.
type operation struct {
	code    int32
	path    string
	data    []byte
	acl     []zk.ACL
	flags   int32
	ttl     int64
	version int32
}

// readOperation reads what belongs to code; false is for what is no write.
func readOperation(r *reader, code int32) (operation, bool) {
	o := operation{code: code, ttl: -1}
	o.path = r.string()
	switch code {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		o.data, o.acl, o.flags = r.buffer(), r.acl(), r.int32()
		if code == opCreateTTL {
			o.ttl = r.int64()
		}
	case opSetData:
		o.data, o.version = r.buffer(), r.int32()
	case opSetACL:
		o.acl, o.version = r.acl(), r.int32()
	case opDelete, opCheck:
		o.version = r.int32()
	default:
		return o, false
	}
	return o, !r.bad
}

// mortal reports whether o asks for a node with a time to live.
func (o operation) mortal() bool {
	return o.flags == zk.FlagTTL || o.flags == zk.FlagPersistentSequentialWithTTL
}

// readMulti reads the operations of a multi.
func readMulti(r *reader) (list []operation, ok bool) {
	for {
		code, done := r.int32(), r.bool()
		r.int32()
		if done || r.bad {
			return list, !r.bad
		}
		o, ok := readOperation(r, code)
		if !ok || code == opSetACL {
			return nil, false
		}
		if code == opCreate && o.flags == zk.FlagContainer { // here, the flag is enough
			o.code = opCreateContainer
		}
		list = append(list, o)
	}
}

// draft is a transaction in the making: what the leader's tree would be behind it.
type draft struct {
	tree    *tree
	session int64
	ids     []identity
	seen    map[string]*outline // nil is a node that is gone
}

// outline is what later steps need to know of a node.
type outline struct {
	acl                        []zk.ACL
	owner                      int64
	version, aversion, created int32
	children                   int
}

func (d *draft) find(path string) *outline {
	o, known := d.seen[path]
	if !known {
		if n := d.tree.nodes[path]; n != nil {
			o = &outline{n.acl, n.owner, n.version, n.aversion, n.created, len(n.children)}
			d.seen[path] = o
		}
	}
	return o
}

// step checks one operation, and says what it changes.
func (d *draft) step(o operation) (change, int32) {
	switch o.code {
	case opCreate, opCreate2, opCreateContainer, opCreateTTL:
		return d.create(o)
	case opDelete:
		return d.remove(o)
	case opReconfig:
		return change{}, errReconfigLocked
	case opError:
		return change{}, errMarshalling
	}
	if !validPath(o.path) {
		return change{}, errBadArguments
	}
	c, perm := change{code: o.code, path: o.path, data: o.data}, int32(zk.PermRead)
	switch o.code {
	case opSetData:
		perm = zk.PermWrite
	case opSetACL:
		perm = zk.PermAdmin
		acl, code := settle(o.acl, d.ids)
		if code != 0 {
			return c, code
		}
		c.acl = acl
	}
	n := d.find(o.path)
	if n == nil {
		return c, errNoNode
	}
	if !allowed(n.acl, perm, d.ids) {
		return c, errNoAuth
	}
	counter := &n.version
	if o.code == opSetACL {
		counter = &n.aversion
	}
	if o.version != -1 && o.version != *counter {
		return c, errBadVersion
	}
	if o.code != opCheck {
		*counter++
		c.version = *counter
	}
	if o.code == opSetACL {
		n.acl = c.acl
	}
	return c, 0
}

func (d *draft) create(o operation) (change, int32) {
	c := change{code: opCreate, path: o.path, data: o.data}
	if o.code == opCreate && o.mortal() { // it takes the time from where there is none
		return c, errMarshalling
	}
	var code int32
	c.owner, code = d.owner(o)
	if code != 0 {
		return c, code
	}
	if !strings.Contains(o.path, "/") || strings.Contains(o.path, "\x00") {
		return c, errBadArguments
	}
	if c.acl, code = settle(o.acl, d.ids); code != 0 {
		return c, code
	}
	parent := d.find(parentOf(o.path))
	if parent == nil {
		return c, errNoNode
	}
	if !allowed(parent.acl, zk.PermCreate, d.ids) {
		return c, errNoAuth
	}
	if slices.Contains([]int32{zk.FlagSequence, zk.FlagEphemeralSequential, zk.FlagPersistentSequentialWithTTL}, o.flags) {
		c.path += fmt.Sprintf("%010d", parent.created)
	}
	switch {
	case !validPath(c.path):
		return c, errBadArguments
	case d.find(c.path) != nil:
		return c, errNodeExists
	case parent.owner > 0:
		return c, errEphemeral
	}
	parent.created++
	parent.children++
	d.seen[c.path] = &outline{acl: c.acl, owner: c.owner}
	return c, 0
}

// owner is who a node will belong to. A container that is asked for by the plain request
// becomes a node like any other: only its own makes one.
func (d *draft) owner(o operation) (int64, int32) {
	ttl := o.mortal()
	switch {
	case o.flags < 0 || o.flags > zk.FlagPersistentSequentialWithTTL:
		return 0, errBadArguments
	case ttl && (o.ttl <= 0 || o.ttl > 1<<40-1), !ttl && o.ttl >= 0:
		return 0, errBadArguments
	case ttl:
		return ttlOwner | o.ttl, 0
	case o.flags == zk.FlagContainer && o.code == opCreateContainer:
		return containerOwner, 0
	case o.flags == zk.FlagEphemeral || o.flags == zk.FlagEphemeralSequential:
		return d.session, 0
	}
	return 0, 0
}

// remove does not ask whether a path is valid, only whether it is one of the servers' own.
func (d *draft) remove(o operation) (change, int32) {
	c := change{code: opDelete, path: o.path}
	if !strings.Contains(o.path, "/") || strings.Contains(o.path, "\x00") ||
		slices.Contains([]string{"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"}, o.path) {
		return c, errBadArguments
	}
	parent := d.find(parentOf(o.path))
	if parent == nil {
		return c, errNoNode
	}
	if !allowed(parent.acl, zk.PermDelete, d.ids) {
		return c, errNoAuth
	}
	n := d.find(o.path)
	switch {
	case n == nil:
		return c, errNoNode
	case o.version != -1 && o.version != n.version:
		return c, errBadVersion
	case n.children > 0:
		return c, errNotEmpty
	}
	parent.children--
	d.seen[o.path] = nil
	return c, 0
}

// validPath is as a server sees it, in Java's characters: what needs two is not allowed.
func validPath(path string) bool {
	if path == "/" {
		return true
	}
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return false
	}
	for name := range strings.SplitSeq(path[1:], "/") {
		if name == "" || name == "." || name == ".." {
			return false
		}
	}
	return !strings.ContainsFunc(path, func(r rune) bool {
		return r <= 0x1f || r >= 0x7f && r <= 0x9f || r >= 0xd800 && r <= 0xf8ff || r >= 0xfff0
	})
}
