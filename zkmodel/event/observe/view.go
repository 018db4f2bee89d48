package observe

import (
	"context"
	"errors"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// change is the state of a record as the tree shows it.
type change struct {
	subject, kind string
	data          event.Data
	zxid          int64     // of the last write
	since         time.Time // the state, by the clock of who wrote it; zero where nobody says
	flag          string    // the znode whose absence is the state
}

// view is one part of the tree.
type view interface {
	subscribe() *recipe.Subscription
	barrier(ctx context.Context) error
	names() []string
	// states are those of all that a name has; those that no event is of have no kind.
	// whole says that nothing of it could not be read.
	states(name string) (list []change, whole bool)
}

func (o *Observer) view() view {
	switch o.part {
	case Requests:
		return requests{o.deps.Tree}
	case Nodes:
		return nodes{o.deps.Tree}
	case Images:
	}
	return images{o.deps.Tree}
}

type images struct{ tree *zkmodel.Mirror }

func (v images) subscribe() *recipe.Subscription   { return v.tree.SubscribeImages() }
func (v images) barrier(ctx context.Context) error { return v.tree.Barrier(ctx) }
func (v images) names() []string                   { return v.tree.ImageNames() }

func (v images) states(name string) ([]change, bool) {
	if name == zkmodel.Folder {
		return nil, true
	}
	image := v.tree.Image(name)
	flag := change{subject: "image/" + name, data: event.Data{"image": name}, kind: event.ImageUnpaused, flag: zkmodel.PausePath(name)}
	if image.Paused {
		flag.kind, flag.flag, flag.zxid = event.ImagePaused, "", image.PausedSince
	}
	var list []change
	if image.Unread == nil || image.Paused {
		list = append(list, flag)
	}
	for _, b := range image.Builds {
		if b.Broken == nil {
			kind, subject, data := b.Event()
			list = append(list, change{subject: subject, kind: kind, data: data, zxid: b.Stat.Mzxid, since: since(b.StateTime)})
		}
		for _, u := range b.Uploads {
			if u.Broken == nil {
				kind, subject, data := u.Event()
				list = append(list, change{subject: subject, kind: kind, data: data, zxid: u.Stat.Mzxid, since: since(u.StateTime)})
			}
		}
	}
	return list, image.Unread == nil
}

type requests struct{ tree *zkmodel.Mirror }

func (v requests) subscribe() *recipe.Subscription   { return v.tree.SubscribeRequests() }
func (v requests) barrier(ctx context.Context) error { return v.tree.Barrier(ctx) }

func (v requests) names() []string {
	var names []string
	for _, r := range v.tree.Requests() {
		if r.State == zkmodel.RequestFailed {
			names = append(names, r.ID)
		}
	}
	return names
}

func (v requests) states(name string) ([]change, bool) {
	r := v.tree.Request(name)
	if r == nil || r.Broken != nil || r.State != zkmodel.RequestFailed {
		return nil, r == nil || !errors.Is(r.Broken, recipe.ErrUnread)
	}
	kind, subject, data := r.Event()
	return []change{{subject: subject, kind: kind, data: data, zxid: r.Stat.Mzxid, since: since(r.StateTime)}}, true
}

type nodes struct{ tree *zkmodel.Mirror }

func (v nodes) subscribe() *recipe.Subscription   { return v.tree.SubscribeNodes() }
func (v nodes) barrier(ctx context.Context) error { return v.tree.Barrier(ctx) }

func (v nodes) names() []string {
	var names []string
	for _, n := range v.tree.Nodes() {
		if v.isTheirs(n) || errors.Is(n.Broken, recipe.ErrUnread) {
			names = append(names, n.ID)
		}
	}
	return names
}

func (v nodes) states(name string) ([]change, bool) {
	n := v.tree.Node(name)
	if n == nil || !v.isTheirs(n) {
		return nil, n == nil || !errors.Is(n.Broken, recipe.ErrUnread)
	}
	kind, subject, data := n.Event()
	return []change{{subject: subject, kind: kind, data: data, zxid: n.Stat.Mzxid, since: since(n.StateTime)}}, true
}

// isTheirs reports whether a node is in a state to which no launcher of ours brings it. One
// of ours that has a node deleted says why in the record; a Nodepool's does not, and deletes
// what was used, as its command deletes what people name: so of its providers nobody can tell.
func (v nodes) isTheirs(n *zkmodel.Node) bool {
	switch {
	case n.Broken != nil:
		return false
	case n.State == zkmodel.NodeHold:
		return true
	case n.State != zkmodel.NodeDeleting || n.Reason != "" || n.Validates != "":
		return false
	}
	served := false
	for _, pool := range v.tree.Components(zkmodel.KindPool) {
		if pool.Broken != nil || pool.ProviderName == n.Provider && !pool.Heeds() {
			return false
		}
		served = served || pool.ProviderName == n.Provider
	}
	return served
}

// since is when a state began; zero where the record does not say.
func since(t zkmodel.Epoch) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Time()
}
