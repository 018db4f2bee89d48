package site

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
	"poolkeeper/zkmodel/recipe"
)

// garbage is what a record may hold that an editor has left there.
var garbage = []string{"", "{", "[]", "null", "not JSON", `{"state": 7}`}

// garble has a person spoil a record, and put it back later: until then it is nobody's to delete.
func (w *world) garble() {
	path, text, d := w.someRecord(), garbage[w.rng.IntN(len(garbage))], 10*w.while()
	if path == "" {
		return
	}
	w.others.Go(func() {
		ctx := w.t.Context()
		s, err := w.looker.Session(ctx)
		if err != nil {
			return
		}
		data, stat, err := s.Get(ctx, path)
		if err != nil || slices.Contains(garbage, string(data)) {
			return // it is gone by now, or spoilt
		}
		spoilt := spoilt{path, text, data}
		w.mu.Lock()
		w.spoilt = append(w.spoilt, spoilt) // also when no answer comes
		w.mu.Unlock()
		if _, err = s.Set(ctx, path, []byte(text), stat.Version); err != nil {
			return
		}
		w.judge.Fault("garble", operator, "%s with %q for %s", path, text, d)
		wait(d)
		w.mend(spoilt)
	})
}

// spoilt is a record that a person has spoilt.
type spoilt struct {
	path, text string
	was        []byte
}

// mend puts a node's record back that is still spoilt, and deletes a request's.
func (w *world) mend(r spoilt) {
	for tries := range 100 {
		if tries > 0 {
			wait(time.Second)
		}
		s, err := w.looker.Session(w.t.Context())
		if err != nil {
			continue
		}
		now, stat, err := s.Get(w.t.Context(), r.path)
		_, request := recordOf(r.path)
		switch {
		case err != nil || string(now) != r.text:
		case request != "": // its requestor has given it up
			err = s.Delete(w.t.Context(), r.path, stat.Version)
		default:
			_, err = s.Set(w.t.Context(), r.path, r.was, stat.Version)
		}
		if err == nil || errors.Is(err, recipe.ErrNoNode) {
			for _, name := range names { // a restored tree had it spoilt, and its machine is gone
				w.judge.without(name, w.clouds.Nodes(name), func(n *zkmodel.Node) bool { return n.Path() == r.path })
			}
			return
		}
	}
}

// someRecord is the path of a node or request, or "".
func (w *world) someRecord() string {
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	var paths []string
	for _, id := range sorted(w.judge.tree.nodes) {
		paths = append(paths, zkmodel.NodePath(id))
	}
	for _, id := range sorted(w.judge.tree.requests) {
		paths = append(paths, zkmodel.RequestPath(id))
	}
	if len(paths) == 0 {
		return ""
	}
	return paths[w.rng.IntN(len(paths))]
}

// someNode is a node in one of some states, or nil.
func (w *world) someNode(states ...zkmodel.NodeState) *zkmodel.Node {
	w.judge.mu.Lock()
	defer w.judge.mu.Unlock()
	var list []*zkmodel.Node
	for _, id := range sorted(w.judge.tree.nodes) {
		n := w.judge.tree.nodes[id]
		for _, state := range states {
			if n.Broken == nil && (state == "" || n.State == state) {
				list = append(list, n)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// holdTime is how long people hold nodes: longer than a clock may be off, so that a hold that ends early is seen.
const holdTime = 3 * time.Minute

// operate has a person hold or delete a node by a command.
func (w *world) operate() {
	states := [][]zkmodel.NodeState{{zkmodel.NodeReady}, {zkmodel.NodeHold}, {zkmodel.NodeUsed, zkmodel.NodeInUse}, {""}}[w.rng.IntN(4)]
	n, hold := w.someNode(states...), w.rng.IntN(2) == 0
	if n == nil {
		return
	}
	what := "delete"
	if hold {
		what = "hold"
	}
	w.judge.Fault("operator "+what, operator, "node %s", n.ID)
	w.others.Go(func() { w.command(w.t.Context(), what, n.ID) })
}

// bereave has a person delete a node that a process was at as it crashed, one of a state that is seldom if there is any:
// before other launchers know of the crash, the person stands in line for the lock.
func (w *world) bereave(p *process, pick uint64) {
	if ids := w.judge.left(p.Name); len(ids) > 0 {
		id := ids[pick%uint64(len(ids))]
		w.judge.Fault("operator delete", operator, "node %s", id)
		w.others.Go(func() {
			wait(sessionTimeout - operate.LockWait/2)
			w.command(w.t.Context(), "delete", id)
		})
	}
}

// left are the nodes that a client was at: those that nobody has locked yet, and those that it has, or of these the ones whose
// launch has failed.
func (j *judge) left(client string) (ids []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var others []string
	for _, id := range sorted(j.tree.nodes) {
		n, by := j.tree.nodes[id], j.tree.holder(zkmodel.LockPath(zkmodel.NodePath(id))).client
		switch {
		case n.State == zkmodel.NodeInit || by == client && (n.State == zkmodel.NodeFailed || n.State == zkmodel.NodeAborted):
			ids = append(ids, id)
		case by == client:
			others = append(others, id)
		}
	}
	if len(ids) == 0 {
		return others
	}
	return ids
}

// command has a person hold or delete a node, which may take as long as another has its lock.
func (w *world) command(ctx context.Context, what, id string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := w.looker.Session(ctx)
	if err != nil {
		return
	}
	if o := operate.New(zkmodel.NewStore(s, nil), "simulated"); what == "hold" {
		err = o.Hold(ctx, id, "to look at", holdTime)
	} else {
		err = o.DeleteNode(ctx, id)
	}
	if err != nil {
		w.judge.Note(operator, "%s", err)
	}
}

// evict has a person delete a lock that is believed to be left over.
func (w *world) evict() {
	dir, c := w.judge.someLock(w.rng.Uint32())
	if dir == "" {
		return
	}
	w.judge.Fault("evict", c.client, "%s from %s", c.name, dir)
	w.judge.excuse(c.client)
	w.others.Go(func() {
		if s, err := w.looker.Session(w.t.Context()); err == nil {
			_ = s.Delete(w.t.Context(), dir+"/"+c.name, recipe.AnyVersion) // it may have gone
		}
	})
}

// someLock is a lock that a launcher holds.
func (j *judge) someLock(draw uint32) (dir string, c contender) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var dirs []string
	for _, dir := range sorted(j.tree.lines) {
		if isLauncher(j.tree.holder(dir).client) {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return "", c
	}
	dir = dirs[draw%uint32(len(dirs))]
	return dir, j.tree.holder(dir)
}
