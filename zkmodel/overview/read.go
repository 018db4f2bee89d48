package overview

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event/dispatch"
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
	Stopped  []*zkmodel.ProviderPause // providers that are paused or drained
	Beside
	// Guarded tells what of daemons' configurations is not in effect, LeftOut what of the
	// configuration is left out for a mistake.
	Guarded, LeftOut []string
	// Unfollowed are parts that were not looked at: nothing is said of them either, and nothing is
	// wrong with that.
	Unfollowed []string
}

// Beside is what of the tree the mirror of a daemon does not have.
type Beside struct {
	Waves   []*wave.Entry
	Held    *wave.Word     // all waves are; nil when they are not
	Members []fleet.Member // daemons that follow the fleet's configuration
	Current *fleet.Version // what they are to run; nil without one
	// Unversioned says why what they are to run cannot be read.
	Unversioned error
	Limits      map[string]map[string]int // what providers said, by provider and resource
	Sinks       []dispatch.SinkPlace      // of events
	// Unread are the parts that could not be read, and why. Nothing is said of them.
	Unread []Unread
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
	partSinks    = "the places of event sinks"
)

// Read reads it. What may not be read is noted, and keeps nothing else out.
//
// Errors: those of the connection.
func Read(ctx context.Context, store *zkmodel.Store, now time.Time) (*Tree, error) {
	t := &Tree{Now: now}
	err := t.gather([]reading{
		{PartImages, func() (err error) { t.Images, err = store.Images(ctx); return err }},
		{partTrials, func() (err error) { t.Trials, err = store.TrialsOf(ctx, t.Images...); return err }},
		{PartNodes, func() (err error) { t.Nodes, err = store.Nodes(ctx); return err }},
		{PartRequests, func() (err error) { t.Requests, err = store.Requests(ctx); return err }},
		{PartDaemons, func() error { return t.readDaemons(ctx, store) }},
		{partStopped, func() (err error) { t.Stopped, err = store.ProviderPauses(ctx); return err }},
	})
	if err == nil {
		err = t.read(ctx, store.Session())
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// ReadDaemons reads only who runs, and with which of the fleet's configurations: what there are
// thousands of is not looked at.
//
// Errors: those of the connection.
func ReadDaemons(ctx context.Context, store *zkmodel.Store, now time.Time) (*Tree, error) {
	t := &Tree{Now: now, Unfollowed: []string{PartImages, PartNodes, PartRequests, partTrials, partWaves, partLimits, partStopped, partSinks}}
	return t, t.gather([]reading{
		{PartDaemons, func() error { return t.readDaemons(ctx, store) }},
		{partFleet, func() error { return t.readFleet(ctx, fleet.NewStore(store.Session())) }},
	})
}

// readDaemons reads who runs, and the pools of launchers.
func (t *Tree) readDaemons(ctx context.Context, store *zkmodel.Store) (err error) {
	if t.Daemons, err = store.Daemons(ctx); err == nil {
		t.Pools, err = store.Components(ctx, zkmodel.KindPool)
	}
	return err
}

// ReadMirror is Read with what a mirror has of all its parts; the rest is read.
func ReadMirror(ctx context.Context, m *zkmodel.Mirror, session *recipe.Session, now time.Time) (*Tree, error) {
	store := zkmodel.NewStore(session, nil)
	t := &Tree{
		Now: now, Images: m.Images(), Nodes: m.Nodes(), Requests: m.Requests(),
		Pools: m.Components(zkmodel.KindPool), Stopped: m.ProviderPauses(),
	}
	for _, image := range t.Images {
		t.Trials = append(t.Trials, m.TrialsOf(image)...)
	}
	err := t.gather([]reading{{PartDaemons, func() (err error) { t.Daemons, err = store.Daemons(ctx); return err }}})
	if err == nil {
		err = t.read(ctx, session)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Followed is what changes of which ReadMirror reads: the Filter of a tree at zkmodel.OwnRoot.
func Followed(path string) recipe.Interest { return besideInterest(path) }

// ReadBeside reads what of the tree a mirror does not have, as Read does.
func ReadBeside(ctx context.Context, session *recipe.Session) (*Beside, error) {
	b := &Beside{}
	if err := b.read(ctx, session); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Beside) read(ctx context.Context, session *recipe.Session) error {
	waves, versions := wave.NewStore(session), fleet.NewStore(session)
	return b.gather([]reading{
		{partWaves, func() error { return b.readWaves(ctx, waves) }},
		{partFleet, func() error { return b.readFleet(ctx, versions) }},
		{partLimits, func() (err error) { b.Limits, err = zkmodel.NewStore(session, nil).Limits(ctx); return err }},
		{partSinks, func() (err error) { b.Sinks, err = dispatch.Places(ctx, session); return err }},
	})
}

// reading reads a part.
type reading struct {
	name string
	read func() error
}

// gather reads parts. What may not be read is noted.
func (b *Beside) gather(parts []reading) error {
	for _, one := range parts {
		switch err := one.read(); {
		case recipe.Unreadable(err), errors.Is(err, recipe.ErrDamaged):
			b.Unread = append(b.Unread, Unread{one.name, err})
		case err != nil:
			return err
		}
	}
	return nil
}

// readWaves reads all waves, and whether they are held.
func (b *Beside) readWaves(ctx context.Context, store *wave.Store) (err error) {
	if b.Waves, err = store.Waves(ctx); err != nil {
		return err
	}
	word, held, err := store.AllHeld(ctx)
	if held {
		b.Held = &word
	}
	return err
}

// readFleet reads who follows the fleet's configuration, and, where any daemon does, which
// version that is.
func (b *Beside) readFleet(ctx context.Context, store *fleet.Store) (err error) {
	if b.Members, err = store.Members(ctx); err != nil || len(b.Members) == 0 {
		return err
	}
	b.Current, err = store.Current(ctx)
	switch {
	case errors.Is(err, fleet.ErrNone):
		return nil
	case errors.Is(err, fleet.ErrUndecodable), recipe.Unreadable(err):
		b.Unversioned, b.Current = err, nil // who runs what is known all the same
		return nil
	}
	return err
}

// saw reports whether a part could be read.
func (t *Tree) saw(part string) bool {
	return !slices.Contains(t.Unfollowed, part) && !slices.ContainsFunc(t.Unread, func(u Unread) bool { return u.Part == part })
}
