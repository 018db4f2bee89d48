package overview

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/fleet"
	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wave"
)

// Tree is what an overview is made of: the tree, as it was read once.
type Tree struct {
	Now      time.Time
	Images   []*zkmodel.Image
	Nodes    []*zkmodel.Node
	Requests []*zkmodel.Request
	Daemons  []zkmodel.Daemon
	Pools    []*zkmodel.Component
	Trials   []*zkmodel.Validation
	Waves    []*wave.Entry
	Held     *wave.Word                // all waves are; nil when they are not
	Stopped  []*zkmodel.ProviderPause  // providers that are paused or drained
	Members  []fleet.Member            // daemons that follow the fleet's configuration
	Current  *fleet.Version            // what they are to run; nil without one
	Limits   map[string]map[string]int // what providers said, by provider and resource
	// Guarded tells what of daemons' configurations is not in effect, LeftOut what of the
	// configuration is left out for a mistake.
	Guarded, LeftOut []string
	// Unread are the parts that could not be read, and why. Nothing is said of them.
	Unread []Unread
	// Unfollowed are parts that were not looked at: nothing is said of them either, and nothing is
	// wrong with that.
	Unfollowed []string
}

// Unread is a part of the tree that could not be read.
type Unread struct {
	Part string
	Err  error
}

// The parts of a Tree.
const (
	PartImages   = "images"
	PartNodes    = "nodes"
	PartRequests = "requests"
	PartDaemons  = "daemons"
	partTrials   = "uploads under trial"
	partWaves    = "waves"
	partFleet    = "the fleet's configuration"
	partLimits   = "the limits of providers"
	partStopped  = "the pauses of providers"
)

// Read reads it. What may not be read is noted, and keeps nothing else out.
//
// Errors: those of the connection.
func Read(ctx context.Context, store *zkmodel.Store, now time.Time) (*Tree, error) {
	t := &Tree{Now: now}
	waves, versions := wave.NewStore(store.Session()), fleet.NewStore(store.Session())
	for _, one := range []struct {
		name string
		read func() error
	}{
		{PartImages, func() (err error) { t.Images, err = store.Images(ctx); return err }},
		{partTrials, func() (err error) { t.Trials, err = store.TrialsOf(ctx, t.Images...); return err }},
		{PartNodes, func() (err error) { t.Nodes, err = store.Nodes(ctx); return err }},
		{PartRequests, func() (err error) { t.Requests, err = store.Requests(ctx); return err }},
		{PartDaemons, func() (err error) {
			if t.Daemons, err = store.Daemons(ctx); err == nil {
				t.Pools, err = store.Components(ctx, zkmodel.KindPool)
			}
			return err
		}},
		{partWaves, func() error { return t.readWaves(ctx, waves) }},
		{partFleet, func() error { return t.readFleet(ctx, versions) }},
		{partStopped, func() (err error) { t.Stopped, err = store.ProviderPauses(ctx); return err }},
		{partLimits, func() (err error) { t.Limits, err = store.Limits(ctx); return err }},
	} {
		switch err := one.read(); {
		case recipe.Unreadable(err):
			t.Unread = append(t.Unread, Unread{one.name, err})
		case err != nil:
			return nil, err
		}
	}
	return t, nil
}

// readWaves reads all waves, and whether they are held.
func (t *Tree) readWaves(ctx context.Context, store *wave.Store) (err error) {
	if t.Waves, err = store.Waves(ctx); err != nil {
		return err
	}
	word, held, err := store.AllHeld(ctx)
	if held {
		t.Held = &word
	}
	return err
}

// readFleet reads who follows the fleet's configuration, and, where any daemon does, which
// version that is.
func (t *Tree) readFleet(ctx context.Context, store *fleet.Store) (err error) {
	if t.Members, err = store.Members(ctx); err != nil || len(t.Members) == 0 {
		return err
	}
	t.Current, err = store.Current(ctx)
	if errors.Is(err, fleet.ErrNone) || errors.Is(err, fleet.ErrUndecodable) {
		return nil // the members say what they do not take
	}
	return err
}

// saw reports whether a part could be read.
func (t *Tree) saw(part string) bool {
	return !slices.Contains(t.Unfollowed, part) && !slices.ContainsFunc(t.Unread, func(u Unread) bool { return u.Part == part })
}
