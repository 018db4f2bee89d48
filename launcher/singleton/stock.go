package singleton

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/schedule"
	"poolkeeper/zkmodel"
)

const (
	// minReadyPriority is how urgently stock is asked for; Nodepool's word.
	minReadyPriority = "900"
	// stockPause gathers changes before the stock is counted again.
	stockPause = 50 * time.Millisecond
	// cleanupTime is how long giving up what a duty has made may take at its end.
	cleanupTime = 5 * time.Second
	// stockMark is the key of requestor_data that tells our requests for stock from a
	// Nodepool's, which have the same requestor. A Nodepool that serves one hands the
	// data on as it is; a key of the record itself it would drop.
	stockMark = "poolkeeper-stock"
)

// StockView is what Stock sees of the tree.
type StockView interface {
	Nodes() []*zkmodel.Node
	Requests() []*zkmodel.Request
	Components(kind string) []*zkmodel.Component
	Barrier(ctx context.Context) error
}

// StockRequests is what Stock writes.
type StockRequests interface {
	CreateBoundRequest(ctx context.Context, priority string, r *zkmodel.Request) error
	DeleteRequest(ctx context.Context, id string) error
	WithdrawRequest(ctx context.Context, r *zkmodel.Request) error
}

// Session is the one that requests for stock end with.
type Session interface {
	ID() int64
	Bind(ctx context.Context) (context.Context, context.CancelFunc)
}

// StockPools are the pools of this launcher.
type StockPools interface {
	// CanMake reports whether one of them has an image for a label.
	CanMake(label string) bool
	// Deciding is called before the stock is counted, and done when what is missing is asked for.
	Deciding(ctx context.Context) (done func())
	// Asked is called for each request for stock that was made.
	Asked(label string)
}

// Stock keeps a number of nodes of a label ready, by requests that every launcher
// serves like others.
type Stock struct {
	label    string
	want     int
	view     StockView
	requests StockRequests
	session  Session
	pools    StockPools
	log      hclog.Logger
	now      func() time.Time
}

// NewStock makes a Stock that keeps want nodes of a label.
func NewStock(label string, want int, view StockView, requests StockRequests, session Session, pools StockPools, log hclog.Logger, now func() time.Time) *Stock {
	return &Stock{label: label, want: want, view: view, requests: requests, session: session, pools: pools, log: log, now: now}
}

// Run keeps the stock until ctx ends, and counts it whenever something has changed.
// What still waits at the end is withdrawn: the label has left the stock, or another
// launcher keeps it from now on.
func (s *Stock) Run(ctx context.Context, nodes, requests, images Changes) error {
	defer s.withdraw(ctx)
	retry := kit.Backoff{First: time.Second, Longest: time.Minute}
	failures := 0
	for {
		nodes.Take()
		requests.Take()
		images.Take()
		failed, err := s.pass(ctx)
		pause := stockPause
		switch {
		case err != nil:
			return err
		case failed:
			failures++
			pause = retry.After(failures)
		}
		if clock.Sleep(ctx, pause) != nil {
			return nil
		}
		if failed {
			continue
		}
		failures = 0
		select {
		case <-nodes.C():
		case <-requests.C():
		case <-images.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// pass makes the requests that are missing and withdraws those too many. It
// reports whether one has failed.
func (s *Stock) pass(ctx context.Context) (failed bool, err error) {
	defer s.pools.Deciding(ctx)()
	if c := s.count(); len(c.done) == 0 && (c.total() == s.want || !s.pools.CanMake(s.label)) {
		return false, nil
	}
	// Requests are counted before nodes, and what was committed in between is
	// seen: a request that became a node is counted twice rather than not at all.
	if err := s.view.Barrier(ctx); err != nil {
		return false, err
	}
	c := s.count()
	for _, r := range c.done {
		failed = failed || r.State == zkmodel.RequestFailed
		if err := s.requests.DeleteRequest(ctx, r.ID); err != nil {
			return failed, err
		}
	}
	if err := s.view.Barrier(ctx); err != nil || failed {
		return failed, err
	}
	c.nodes = s.countNodes(c.there)
	missing := s.want - c.total()
	if s.pools.CanMake(s.label) {
		for range missing {
			if err := s.ask(ctx); err != nil {
				return false, err
			}
		}
	}
	for _, r := range slices.Backward(c.waiting) { // the youngest first
		if missing >= 0 {
			break
		}
		if err := s.requests.WithdrawRequest(ctx, r); err != nil {
			return false, err
		}
		missing++
	}
	return false, s.view.Barrier(ctx) // the next count sees what was made
}

// ask makes one request for stock. It is bound to our session: were it to
// stay when we are gone, and a Nodepool served it, nobody would ever delete it.
func (s *Stock) ask(ctx context.Context) error {
	data, err := json.Marshal(map[string]string{stockMark: s.label})
	if err != nil {
		return err
	}
	err = s.requests.CreateBoundRequest(ctx, minReadyPriority, &zkmodel.Request{
		NodeTypes: zkmodel.Strings{s.label}, Requestor: schedule.MinReadyRequestor,
		RequestorData: zkmodel.JSONValue(data), CreatedTime: zkmodel.EpochOf(s.now()),
	})
	if err == nil {
		s.pools.Asked(s.label)
	}
	return err
}

// withdraw takes back the requests for stock that we have made and that nobody has
// taken up. It works after the end of ctx too.
func (s *Stock) withdraw(ctx context.Context) {
	short, cancel := clock.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	bound, unbind := s.session.Bind(short)
	defer unbind()
	for _, r := range s.view.Requests() {
		if stock, _ := isStock(r, s.label); !stock || r.State != zkmodel.RequestRequested || r.Stat.EphemeralOwner != s.session.ID() {
			continue
		}
		if err := s.requests.WithdrawRequest(bound, r); err != nil && bound.Err() == nil {
			s.log.Warn("Request for stock is left behind; the launcher that clears up takes it away", "request", r.ID, "event", r.EventID, "error", err)
		}
	}
}
