package singleton

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

// stockTree is a tree in which requests for stock are made and deleted.
type stockTree struct {
	tree
	did    []string
	nobody bool // has an image
	lost   bool // the session is
}

func (s *stockTree) CreateBoundRequest(_ context.Context, priority string, r *zkmodel.Request) error {
	r.ID, r.State, r.Stat.EphemeralOwner = fmt.Sprint("new", len(s.did)), zkmodel.RequestRequested, s.ID()
	s.did = append(s.did, "ask "+priority+" "+r.NodeTypes[0])
	s.requests = append(s.requests, r)
	return nil
}

func (s *stockTree) DeleteRequest(_ context.Context, id string) error {
	s.did = append(s.did, "delete "+id)
	s.drop(id)
	return nil
}

func (s *stockTree) WithdrawRequest(ctx context.Context, r *zkmodel.Request) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.did = append(s.did, "withdraw "+r.ID)
	s.drop(r.ID)
	return nil
}

func (s *stockTree) drop(id string) {
	var left []*zkmodel.Request
	for _, r := range s.requests {
		if r.ID != id {
			left = append(left, r)
		}
	}
	s.requests = left
}

func (s *stockTree) ID() int64 { return 1 }

func (s *stockTree) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if s.lost {
		cancel()
	}
	return ctx, cancel
}

func (s *stockTree) CanMake(string) bool             { return !s.nobody }
func (s *stockTree) Deciding(context.Context) func() { return func() {} }
func (s *stockTree) Asked(string)                    {}

func (s *stockTree) stock(want int) *Stock {
	return NewStock("small", want, s, s, s, s, hclog.NewNullLogger(), fixed)
}

func idle(id string) *zkmodel.Node {
	return &zkmodel.Node{ID: id, State: zkmodel.NodeReady, Type: []string{"small"}, Provider: "cloud"}
}

// Catches a stock that asks for too many or too few, that ends what is a Nodepool's, or
// counts nodes that are somebody's.
func TestStockAsksForWhatIsMissing(t *testing.T) {
	nodepools := stockRequest("np", "small", zkmodel.RequestRequested)
	nodepools.RequestorData, nodepools.Stat.EphemeralOwner = zkmodel.Value{}, 7
	taken, other := idle("1"), idle("2")
	taken.AllocatedTo, other.Type = "r", []string{"large"}
	orphan := idle("3")
	orphan.State, orphan.Requestor, orphan.AllocatedTo = zkmodel.NodeBuilding, schedule.MinReadyRequestor, "gone"
	unknown := &zkmodel.Node{ID: "4", Broken: errDown}
	for name, tc := range map[string]struct {
		want     int
		nodes    []*zkmodel.Node
		requests []*zkmodel.Request
		nobody   bool
		did      string
	}{
		"nothing there":             {want: 2, did: "ask 900 small, ask 900 small"},
		"no image":                  {want: 2, nobody: true},
		"enough":                    {want: 1, nodes: []*zkmodel.Node{idle("0")}},
		"one is somebody's":         {want: 1, nodes: []*zkmodel.Node{taken}, did: "ask 900 small"},
		"another label":             {want: 1, nodes: []*zkmodel.Node{other}, did: "ask 900 small"},
		"a request waits":           {want: 1, requests: []*zkmodel.Request{stockRequest("a", "small", zkmodel.RequestRequested)}},
		"a Nodepool asks":           {want: 1, requests: []*zkmodel.Request{nodepools}},
		"the youngest goes":         {want: 1, requests: []*zkmodel.Request{stockRequest("a", "small", zkmodel.RequestRequested), stockRequest("b", "small", zkmodel.RequestRequested)}, did: "withdraw b"},
		"a Nodepool's stays":        {requests: []*zkmodel.Request{nodepools}},
		"what is in work stays":     {requests: []*zkmodel.Request{stockRequest("a", "small", zkmodel.RequestPending)}},
		"served by a Nodepool":      {want: 1, nodes: []*zkmodel.Node{idle("0")}, requests: []*zkmodel.Request{stockRequest("a", "small", zkmodel.RequestFulfilled)}, did: "delete a"},
		"launched without request":  {want: 1, nodes: []*zkmodel.Node{orphan}},
		"one that cannot be read":   {want: 1, nodes: []*zkmodel.Node{unknown}},
		"more nodes than wanted":    {want: 1, nodes: []*zkmodel.Node{idle("0"), idle("9")}},
		"another label's is no one": {want: 1, requests: []*zkmodel.Request{stockRequest("a", "large", zkmodel.RequestRequested)}, did: "ask 900 small"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &stockTree{tree: tree{nodes: tc.nodes, requests: tc.requests, components: []*zkmodel.Component{{ProviderName: "cloud"}}}, nobody: tc.nobody}
			failed, err := s.stock(tc.want).pass(t.Context())
			wantNone(t, err)
			if got := strings.Join(s.did, ", "); got != tc.did || failed {
				t.Errorf("%q (failed: %t), want %q", got, failed, tc.did)
			}
		})
	}
}

// Catches a count without a barrier between requests and nodes: a request that turns
// into a node while it is counted must not be asked for again.
func TestStockCountsWhatChangesMeanwhile(t *testing.T) {
	s := &stockTree{}
	s.barrier = func() error {
		s.nodes = []*zkmodel.Node{idle("0")}
		return nil
	}
	_, err := s.stock(1).pass(t.Context())
	wantNone(t, err)
	if len(s.did) > 0 {
		t.Errorf("%q, although another launcher's node came", s.did)
	}
}

// Catches a stock that asks again at once for what has just failed, which would make a
// request a millisecond.
func TestStockThatFailsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stockTree{}
		s.requests = []*zkmodel.Request{stockRequest("a", "small", zkmodel.RequestFailed)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		began := time.Now()
		s.barrier = func() error {
			if len(s.did) > 1 && s.did[1] == "ask 900 small" && time.Since(began) < time.Second/2 {
				t.Errorf("asked again after %s", time.Since(began))
			}
			return nil
		}
		go func() { done <- s.stock(1).Run(ctx, changes(nil), changes(nil), changes(nil)) }()
		<-time.After(3 * time.Second)
		synctest.Wait()
		if got := strings.Join(s.did, ", "); got != "delete a, ask 900 small" {
			t.Errorf("%q", got)
		}
		stop()
		wantNone(t, <-done)
	})
}

// Catches requests that outlive the duty, of which nobody would ever delete the node
// that a Nodepool makes; and a withdrawal that a context which has ended prevents.
func TestStockIsWithdrawnAtTheEnd(t *testing.T) {
	waits, works, others := stockRequest("a", "small", zkmodel.RequestRequested), stockRequest("b", "small", zkmodel.RequestPending), stockRequest("c", "small", zkmodel.RequestRequested)
	others.Stat.EphemeralOwner = 2
	for name, tc := range map[string]struct {
		lost bool
		want string
	}{"the duty moves": {false, "withdraw a"}, "the session is lost": {true, ""}} {
		t.Run(name, func(t *testing.T) {
			s := &stockTree{tree: tree{requests: []*zkmodel.Request{waits, works, others}}, lost: tc.lost}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			wantNone(t, s.stock(3).Run(ctx, changes(nil), changes(nil), changes(nil)))
			if got := strings.Join(s.did, ", "); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
