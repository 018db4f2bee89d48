// Package lift ends pauses of images and holds of waves whose time is over.
package lift

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

const (
	// again is how soon what could not be ended is tried again.
	again = 5 * time.Second
	// look is how often ZooKeeper's clock is read anew while an end is to come.
	look = 10 * time.Minute
)

// Lifter ends them. Each daemon of ours runs one, and whoever of them is first ends a pause:
// the transaction checks the record that says until when, and the flag, as they were read.
type Lifter struct {
	Client *recipe.Client
	Log    hclog.Logger
	Now    func() time.Time // nil is that of Client
}

// Run ends pauses until ctx ends. Where nobody has ever paused, it follows one znode that is
// not there, and reads nothing.
func (l *Lifter) Run(ctx context.Context) {
	if l.Now == nil {
		l.Now = l.Client.Clock().Now
	}
	tree := recipe.NewTree(l.Client, zkmodel.PausesPath, recipe.TreeOptions{
		Filter: func(string) recipe.Interest { return recipe.Data }, Logger: l.Log,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = tree.Run(ctx) // it ends with ctx
	}()
	for ctx.Err() == nil {
		err := l.Client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error { return l.serve(ctx, tree, s) })
		if err != nil && ctx.Err() == nil {
			l.Log.Warn("Pauses and holds whose time is over are not ended; it is tried again", "error", err, "retry", again)
			_ = clock.Sleep(ctx, again) // or ctx has ended, which is looked at
		}
	}
	<-ended
}

// serve ends pauses in one session.
func (l *Lifter) serve(ctx context.Context, tree *recipe.Tree, s *recipe.Session) error {
	changes := tree.Subscribe(nil)
	defer changes.Close()
	if err := tree.WaitSynced(ctx); err != nil {
		return err
	}
	timer := clock.NewTimer(ctx, 0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changes.C():
			changes.Take()
		case <-timer.C:
		}
		entry, there := tree.Get(zkmodel.PausesPath)
		pauses := zkmodel.DecodePauses(entry.Data, entry.Stat, there)
		if pauses.Broken != nil {
			l.Log.Warn("Nobody can tell when pauses and holds end; none ends by itself", "error", pauses.Broken)
		}
		next, err := l.lift(ctx, pauses, s)
		if err != nil {
			return err
		}
		timer.Stop()
		if next > 0 {
			timer.Reset(next)
		}
	}
}

// lift ends what is over, and returns after how long to look again; 0 is when something changes.
func (l *Lifter) lift(ctx context.Context, pauses *zkmodel.Pauses, s *recipe.Session) (next time.Duration, err error) {
	var now time.Time // ZooKeeper's, which is only asked where a pause has an end
	for subject, p := range pauses.All {
		end := p.Ends()
		if end.IsZero() {
			continue
		}
		if now.IsZero() {
			ahead, err := zkmodel.NewStore(s, l.Now).Ahead(ctx)
			if err != nil {
				return 0, err
			}
			now = l.Now().Add(ahead)
		}
		if !p.Over(now) {
			if wait := min(end.Sub(now), look); next == 0 || wait < next {
				next = wait
			}
			continue
		}
		if err := l.end(ctx, s, subject, p); err != nil {
			if ctx.Err() != nil || errors.Is(err, recipe.ErrConnectionLost) || errors.Is(err, recipe.ErrSessionLost) {
				return 0, err
			}
			l.Log.Warn("A pause or hold whose time is over cannot be ended; it is tried again", "subject", subject, "error", err, "retry", again)
			next = again
		}
	}
	return next, nil
}

// end ends one pause, unless it has been replaced or ended since it was read.
func (l *Lifter) end(ctx context.Context, s *recipe.Session, subject string, p *zkmodel.FlagPause) error {
	if image, ok := zkmodel.ParseImageSubject(subject); ok {
		return zkmodel.NewStore(s, l.Now).UnpauseImageBy(ctx, image, zkmodel.PauseOver, p)
	}
	if held, ok := wave.ParseTarget(subject); ok {
		return wave.NewStore(s).Release(ctx, held, wave.Word{By: zkmodel.PauseOver}, p)
	}
	return fmt.Errorf("%q is nothing that this release can end", subject)
}
