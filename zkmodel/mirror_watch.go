package zkmodel

import (
	"context"
	"sync"

	"poolkeeper/zkmodel/recipe"
)

// Watch calls changed with the part of the tree in which anything has changed, once for all that came
// meanwhile, until ctx ends. The Mirror shows a change before it is told. changed may be called by several goroutines.
func (m *Mirror) Watch(ctx context.Context, changed func(Part)) {
	var all sync.WaitGroup
	follow := func(tree *recipe.Tree, root string, part Part) {
		if tree == nil {
			return
		}
		sub := subscribe(tree, root)
		all.Go(func() {
			defer sub.Close()
			for {
				select {
				case <-sub.C():
					sub.Take()
					changed(part)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	follow(m.images, ImagesRoot, PartImages)
	follow(m.verdicts, VerdictsRoot, PartImages)
	follow(m.pausedBy, PausesPath, PartImages)
	follow(m.pauses, PausesRoot, PartComponents)
	if m.trials != nil { // and tell, once they are followed
		follow(m.trials.tree, ValidationsRoot, PartImages)
		follow(m.canaries.tree, CanariesRoot, PartImages)
	}
	follow(m.nodes, NodesRoot, PartNodes)
	follow(m.requests, RequestsRoot, PartRequests)
	follow(m.components, ComponentsRoot, PartComponents)
	all.Wait()
}
