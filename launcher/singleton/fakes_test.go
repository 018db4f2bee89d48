package singleton

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// now is the time of all tests here.
var now = time.Unix(1_800_000_000, 0)

func fixed() time.Time { return now }

var errDown = errors.New("ZooKeeper is down")

// tree is what the types see of the tree. Nothing changes by itself.
type tree struct {
	nodes      []*zkmodel.Node
	requests   []*zkmodel.Request
	components []*zkmodel.Component
	unread     error
	barrier    func() error // what happens while the view catches up
}

func (v *tree) Nodes() []*zkmodel.Node                      { return slices.Clone(v.nodes) }
func (v *tree) Requests() []*zkmodel.Request                { return slices.Clone(v.requests) }
func (v *tree) Components(kind string) []*zkmodel.Component { return v.components }
func (v *tree) Listed(string) error                         { return v.unread }
func (v *tree) Unread(string) error                         { return v.unread }

func (v *tree) Node(id string) *zkmodel.Node {
	i := slices.IndexFunc(v.nodes, func(n *zkmodel.Node) bool { return n.ID == id })
	if i < 0 {
		return nil
	}
	return v.nodes[i]
}

func (v *tree) Request(id string) *zkmodel.Request {
	i := slices.IndexFunc(v.requests, func(r *zkmodel.Request) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return v.requests[i]
}

func (v *tree) Barrier(context.Context) error {
	if v.barrier != nil {
		return v.barrier()
	}
	return nil
}

// changes is a subscription.
type changes chan struct{}

func (c changes) C() <-chan struct{} { return c }

func (c changes) Take() []string { return nil }

// book is a log.
type book struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *book) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func newBook() (*book, hclog.Logger) {
	b := &book{}
	return b, hclog.New(&hclog.LoggerOptions{Output: b, Level: hclog.Info})
}

// request is one of our session 1, for stock of a label.
func stockRequest(id, label string, state zkmodel.RequestState) *zkmodel.Request {
	return &zkmodel.Request{
		ID: id, NodeTypes: zkmodel.Strings{label}, Requestor: schedule.MinReadyRequestor, State: state,
		RequestorData: zkmodel.JSONValue([]byte(`{"` + stockMark + `": "` + label + `"}`)),
		Stat:          recipe.Stat{EphemeralOwner: 1},
	}
}

// wantNone fails a test for an error.
func wantNone(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
