package zkmodel

import (
	"context"
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// AwaitValidations stands in line, until ctx ends, for the lock of the one launcher that
// tries uploads in a provider. identifier is shown to those who look.
func (st *Store) AwaitValidations(ctx context.Context, provider, identifier string) (*recipe.Held, error) {
	lock, err := recipe.NewLock(st.session, ValidationTurnPath(provider), identifier).Acquire(ctx)
	if err != nil {
		return nil, fmt.Errorf("lock validations in %s: %w", provider, notFound(err))
	}
	return lock, nil
}

// CreateTrialNode makes the record of a node that is to try an upload, in state init,
// under the lock of AwaitValidations, if the trial is still there and also succeeds. The
// record has no lock yet: BeginNodes takes it. A crash in between leaves a record that any
// launcher removes.
//
// Errors: ErrNotFound when the trial has ended.
func (st *Store) CreateTrialNode(ctx context.Context, turn *recipe.Held, v *Validation, n *Node, also ...recipe.Op) error {
	n.Token = newToken()
	begin(n, EpochOf(st.now()))
	data, err := n.Encode()
	if err != nil {
		return fmt.Errorf("create node: %w", err)
	}
	ops := slices.Concat([]recipe.Op{recipe.OpCreate(NodesRoot+"/", data, recipe.Sequential), recipe.OpCheck(v.Path(), v.Stat.Version)}, also)
	results, err := turn.Multi(ctx, ops...)
	if err != nil {
		return fmt.Errorf("create node for upload %s: %w", v.Key().Path(), notFound(err))
	}
	n.ID, n.Stat = path.Base(results[0].Path), recipe.Stat{}
	return nil
}
