package launcher

import (
	"context"
	"errors"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// minReadyRequestor is who asks for nodes that are kept in stock, and
	// minReadyPriority how urgently; Nodepool's words.
	minReadyRequestor = "NodePool:min-ready"
	minReadyPriority  = "900"
	// stockPause gathers changes before the stock is counted again.
	stockPause = 50 * time.Millisecond
)

// stocked lists the labels that we keep in stock: those with min-ready that a
// pool of ours makes nodes of.
func (l *Launcher) stocked() []configs.Label {
	return slices.DeleteFunc(slices.Clone(l.cfg.Labels), func(label configs.Label) bool {
		return label.MinReady <= 0 || !slices.ContainsFunc(l.pools, func(p *pool) bool {
			_, has := p.labels[label.Name]
			return has
		})
	})
}

// keepStock keeps min-ready nodes of a label ready, by requests that everybody
// serves like others, until ctx ends.
func (l *Launcher) keepStock(ctx context.Context, store *zkmodel.Store, label configs.Label) error {
	nodes, requests, images := l.mirror.SubscribeNodes(), l.mirror.SubscribeRequests(), l.mirror.SubscribeImages()
	defer nodes.Close()
	defer requests.Close()
	defer images.Close()
	retry := backoff{first: time.Second, longest: time.Minute}
	failures := 0
	for {
		nodes.Take()
		requests.Take()
		images.Take()
		failed, err := l.stock(ctx, store, label)
		pause := stockPause
		switch {
		case err != nil:
			return err
		case failed:
			failures++
			pause = retry.after(failures)
		}
		if !sleep(ctx.Done(), pause) {
			return nil
		}
		if failed {
			continue
		}
		failures = 0
		select {
		case <-nodes.C():
		case <-requests.C():
		case <-images.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// stock makes the requests that are missing and withdraws those too many. It
// tells whether one has failed.
func (l *Launcher) stock(ctx context.Context, store *zkmodel.Store, label configs.Label) (failed bool, err error) {
	open, _ := l.stockRequests(label.Name)
	if len(open)+l.inStock(label.Name) == label.MinReady || !l.canMake(label.Name) {
		return false, nil
	}
	// Requests are counted before nodes, and what was committed in between is
	// seen: a request that became a node is counted twice rather than not at all.
	if err := l.mirror.Barrier(ctx); err != nil {
		return false, err
	}
	open, done := l.stockRequests(label.Name)
	for _, r := range done {
		failed = failed || r.State == zkmodel.RequestFailed
		if err := store.DeleteRequest(ctx, r.ID); err != nil {
			return failed, err
		}
	}
	if err := l.mirror.Barrier(ctx); err != nil || failed {
		return failed, err
	}
	missing := label.MinReady - l.inStock(label.Name) - len(open)
	for range missing {
		r := &zkmodel.Request{
			NodeTypes: zkmodel.Strings{label.Name}, Requestor: minReadyRequestor,
			CreatedTime: zkmodel.EpochOf(l.now()),
		}
		if err := store.CreateRequest(ctx, minReadyPriority, r); err != nil {
			return false, err
		}
		l.step(StepMinReady)
	}
	for i, r := range slices.Backward(open) {
		if i >= len(open)+missing && r.State == zkmodel.RequestRequested {
			if err := store.DeleteRequest(ctx, r.ID); err != nil {
				return false, err
			}
		}
	}
	return false, l.mirror.Barrier(ctx) // the next count sees what was made
}

// stockRequests lists the requests for stock of a label: those that are served,
// and those that have come to an end.
func (l *Launcher) stockRequests(label string) (open, done []*zkmodel.Request) {
	for _, r := range l.mirror.Requests() {
		if r.Broken != nil || r.Requestor != minReadyRequestor || !slices.Equal(r.NodeTypes, []string{label}) {
			continue
		}
		switch r.State {
		case zkmodel.RequestFulfilled, zkmodel.RequestFailed: // fulfilled by a Nodepool: the node is settled
			done = append(done, r)
		default:
			open = append(open, r)
		}
	}
	return open, done
}

// inStock counts the ready nodes of a label that are nobody's.
func (l *Launcher) inStock(label string) int {
	count := 0
	for _, n := range l.mirror.Nodes() {
		if n.Broken == nil && n.State == zkmodel.NodeReady && n.AllocatedTo == "" && slices.Contains(n.Type, label) {
			count++
		}
	}
	return count
}

// canMake tells whether a pool of ours has an image for a label.
func (l *Launcher) canMake(label string) bool {
	images := l.mirror.Images()
	return slices.ContainsFunc(l.pools, func(p *pool) bool {
		here, has := p.labels[label]
		return has && (here.CloudImage != "" || newest(images, here.DiskImage, p.provider.Name) != nil)
	})
}

// dropStock deletes requests for stock of labels that nobody keeps in stock any
// more: their min-ready was lowered to nothing, or they left the configuration.
// Those of a Nodepool go with its session, and are left alone.
func (l *Launcher) dropStock(ctx context.Context, h *recipe.Held) error {
	for _, r := range l.mirror.Requests() {
		if r.Broken != nil || r.Requestor != minReadyRequestor || len(r.NodeTypes) != 1 ||
			r.Stat.EphemeralOwner != 0 || r.State == zkmodel.RequestPending {
			continue
		}
		keepers, err := h.Session().Children(ctx, zkmodel.LabelDutyPath(r.NodeTypes[0])+"/members")
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
		if len(keepers) > 0 {
			continue
		}
		_, err = h.Multi(ctx, recipe.OpDelete(r.Path(), r.Stat.Version))
		if err != nil && !errors.Is(err, recipe.ErrNoNode) && !errors.Is(err, recipe.ErrVersion) {
			return err
		}
	}
	return nil
}
