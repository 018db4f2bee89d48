package builder

import (
	"context"

	"poolkeeper/zkmodel/recipe"
)

// claim waits for a place under a limit that all builders share; 0 is none. The
// context that it returns ends when the place is lost.
func (l *loop) claim(ctx context.Context, path string, limit int) (context.Context, func(), error) {
	if limit <= 0 {
		return ctx, func() {}, nil
	}
	held, err := recipe.NewSemaphore(l.store.Session(), path, l.deps.FQDN, limit).Acquire(ctx, 1)
	if err != nil {
		return nil, nil, err
	}
	bound, unbind := held.Bind(ctx)
	return bound, func() { unbind(); release(ctx, held) }, nil
}
