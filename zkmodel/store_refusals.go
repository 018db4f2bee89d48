package zkmodel

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/recipe"
)

// RefusalsRoot holds what clouds taught by refusing, by provider: one launcher
// meets a refusal, and all heed it.
const RefusalsRoot = OwnRoot + "/refusals"

// RefusalsPath is what one provider taught.
func RefusalsPath(provider string) string { return RefusalsRoot + "/" + provider }

// ChangeRefusals writes what change makes of that which a provider taught so far;
// that is nil at first. It is called again when another process was faster.
func (st *Store) ChangeRefusals(ctx context.Context, provider string, change func(old []byte) ([]byte, error)) error {
	if err := st.change(ctx, RefusalsPath(provider), change); err != nil {
		return fmt.Errorf("change refusals of %s: %w", provider, err)
	}
	return nil
}

// change writes what a function makes of the data of a node, which is made when it
// is missing, also when others write or delete it meanwhile.
func (st *Store) change(ctx context.Context, path string, change func(old []byte) ([]byte, error)) error {
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
		data, err := change(old)
		if err != nil {
			return err
		}
		_, err = st.session.Set(ctx, path, data, stat.Version)
		if !errors.Is(err, recipe.ErrVersion) && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
}
