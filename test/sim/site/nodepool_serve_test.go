package site

import (
	"encoding/json"
	"errors"
	"path"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// errDies is why a Nodepool leaves all as it is.
var errDies = errors.New("it dies")

// serve looks at all requests, time and again, as a pool of Nodepool's does.
func (n *nodepool) serve(d time.Duration) error {
	for began := n.world.judge.Age(); n.world.judge.Age()-began < d; wait(time.Second) {
		ids, err := n.Children(n.Context(), zkmodel.RequestsRoot)
		if err != nil {
			return err
		}
		slices.Sort(ids)
		for _, id := range ids {
			if err := n.consider(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// consider does with a request what is its to do: nothing, as if it were paused, or decline, or accept it.
func (n *nodepool) consider(id string) error {
	r, err := n.read(zkmodel.RequestPath(id))
	if err != nil || r == nil || !n.isOpen(r) {
		return err
	}
	what, known := n.intention[id]
	if !known {
		what = []string{"accept", "accept", "decline", ""}[n.rng.IntN(4)]
		n.intention[id] = what
	}
	if mine, err := n.isMine(r); err != nil || what == "" && mine == "" || mine == "later" {
		return err
	} else if mine == "decline" {
		what = mine
	}
	lock, err := recipe.NewLock(n.Session, zkmodel.RequestLockPath(id), n.name, recipe.EnsureParents()).Try(n.Context())
	if errors.Is(err, recipe.ErrLocked) {
		return nil
	} else if err != nil {
		return err
	}
	if r, err = n.read(r.path); err == nil && r != nil && n.isOpen(r) {
		if what == "decline" {
			n.world.judge.Count("nodepool declines")
			err = n.decline(r)
		} else {
			err = n.accept(r)
		}
	}
	if err != nil {
		return err // its session ends, and with it the lock
	}
	return lock.Release(n.Context())
}

func (n *nodepool) isOpen(r *record) bool {
	return r.text("state") == "requested" && !slices.Contains(r.texts("declined_by"), n.id)
}

// isMine is "later" for a request that it leaves to another pool, "decline" for one that nobody else can serve, either.
func (n *nodepool) isMine(r *record) (string, error) {
	pools, err := n.pools()
	if err != nil {
		return "", err
	}
	can := func(labels []string) bool {
		return !slices.ContainsFunc(r.texts("node_types"), func(label string) bool { return !slices.Contains(labels, label) })
	}
	others, wanted := false, false
	for _, p := range pools {
		if p.ID != n.id && can(p.Labels) && !slices.Contains(r.texts("declined_by"), p.ID) {
			others, wanted = true, wanted || p.Provider == r.text("provider")
		}
	}
	switch provider := r.text("provider"); {
	case provider != "" && provider != n.cloud && wanted, !can(n.labels) && others:
		return "later", nil
	case !can(n.labels):
		return "decline", nil
	}
	return "", nil
}

// pool is one that is registered.
type pool struct {
	ID       string   `json:"id"`
	Provider string   `json:"provider_name"`
	Labels   []string `json:"supported_labels"`
}

func (n *nodepool) pools() (list []pool, err error) {
	dir := zkmodel.ComponentsRoot + "/pool"
	all, err := n.Children(n.Context(), dir)
	for _, name := range all {
		data, _, err := n.Get(n.Context(), dir+"/"+name)
		var p pool
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		} else if err != nil {
			return nil, err
		} else if json.Unmarshal(data, &p) == nil {
			list = append(list, p)
		}
	}
	return list, err
}

// decline adds itself to those that have declined; the last of them has the request fail.
func (n *nodepool) decline(r *record) error {
	pools, err := n.pools()
	if err != nil {
		return err
	}
	by := append(r.texts("declined_by"), n.id)
	r.keys["declined_by"] = by
	if slices.ContainsFunc(pools, func(p pool) bool { return !slices.Contains(by, p.ID) }) {
		r.move("requested")
	} else {
		r.move("failed")
	}
	return n.write(r, requestKeys)
}

// dies reports whether its part is to die now.
func (n *nodepool) dies(when string) bool {
	if n.ends != when {
		return false
	}
	n.world.judge.Count("nodepool " + when)
	return true
}

// accept has nodes for a request, of its own or new ones, and ends it in its way.
func (n *nodepool) accept(r *record) error {
	n.world.judge.Note(n.name, "accepts %s", r.path)
	r.move("pending")
	if err := n.write(r, requestKeys); err != nil {
		return err
	}
	if n.dies("dies when it has accepted") {
		return errDies
	}
	var nodes []*record
	var locks []*recipe.Held
	for _, label := range r.texts("node_types") {
		node, lock, err := n.node(label, r)
		if err != nil {
			return err
		}
		nodes, locks = append(nodes, node), append(locks, lock)
	}
	return n.finish(r, nodes, locks)
}

// node is a ready one of its pool, which nobody has, or else a new one.
func (n *nodepool) node(label string, r *record) (*record, *recipe.Held, error) {
	if r.keys["reuse"] != false && n.rng.IntN(2) == 0 {
		node, lock, err := n.reuse(label, r)
		if err != nil || node != nil {
			return node, lock, err
		}
	}
	node, err := n.newNode(label, r, "init")
	if err != nil {
		return nil, nil, err
	}
	lock, err := recipe.NewLock(n.Session, zkmodel.LockPath(node.path), n.name, recipe.EnsureParents()).Try(n.Context())
	if err != nil {
		return nil, nil, err
	}
	node.move("building")
	if err := n.write(node, nodeKeys); err != nil {
		return nil, nil, err
	}
	if n.dies("dies with a new record") {
		return nil, nil, errDies
	}
	machine := n.machine(node)
	wait(time.Duration(n.rng.Int64N(int64(time.Second))))
	if n.dies("dies with a new machine") {
		return nil, nil, errDies
	}
	node.keys["external_id"] = machine
	if err := n.write(node, nodeKeys); err != nil {
		return nil, nil, err
	}
	wait(time.Duration(n.rng.Int64N(int64(8 * time.Second))))
	return node, lock, nil
}

// reuse takes a ready node for a request; nil is none.
func (n *nodepool) reuse(label string, r *record) (*record, *recipe.Held, error) {
	ids, err := n.Children(n.Context(), zkmodel.NodesRoot)
	slices.Sort(ids)
	for _, id := range ids {
		fits := func(node *record) bool {
			return node != nil && node.text("state") == "ready" && node.text("allocated_to") == "" && node.text("provider") == n.cloud &&
				node.text("pool") == "main" && slices.Contains(node.texts("type"), label)
		}
		node, err := n.read(zkmodel.NodePath(id))
		if err != nil {
			return nil, nil, err
		} else if !fits(node) {
			continue
		}
		lock, err := recipe.NewLock(n.Session, zkmodel.LockPath(node.path), n.name, recipe.EnsureParents()).Try(n.Context())
		if errors.Is(err, recipe.ErrLocked) || errors.Is(err, recipe.ErrNoNode) {
			continue
		} else if err != nil {
			return nil, nil, err
		}
		if node, err = n.read(node.path); err == nil && fits(node) {
			n.world.judge.Count("nodepool takes a ready node")
			node.keys["allocated_to"], node.keys["tenant_name"], node.keys["requestor"] = path.Base(r.path), r.keys["tenant_name"], r.keys["requestor"]
			return node, lock, n.write(node, nodeKeys)
		}
		if err = errors.Join(err, lock.Release(n.Context())); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

// finish ends a request that has its nodes, or whose launches failed.
func (n *nodepool) finish(r *record, nodes []*record, locks []*recipe.Held) error {
	now, err := n.read(r.path)
	if err != nil {
		return err
	}
	failed, ids := n.ends == "fails", []string{}
	for _, node := range nodes {
		ids = append(ids, path.Base(node.path))
		if failed && now != nil {
			continue
		}
		if now == nil { // its requestor has given it up: the nodes are anybody's
			node.keys["allocated_to"] = nil
		}
		node.move("ready")
		if err := n.write(node, nodeKeys); err != nil {
			return err
		}
	}
	if n.dies("dies with a ready node") {
		return errDies
	}
	for _, lock := range locks {
		if err := lock.Release(n.Context()); err != nil {
			return err
		}
	}
	switch {
	case now == nil:
		return nil
	case failed:
		n.world.judge.Count("nodepool fails")
		return n.decline(now)
	}
	n.world.judge.Count("nodepool fulfils")
	now.keys["nodes"] = ids
	now.move("fulfilled")
	return n.write(now, requestKeys)
}
