package request

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/inflight"
	"poolkeeper/launcher/launch"
	"poolkeeper/launcher/pool"
	"poolkeeper/launcher/step"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Launches bring nodes to ready: a *launch.Launches.
type Launches interface {
	// Prepare chooses what a new node boots from and moves its record to building, or to
	// deleting when there is nothing, with the reason in n.Err. Nothing is written yet.
	Prepare(o *launch.Order, n *launch.Run) error
	// Begin has write begin nodes that are prepared, with what counts them.
	Begin(ctx context.Context, o *launch.Order, nodes []*launch.Run, write func(also ...recipe.Op) error) error
	// Bring brings a node to ready. The error is why it may not be given away.
	Bring(ctx context.Context, o *launch.Order, n *launch.Run) error
	// Save writes a node under its lock.
	Save(ctx context.Context, n *launch.Run) error
}

// Tree is what is seen of the tree: a *zkmodel.Mirror.
type Tree interface {
	Requests() []*zkmodel.Request
	Nodes() []*zkmodel.Node
	Components(kind string) []*zkmodel.Component
	Image(name string) *zkmodel.Image
	// Barrier returns when all is seen that was written before.
	Barrier(ctx context.Context) error
	// WaitForImages returns when all is seen of images up to a transaction.
	WaitForImages(ctx context.Context, zxid int64) error
}

// Offers are what pools offered, also those that left: a *shared.Offers.
type Offers interface {
	Known() map[string]zkmodel.Offer
	Barrier(ctx context.Context) error
}

// Figures count how requests end: a *metrics.Metrics.
type Figures interface {
	Fulfilled(p *pool.Pool, age time.Duration)
	Cancelled(p *pool.Pool)
	Declined(to zkmodel.RequestState)
}

// Deps is what a Server is given, all of it required but for Tracer and Step.
type Deps struct {
	Store    *zkmodel.Store
	Config   *configs.Config
	Own      *inflight.Records // what is in our hands
	Jobs     *inflight.Jobs
	Quotas   map[string]*inflight.QuotaLock // by provider
	Tree     Tree
	Offers   Offers
	Pools    []*pool.Pool
	Clouds   map[string]*supply.Provider
	Launches Launches

	Log      hclog.Logger
	Troubled *recipe.Throttle // of requests that we may not change
	Figures  Figures
	Tracer   *trace.Tracer // nil tells nothing
	Step     func(step.Step)
	Notify   func() // decisions may differ now
	Now      func() time.Time
	Ahead    func() time.Duration // how far ZooKeeper's clock is ahead of Now
}

// Server serves requests as decided.
type Server struct {
	Deps
	orphans   Orphans // pending requests that were found unlocked
	declining atomic.Int64

	mu     sync.Mutex
	failed map[string]map[string]string // what Failed tells
	left   map[string]*zkmodel.Request  // that wait again, as we wrote them; empty where nothing is told
}

// New makes a Server. It does nothing by itself.
func New(deps Deps) *Server {
	if deps.Step == nil {
		deps.Step = func(step.Step) {}
	}
	return &Server{Deps: deps, failed: map[string]map[string]string{}, left: map[string]*zkmodel.Request{}}
}

// run is a request in our hands: locked, with its nodes.
type run struct {
	launch.Order
	lock  *recipe.Held
	nodes []*launch.Run // in the order of the request's labels
	span  *trace.Span   // nil where nothing is told
	// yields says why nodes that are ready are not kept for others when the request is put back.
	yields string
}

// lockRequest locks the request of a decision and reads it again: what was
// decided must still hold.
func (s *Server) lockRequest(ctx context.Context, seen *zkmodel.Request, want zkmodel.RequestState) (*recipe.Held, *zkmodel.Request, error) {
	lock, r, err := s.Store.LockRequest(ctx, seen.ID)
	if err != nil {
		return nil, nil, taken(err)
	}
	if r.State != want || !slices.Equal(r.NodeTypes, seen.NodeTypes) {
		err := fmt.Errorf("request %s has changed to %s: %w", r.ID, r.State, zkmodel.ErrConflict)
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, r, nil
}

// moveRequest writes a request in a new state.
func (s *Server) moveRequest(ctx context.Context, h *run, to zkmodel.RequestState) error {
	if err := zkmodel.Move(h.Request, to, zkmodel.ByUs, s.epoch()); err != nil {
		return err
	}
	if err := s.Store.SaveRequest(ctx, h.lock, h.Request); err != nil {
		return taken(err)
	}
	s.leave(h.Request)
	return nil
}

// pool finds one of our pools by its launcher id.
func (s *Server) pool(id string) *pool.Pool {
	return s.Pools[slices.IndexFunc(s.Pools, func(p *pool.Pool) bool { return p.ID == id })]
}

// epoch is now, as records hold it.
func (s *Server) epoch() zkmodel.Epoch { return zkmodel.EpochOf(s.Now()) }

// taken turns what happens when another was faster into zkmodel.ErrConflict.
func taken(err error) error {
	if errors.Is(err, recipe.ErrLocked) || errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("%w: %w", zkmodel.ErrConflict, err)
	}
	return err
}
