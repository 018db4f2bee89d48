package zookeeper_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
)

// where is the path of a step below the root of its program.
func (r *run) where(root string, s step) string {
	if s.last && r.made != "" {
		return r.made
	}
	switch {
	case strings.HasPrefix(s.path, "/zookeeper"), s.path == "/" && s.what != "setacl" && s.what != "delete":
		return s.path
	case s.path == "/":
		return root
	}
	return root + s.path
}

// ask sends the request of a step, and tells the answer.
func (r *run) ask(p *player, root string, s step) string {
	path := r.where(root, s)
	switch s.what {
	case "create", "container", "ttl":
		name, err := r.create(p, path, s)
		if err == nil && name != path {
			r.made = name
		}
		return tell(err, name)
	case "delete":
		return tell(p.conn.Delete(path, s.version))
	case "set":
		st, err := p.conn.Set(path, s.data, s.version)
		return tell(err, r.stat(st))
	case "acl":
		acl, st, err := p.conn.GetACL(path)
		slices.SortFunc(acl, func(a, b zk.ACL) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return tell(err, acl, r.stat(st))
	case "setacl":
		st, err := p.conn.SetACL(path, s.acl, s.version)
		return tell(err, r.stat(st))
	case "auth":
		user := fmt.Sprintf("u%d", s.flags)
		return tell(p.conn.AddAuth("digest", []byte(user+":p")))
	case "sync":
		name, err := p.conn.Sync(strings.ReplaceAll(path, "\U0001F600", "x")) // Java writes it as two halves
		return tell(err, name)
	case "reconfig":
		_, err := p.conn.IncrementalReconfig(nil, nil, -1)
		return tell(err)
	case "multi":
		return r.multi(p, root, s)
	case "reads":
		return r.reads(p, root, s)
	}
	if s.watch {
		return r.watch(p, path, s)
	}
	return r.read(p, path, s)
}

func (r *run) create(p *player, path string, s step) (string, error) {
	switch s.what {
	case "container":
		return p.conn.CreateContainer(path, s.data, zk.FlagContainer, s.acl)
	case "ttl":
		flags := int32(zk.FlagTTL)
		if s.watch {
			flags = zk.FlagPersistentSequentialWithTTL
		}
		return p.conn.CreateTTL(path, s.data, flags, s.acl, time.Duration(s.version)*time.Hour)
	}
	flags := s.flags
	if flags == zk.FlagTTL { // which the library refuses here
		flags = 0
	}
	return p.conn.Create(path, s.data, flags, s.acl)
}

func (r *run) read(p *player, path string, s step) string {
	switch s.what {
	case "get":
		data, st, err := p.conn.Get(path)
		return tell(err, fmt.Sprintf("%q", data), r.stat(st))
	case "exists":
		there, st, err := p.conn.Exists(path)
		return tell(err, there, r.stat(st))
	}
	list, st, err := p.conn.Children(path)
	slices.Sort(list)
	return tell(err, list, r.stat(st))
}

func (r *run) watch(p *player, path string, s step) string {
	var answer string
	var watch <-chan zk.Event
	switch s.what {
	case "get":
		data, st, w, err := p.conn.GetW(path)
		watch, answer = w, tell(err, fmt.Sprintf("%q", data), r.stat(st))
	case "exists":
		there, st, w, err := p.conn.ExistsW(path)
		watch, answer = w, tell(err, there, r.stat(st))
	default:
		list, st, w, err := p.conn.ChildrenW(path)
		slices.Sort(list)
		watch, answer = w, tell(err, list, r.stat(st))
	}
	if watch != nil {
		p.mu.Lock()
		p.watches = append(p.watches, watch)
		p.mu.Unlock()
	}
	return answer
}

func (r *run) multi(p *player, root string, s step) string {
	var ops []any
	text := ""
	for _, o := range s.ops {
		path := r.where(root, o)
		text += fmt.Sprintf(" [%s %s v%d f%d]", o.what, path, o.version, o.flags)
		switch o.what {
		case "create":
			ops = append(ops, &zk.CreateRequest{Path: path, Data: s.data, Acl: o.acl, Flags: o.flags})
		case "delete":
			ops = append(ops, &zk.DeleteRequest{Path: path, Version: o.version})
		case "set":
			ops = append(ops, &zk.SetDataRequest{Path: path, Data: s.data, Version: o.version})
		default:
			ops = append(ops, &zk.CheckVersionRequest{Path: path, Version: o.version})
		}
	}
	answers, err := p.conn.Multi(ops...)
	for _, a := range answers {
		text += fmt.Sprintf(" (%v %q %s)", a.Error, a.String, r.stat(a.Stat))
	}
	return tell(err, text)
}

// stat is all of one but the times, which are looked at, and whose sessions are named.
func (r *run) stat(s *zk.Stat) string {
	if s == nil {
		return "-"
	}
	if s.Czxid > 0 && (s.Mtime < s.Ctime || time.Since(time.UnixMilli(s.Ctime)) > time.Hour) {
		r.t.Errorf("times of a node: %d and %d", s.Ctime, s.Mtime)
	}
	owner := fmt.Sprintf("%#x", s.EphemeralOwner)
	if name := r.owners[s.EphemeralOwner]; name != "" {
		owner = name
	}
	return fmt.Sprintf("{%d %d %d v%d c%d a%d %s len%d kids%d}", s.Czxid, s.Mzxid, s.Pzxid, s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.NumChildren)
}

func tell(err error, parts ...any) string {
	if err != nil {
		return fmt.Sprintf("error %v; %s", err, fmt.Sprint(parts...))
	}
	return fmt.Sprint(parts...)
}

// reads are several as one request, which the library does not know. Names come in any
// order, and stats have times: of an answer, the length and the errors are told.
func (r *run) reads(p *player, root string, s step) string {
	var body []byte
	text := ""
	head := func(op uint32, last byte) {
		body = append(binary.BigEndian.AppendUint32(body, op), last, 255, 255, 255, 255)
	}
	for _, o := range s.ops {
		path, op := r.where(root, o), uint32(4)
		if o.what == "create" {
			op = 8
		}
		text += fmt.Sprintf(" [%d %s]", op, path)
		head(op, 0)
		body = append(append(binary.BigEndian.AppendUint32(body, uint32(len(path))), path...), 0)
	}
	head(1<<32-1, 1)
	p.mu.Lock()
	link := p.link
	p.mu.Unlock()
	answer, err := link.Ask(22, body)
	for _, code := range []int32{-101, -102, -8} {
		one := binary.BigEndian.AppendUint32(nil, uint32(code))
		text += fmt.Sprintf(" %d times %d,", bytes.Count(answer, one), code)
	}
	return tell(err, text, len(answer))
}
