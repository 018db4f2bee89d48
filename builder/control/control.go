package control

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/builder/presence"
	"poolkeeper/builder/step"
	"poolkeeper/builder/trial"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/trace"
)

// Deps is what a Control is given: all of it is required.
type Deps struct {
	Config  func() *configs.Config
	Client  *recipe.Client
	Mirror  Mirror
	Self    *presence.Self
	Metrics Metrics
	Log     hclog.Logger
	// Worker makes what does the actions of a session.
	Worker func(Session) Actions
	// ForgetSeries takes out the figures of images and providers that are no more.
	ForgetSeries func()
	// LogURL is where a build's log can be read; here says whether this host has it.
	LogURL func(image, build string) (url string, here bool)
	Step   func(step.Step)

	Now                         func() time.Time // see builder.Deps, and what follows
	FQDN, Arch                  string
	BuildWorkers, UploadWorkers int
	Deciding                    func(ctx context.Context) (done func())
	Tracer                      *trace.Tracer // nil is told nothing
	// Paused is why an operator has this builder build nothing, "" while it is to build.
	Paused            func() string
	Policy            plan.Policy
	Resync, HostEvery time.Duration
}

// Mirror is the view of the tree that decisions are made by.
type Mirror interface {
	Run(ctx context.Context) error
	Barrier(ctx context.Context) error
	SubscribeImages() *recipe.Subscription
	SubscribeVerdicts() *recipe.Subscription
	SubscribeCanaries() *recipe.Subscription
	SubscribeComponents() *recipe.Subscription
	Image(name string) *zkmodel.Image
	ImageNames() []string
	Canaries(image string) []*zkmodel.Canary
	FollowValidations()
	WaitValidations(ctx context.Context) error
	SubscribeValidations() *recipe.Subscription
	Validations(provider string) ([]*zkmodel.Validation, error)
	Components(kind string) []*zkmodel.Component
	ProviderPauses() []*zkmodel.ProviderPause
	SubscribePauses() *recipe.Subscription
}

// Actions does what is decided.
type Actions interface {
	// Do does an action. Errors: actions.ErrStale, and what actions.Held reports.
	Do(ctx context.Context, a plan.Action) error
	// Patrol looks for leaked images until ctx ends.
	Patrol(ctx context.Context)
}

// Metrics takes the figures of what is decided.
type Metrics interface {
	Snapshot(in plan.Input)
	Failed(kind plan.Kind)
	Withdrawn(is bool)
	ClockOff(by time.Duration)
	Tried(u *zkmodel.Upload, end plan.TrialEnd)
	Trials(trials []*zkmodel.Validation, now time.Time)
	// Due takes when an image is to be built next; zero is never, or nobody knows.
	Due(image string, at time.Time)
	// Waiting takes how many actions wait for a worker.
	Waiting(counts map[plan.Kind]int)
}

// Session is what the work of a session is about.
type Session struct {
	Store           *zkmodel.Store
	Images          *disk.Images
	BuilderID, Site string
	Trials          *trial.Keeper
}

// Control decides what a builder does, and when.
type Control struct {
	Deps
	inFlight InFlight
	peers    *presence.Peers
	cancels  *Cancels
	woken    chan struct{}
	pulse    chan struct{}         // the loop takes what is sent
	working  atomic.Bool           // the loop runs
	clock    *treeClock            // ZooKeeper's
	fitness  fitness               // of this host
	recheck  chan struct{}         // the host is to be checked
	blocked  atomic.Pointer[error] // why work cannot begin in a session

	// Of the run that is under way.
	images *disk.Images
	id     string // builder_id.txt
}

// New makes one. Nothing happens before Run.
func New(deps Deps) *Control {
	return &Control{
		Deps: deps, peers: presence.NewPeers(), cancels: newCancels(deps.Client), clock: &treeClock{ours: deps.Now},
		woken: make(chan struct{}, 1), pulse: make(chan struct{}), recheck: make(chan struct{}, 1),
	}
}

// InFlight is what runs here.
func (c *Control) InFlight() *InFlight { return &c.inFlight }

// Cancels ends builds that an operator cancels.
func (c *Control) Cancels() *Cancels { return c.cancels }

// Time is ZooKeeper's time.
func (c *Control) Time() time.Time { return c.clock.now() }

// ClockOff is by how much the clock of this host is early.
func (c *Control) ClockOff() time.Duration { return c.clock.off() }

// What a builder that is not ready has to say.
var (
	errNoSession = errors.New("no session with ZooKeeper")
	errStuck     = errors.New("the builder does not answer")
)

// Ready reports whether the builder does its work: nil, or why it does not.
//
// Errors: ErrWithdrawn, while it does all but build; ErrSameID, while it waits.
func (c *Control) Ready() error {
	if !c.working.Load() {
		if why := c.blocked.Load(); why != nil {
			return *why
		}
		return errNoSession
	}
	if why := c.fitness.reason(); why != "" {
		return fmt.Errorf("%w: %s", ErrWithdrawn, why)
	}
	return nil
}

// Check asks the builder's loop for a sign of life, until ctx ends. A builder
// that waits for ZooKeeper is alive.
func (c *Control) Check(ctx context.Context) error {
	if !c.working.Load() {
		return nil
	}
	select {
	case c.pulse <- struct{}{}:
		return nil
	case <-ctx.Done():
		if !c.working.Load() {
			return nil
		}
		return errStuck
	}
}

// Reconfigured has the loop look at everything again, and at whether this host can
// build: folders may be others now. It never blocks.
func (c *Control) Reconfigured() {
	select {
	case c.recheck <- struct{}{}:
	default:
	}
	c.Wake()
}

// Wake makes the loop look at everything again. It never blocks.
func (c *Control) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}
