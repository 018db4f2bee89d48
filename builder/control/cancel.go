package control

import (
	"context"
	"sync"

	"poolkeeper/builder/actions"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Cancels follows the requests to cancel builds.
type Cancels struct {
	tree *recipe.Tree

	mu   sync.Mutex
	live map[string]context.CancelCauseFunc // of builds under way here, by image and id
}

func newCancels(client *recipe.Client) *Cancels {
	return &Cancels{
		tree: recipe.NewTree(client, zkmodel.CancelRoot, recipe.TreeOptions{}),
		live: map[string]context.CancelCauseFunc{},
	}
}

// run follows until ctx ends.
func (c *Cancels) run(ctx context.Context) error {
	changes := c.tree.Subscribe(nil)
	defer changes.Close()
	done := make(chan error, 1)
	go func() { done <- c.tree.Run(ctx) }()
	for {
		select {
		case <-changes.C():
			changes.Take()
			c.check()
		case err := <-done:
			return err
		}
	}
}

// check cancels what is to be cancelled.
func (c *Cancels) check() {
	for _, image := range c.tree.Children(zkmodel.CancelRoot) {
		entry, ok := c.tree.Get(zkmodel.CancelPath(image))
		if !ok {
			continue
		}
		c.mu.Lock()
		cancel := c.live[image+"/"+string(entry.Data)]
		c.mu.Unlock()
		if cancel != nil {
			cancel(actions.ErrCancelled)
		}
	}
}

// Bind lets an operator end a build's context until the build is over.
func (c *Cancels) Bind(ctx context.Context, build *zkmodel.Build) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	key := build.Image + "/" + build.ID
	c.mu.Lock()
	c.live[key] = cancel
	c.mu.Unlock()
	c.check() // it may be asked for already
	return ctx, func() {
		c.mu.Lock()
		delete(c.live, key)
		c.mu.Unlock()
		cancel(nil)
	}
}
