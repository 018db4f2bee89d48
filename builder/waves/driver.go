package waves

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Mirror is the builder's view of images and builders.
type Mirror interface {
	Barrier(ctx context.Context) error
	Image(name string) *zkmodel.Image
	Components(kind string) []*zkmodel.Component
	SubscribeImages() *recipe.Subscription
	SubscribeComponents() *recipe.Subscription
	FollowValidations()
	SubscribeValidations() *recipe.Subscription
	TrialsOf(image *zkmodel.Image) []*zkmodel.Validation
	ProviderPauses() []*zkmodel.ProviderPause
	SubscribePauses() *recipe.Subscription
}

// Metrics takes the figures.
type Metrics interface {
	Driving(n int)                      // how many waves this builder drives
	WaveJob(state wave.State)           // a job is over
	WaveEnded(state wave.State)         // a wave is
	SourceLooked(source, result string) // a source was looked at
	// SourcesAre says which sources there are: the figures of others go.
	SourcesAre(is func(name string) bool)
	SourcesLeft() // another builder looks at them from now on
}

// Moment is one between two writes. Tests kill a driver there.
type Moment string

// The moments.
const (
	Taken    Moment = "the lock is taken"
	Laid     Moment = "the index is there"
	Begun    Moment = "the wave has begun"
	Applied  Moment = "steps of jobs are written"
	Reported Moment = "the wave is reporting"
	Ended    Moment = "the result is there"
)

// Moments are all that there are, in their order.
func Moments() []Moment { return []Moment{Taken, Laid, Begun, Applied, Reported, Ended} }

// Deps is what a Driver is given. Step may be nil.
type Deps struct {
	Client  *recipe.Client
	Mirror  Mirror
	Config  func() *configs.Config
	Now     func() time.Time // ZooKeeper's
	Host    string
	Retry   plan.Backoff
	Resync  time.Duration
	Metrics Metrics
	Log     hclog.Logger
	Step    func(at Moment)
	// Hold, when set, notes that a wave is driven here, or that waves are made of what hooks
	// are told, until what it returns is called.
	Hold func(share string) (release func())
	// Deciding, when set, is called before each decision by the configuration, and done once
	// it is written.
	Deciding func(ctx context.Context) (done func())
	// What this builder tells of itself while there are waves. Free is how many bytes builds
	// may write, negative when nobody knows; nil never knows.
	Arch    string
	Workers int
	Factor  float64
	Free    func() int64
	// Mask hides secrets in what a command says; nil hides nothing.
	Mask func(string) string
}

// Driver drives waves. Of several builders one drives a wave, and the others stand in line.
type Driver struct {
	Deps
	tree  *wave.Tree
	waits recipe.Throttle

	mu      sync.Mutex
	changed chan struct{} // closed when the configuration changes
	driving int
}

// New makes a Driver. Nothing happens before Run.
func New(deps Deps) *Driver {
	if deps.Step == nil {
		deps.Step = func(Moment) {}
	}
	if deps.Free == nil {
		deps.Free = func() int64 { return -1 }
	}
	if deps.Deciding == nil {
		deps.Deciding = func(context.Context) func() { return func() {} }
	}
	if deps.Mask == nil {
		deps.Mask = func(text string) string { return text }
	}
	if deps.Hold == nil {
		deps.Hold = func(string) func() { return func() {} }
	}
	return &Driver{
		Deps: deps, tree: wave.NewTree(deps.Client, deps.Log), waits: recipe.Throttle{Clock: deps.Client.Clock()}, changed: make(chan struct{}),
	}
}

// Reconfigured has all that waits looked at again.
func (d *Driver) Reconfigured() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.changed)
	d.changed = make(chan struct{})
}

// reconfigured is closed with the next change of the configuration.
func (d *Driver) reconfigured() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// Run drives waves until ctx ends, over as many sessions as that takes.
func (d *Driver) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return d.tree.Run(ctx) })
	group.Go(func() error { return d.Client.Serve(ctx, d.serve) })
	group.Go(func() error { return d.Client.Serve(ctx, d.plan) })
	group.Go(func() error { return d.Client.Serve(ctx, d.listen) })
	group.Go(func() error { return d.Client.Serve(ctx, d.watch) })
	return group.Wait()
}

// serve is the work of one session: for each wave that is not over, a goroutine stands in
// line for its lock.
func (d *Driver) serve(ctx context.Context, s *recipe.Session) error {
	changes := d.tree.Subscribe(nil)
	defer changes.Close()
	resync := clock.NewTicker(ctx, d.Resync)
	defer resync.Stop()
	if err := d.tree.Barrier(ctx); err != nil {
		return err
	}
	// The line ends before the session's work does.
	var line sync.WaitGroup
	defer line.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inLine := map[string]bool{}
	left := make(chan string)
	busy := make(chan bool)
	line.Go(func() { d.tellWhile(ctx, busy) })
	var cleaned time.Time
	for clean := true; ; {
		ids := d.tree.IDs()
		for _, id := range ids {
			if inLine[id] || !d.active(ctx, s, id) {
				continue
			}
			inLine[id] = true
			line.Go(func() {
				d.stand(ctx, s, id)
				select {
				case left <- id:
				case <-ctx.Done():
				}
			})
		}
		select {
		case busy <- len(inLine) > 0:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if now := d.Now(); clean && d.tree.Used() && now.Sub(cleaned) >= time.Minute {
			d.clean(ctx, s)
			cleaned = now
		}
		clean = false
		select {
		case <-changes.C():
			changes.Take()
		case id := <-left:
			delete(inLine, id)
			clean = true
		case <-resync.C:
			clean = true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// active reports whether there is anything to do for a wave. What cannot be read is looked
// at again when something changes, or with the next resync.
func (d *Driver) active(ctx context.Context, s *recipe.Session, id string) bool {
	e, err := wave.NewStore(s).Wave(ctx, id)
	switch {
	case err == nil:
		return e.Active()
	case !errors.Is(err, zkmodel.ErrNotFound) && ctx.Err() == nil:
		d.Log.Warn("Cannot read a wave; it is tried again", "wave", id, "error", err)
	}
	return false
}

// stand waits for the lock of a wave and drives it, until it is over or ctx ends. What
// fails is begun again from what the tree holds.
func (d *Driver) stand(ctx context.Context, s *recipe.Session, id string) {
	const first, most = 100 * time.Millisecond, 30 * time.Second
	for pause := first; ctx.Err() == nil; pause = min(2*pause, most) {
		began := clock.Now(ctx)
		err := d.take(ctx, s, id)
		switch {
		case err == nil || errors.Is(err, zkmodel.ErrNotFound) || ctx.Err() != nil:
			return
		case errors.Is(err, wave.ErrRejected):
			d.Log.Warn("Wave of another client rejected", "wave", id, "error", err)
			return
		case errors.Is(err, zkmodel.ErrUndecodable):
			pause = most
			d.Log.Error("A wave cannot be decoded; nobody works at it", "wave", id, "error", err, "retry", pause)
		case conflict(err):
			d.Log.Debug("A wave has changed meanwhile; it is read again", "wave", id, "error", err)
		default:
			d.Log.Warn("Cannot drive a wave; it is tried again", "wave", id, "error", err, "retry", pause)
		}
		_ = clock.Sleep(ctx, pause)
		if clock.Since(ctx, began) > 2*most {
			pause = first / 2
		}
	}
}

// conflict reports whether a write found something else than was read: a flag that a
// builder has cleared or a person has set, a mark that is gone.
func conflict(err error) bool {
	return errors.Is(err, recipe.ErrVersion) || errors.Is(err, recipe.ErrNoNode) || errors.Is(err, recipe.ErrNodeExists) ||
		errors.Is(err, recipe.ErrConnectionLost) || errors.Is(err, recipe.ErrFenceLost)
}

// take drives a wave under its lock.
func (d *Driver) take(ctx context.Context, s *recipe.Session, id string) error {
	store := wave.NewStore(s)
	held, err := store.Queue().Take(ctx, id, d.Host)
	if errors.Is(err, recipe.ErrNoNode) {
		return zkmodel.ErrNotFound
	}
	if err != nil {
		return err
	}
	bound, unbind := held.Bind(ctx)
	defer unbind()
	defer d.Hold(wave.LockPath(id))()
	d.count(1)
	defer d.count(-1)
	d.Step(Taken)
	return errors.Join(d.work(bound, store, held, id), held.Release(ctx))
}

// count notes that one more wave is driven here, or one less.
func (d *Driver) count(by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.driving += by
	d.Metrics.Driving(d.driving)
}
