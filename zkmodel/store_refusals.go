package zkmodel

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// RefusalsRoot holds what clouds taught by refusing, by provider: one launcher
// meets a refusal, and all heed it.
const RefusalsRoot = OwnRoot + "/refusals"

// RefusalsPath is what one provider taught.
func RefusalsPath(provider string) string { return RefusalsRoot + "/" + provider }

// Turn says that a provider begins to refuse, or no longer does, and why. The zero value
// says that neither is so.
type Turn struct {
	Kind   string // event.ProviderRefusing or event.ProviderAccepting
	Reason string
}

// ChangeRefusals writes what change makes of that which a provider taught so far;
// that is nil at first. It is called again when another process was faster. A turn is told
// in the same transaction.
func (st *Store) ChangeRefusals(ctx context.Context, provider string, change func(old []byte) ([]byte, Turn, error)) error {
	if err := st.change(ctx, RefusalsPath(provider), func(old []byte) ([]byte, []event.Event, error) {
		data, turn, err := change(old)
		if turn.Kind == "" {
			return data, nil, err
		}
		return data, st.events(gone{turn.Kind, "provider/" + provider, event.Data{"provider": provider, "reason": turn.Reason}}), err
	}); err != nil {
		return fmt.Errorf("change refusals of %s: %w", provider, err)
	}
	return nil
}

// change writes what a function makes of the data of a node, which is made when it
// is missing, also when others write or delete it meanwhile.
func (st *Store) change(ctx context.Context, path string, change func(old []byte) ([]byte, []event.Event, error)) error {
	for {
		old, stat, err := st.session.Get(ctx, path)
		if errors.Is(err, recipe.ErrNoNode) {
			if err := st.session.EnsurePath(ctx, path); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		data, news, err := change(old)
		if err != nil {
			return err
		}
		err = telling(ctx, st.session, news, func(also []recipe.Op) error {
			if len(also) == 0 {
				_, err := st.session.Set(ctx, path, data, stat.Version)
				return err
			}
			_, err := st.session.Multi(ctx, append([]recipe.Op{recipe.OpSet(path, data, stat.Version)}, also...)...)
			return err
		})
		if !errors.Is(err, recipe.ErrVersion) && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
}
