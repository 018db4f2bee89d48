package fleet

import (
	"context"
	"errors"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/recipe"
)

// Offer is what the tree says is to run: a version, verified by nobody, with its text; or
// why there is none.
type Offer struct {
	Version *Version // nil when its record is absent or cannot be decoded
	Text    []byte   // nil with Err
	Err     error    // ErrNone, ErrUndecodable, recipe.ErrDamaged, or a refusal of ZooKeeper's
}

// Offer reads what is to run now, and its text if wanted says so.
//
// Errors: those of ZooKeeper but refusals; all else is the Offer's.
func (st *Store) Offer(ctx context.Context, wanted func(*Version) bool) (Offer, error) {
	v, err := st.Current(ctx)
	if errors.Is(err, ErrNone) || errors.Is(err, ErrUndecodable) || recipe.Unreadable(err) {
		return Offer{Err: err}, nil
	}
	if err != nil {
		return Offer{}, err
	}
	if !wanted(v) {
		return Offer{Version: v}, nil
	}
	text, err := st.Text(ctx, v)
	if errors.Is(err, recipe.ErrDamaged) || recipe.Unreadable(err) {
		return Offer{Version: v, Err: err}, nil
	}
	if err != nil {
		return Offer{}, err
	}
	return Offer{Version: v, Text: text}, nil
}

// followBackoff is between readings of what ZooKeeper refuses, or of a text that is not whole.
var followBackoff = kit.Backoff{First: 100 * time.Millisecond, Longest: 5 * time.Second}

// Follow has an Agent know what is to run, at once and whenever that changes, until ctx ends,
// and calls told after each time. failed is told why it cannot be read, which is tried again.
func Follow(ctx context.Context, c *recipe.Client, a *Agent, told func(), failed func(error)) error {
	tree := recipe.NewTree(c, CurrentPath, recipe.TreeOptions{Filter: func(string) recipe.Interest { return recipe.Data }})
	changes := tree.Subscribe(nil)
	defer changes.Close()
	ended := make(chan error, 1)
	go func() { ended <- tree.Run(ctx) }()
	if err := tree.WaitSynced(ctx); err != nil {
		return <-ended
	}
	for failures := 0; ; {
		changes.Take()
		offer, err := look(ctx, c, a.Wanted)
		switch {
		case err == nil:
			a.Offered(offer)
			told()
		case ctx.Err() != nil:
			return <-ended
		default:
			failed(err)
		}
		// No watch reports the end of a refusal, or that a missing part of the text is back.
		var again <-chan time.Time
		if failures++; err == nil && !recipe.Unreadable(offer.Err) && !errors.Is(offer.Err, recipe.ErrDamaged) {
			failures = 0
		} else {
			again = clock.After(ctx, followBackoff.After(failures))
		}
		select {
		case <-changes.C():
		case <-again:
		case <-a.Again():
		case err := <-ended:
			return err
		}
	}
}

// look reads what is to run in the session that lives.
func look(ctx context.Context, c *recipe.Client, wanted func(*Version) bool) (Offer, error) {
	s, err := c.Session(ctx)
	if err != nil {
		return Offer{}, err
	}
	return NewStore(s).Offer(ctx, wanted)
}
