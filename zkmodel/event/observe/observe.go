// Package observe tells what others write: Nodepool's daemons and commands beside ours, and
// daemons of ours that tell nothing. One daemon of all looks at the tree for it.
package observe

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Part is what one Observer looks at. Each is elected for by itself, as not all daemons
// follow all of the tree.
type Part string

// The parts.
const (
	Images   Part = "images"   // builds, uploads, and which images are paused
	Requests Part = "requests" // those that have failed
	Nodes    Part = "nodes"    // those that are held, or to be deleted
)

// MarkPath is where it stands how far a part was looked at.
func (p Part) MarkPath() string { return event.Root + "/observed/" + string(p) }

// LockPath is the election of who looks.
func (p Part) LockPath() string { return p.MarkPath() + "/lock" }

// saveEvery is how often it is written, after changes, how far was looked at.
const saveEvery = time.Minute

// Deps is what an Observer is given; Hold and SaveEvery may be left out.
type Deps struct {
	Client *recipe.Client
	Tree   *zkmodel.Mirror // which others run
	Member string          // its name in the election
	Logger hclog.Logger
	// Hold notes that this process observes, until what it returns is called.
	Hold      func(path string) (release func())
	SaveEvery time.Duration
}

// Observer is a daemon's part in telling what others write.
type Observer struct {
	deps Deps
	part Part
	log  hclog.Logger
}

// New makes an Observer of a part that the tree follows.
func New(part Part, deps Deps) *Observer {
	if deps.Hold == nil {
		deps.Hold = func(string) func() { return func() {} }
	}
	if deps.SaveEvery == 0 {
		deps.SaveEvery = saveEvery
	}
	return &Observer{deps, part, deps.Logger.Named("events")}
}

// Run observes whenever this process is elected, until ctx ends. It is for processes whose
// client has a log.
func (o *Observer) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := recipe.NewElection(o.deps.Client, o.part.LockPath(), o.deps.Member).Run(ctx, func(ctx context.Context, h *recipe.Held) error {
			defer o.deps.Hold(o.part.LockPath())()
			return o.lead(ctx, h)
		})
		if ctx.Err() != nil || errors.Is(err, recipe.ErrClosed) {
			return
		}
		o.log.Warn("What others write is not told; it is tried again", "path", o.part.MarkPath(), "error", err)
		_ = clock.Sleep(ctx, time.Second) // or ctx has ended, which is looked at
	}
}

// lead looks at what changes, and once at what has changed while nobody did.
func (o *Observer) lead(ctx context.Context, h *recipe.Held) error {
	log := o.deps.Client.Log()
	if log == nil {
		return nil // the options are being changed
	}
	view := o.view()
	changes := view.subscribe()
	defer changes.Close()
	w := &watch{view: view, part: o.part, held: h, log: log, seen: map[string]state{}}
	if err := w.begin(ctx); err != nil {
		return err
	}
	save := clock.NewTicker(ctx, o.deps.SaveEvery)
	defer save.Stop()
	for {
		select {
		case <-changes.C():
			if err := w.look(ctx, changes.Take()); err != nil {
				return err
			}
		case <-save.C:
			if err := w.save(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
