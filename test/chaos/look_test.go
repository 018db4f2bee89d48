package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// errMoving says that something changed while we looked.
var errMoving = errors.New("the tree changed meanwhile")

// look is the tree and the clouds at one moment.
type look struct {
	at, by   time.Time // when it began, and when it was over
	nodes    []*zkmodel.Node
	requests []*zkmodel.Request
	machines map[string][]providers.NodeInfo // by provider
}

// glance looks at the clouds, and at the tree before and after. Where the tree
// was the same both times, all is of one moment; else errMoving comes with what
// was seen of the clouds.
func (v *watch) glance(ctx context.Context) (*look, error) {
	session, err := v.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	store := zkmodel.NewStore(session, nil)
	l := &look{at: time.Now(), machines: map[string][]providers.NodeInfo{}}
	if err := l.tree(ctx, store); err != nil {
		return nil, err
	}
	for name, cloud := range v.clouds {
		if l.machines[name], err = cloud.ListNodes(ctx); err != nil {
			return nil, err
		}
	}
	again := &look{}
	if err := catchUp(ctx, session); err != nil { // our server may lag behind the clouds
		return nil, err
	}
	if err := again.tree(ctx, store); err != nil {
		return nil, err
	}
	l.by = time.Now() // later by far where servers were away meanwhile
	if !slices.Equal(l.versions(), again.versions()) {
		return l, errMoving
	}
	return l, nil
}

// lookPath is written before each look ends.
const lookPath = "/chaos-look"

// catchUp returns when our server has all that was committed. It writes, as a leader that was
// frozen, and is none any more, answers a sync all the same until it knows.
func catchUp(ctx context.Context, s *recipe.Session) error {
	_, err := s.Set(ctx, lookPath, nil, recipe.AnyVersion)
	if errors.Is(err, recipe.ErrNoNode) {
		return s.EnsurePath(ctx, lookPath)
	}
	return err
}

// tree reads all records.
func (l *look) tree(ctx context.Context, store *zkmodel.Store) (err error) {
	if l.nodes, err = store.Nodes(ctx); err != nil {
		return err
	}
	l.requests, err = store.Requests(ctx)
	return err
}

// versions tells of every record whether it is the same.
func (l *look) versions() []string {
	var all []string
	for _, n := range l.nodes {
		all = append(all, fmt.Sprint(n.ID, n.Stat.Version, n.Locked))
	}
	for _, r := range l.requests {
		all = append(all, fmt.Sprint(r.ID, r.Stat.Version))
	}
	return all
}

// request finds one by its id; nil when it is not there.
func (l *look) request(id string) *zkmodel.Request {
	i := slices.IndexFunc(l.requests, func(r *zkmodel.Request) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return l.requests[i]
}

// node finds one by its id; nil when it is not there.
func (l *look) node(id string) *zkmodel.Node {
	i := slices.IndexFunc(l.nodes, func(n *zkmodel.Node) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return l.nodes[i]
}
