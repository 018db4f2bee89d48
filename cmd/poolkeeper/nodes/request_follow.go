package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// waiter follows the tree for a request, and tells what it waits for.
type waiter struct {
	cfg    *configs.Config
	mirror *zkmodel.Mirror
	teller *app.Teller
	stop   func() // ends the following; may be called twice
}

// follow begins to follow the tree.
func follow(ctx context.Context, a *app.App, cfg *configs.Config, client *recipe.Client) *waiter {
	w := &waiter{cfg: cfg, teller: app.NewTeller(a.Stderr)}
	w.mirror = zkmodel.NewMirror(client,
		zkmodel.PartImages|zkmodel.PartNodes|zkmodel.PartRequests|zkmodel.PartComponents, hclog.NewNullLogger())
	following, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	group.Go(func() { _ = w.mirror.Run(following) }) // it ends with following
	w.stop = func() {
		cancel()
		group.Wait()
		w.teller.End()
	}
	return w
}

// until asks done after every change of the tree that it listens to, and once a second,
// until it is done; what it answers is told.
func (w *waiter) until(ctx context.Context, changes []*recipe.Subscription, done func() (state string, over bool, err error)) error {
	woken := make(chan struct{}, 1)
	listening, stop := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer stop()
	for _, c := range changes {
		group.Go(func() {
			defer c.Close()
			for listening.Err() == nil {
				select {
				case <-c.C():
					c.Take()
				case <-listening.Done():
				}
				select {
				case woken <- struct{}{}:
				default:
				}
			}
		})
	}
	tick := time.NewTicker(app.TellTerminal)
	defer tick.Stop()
	for err := w.mirror.WaitSynced(ctx); ; {
		if err != nil {
			return err
		}
		if ctx.Err() != nil { // the mirror ends as well, and shows no more
			return context.Cause(ctx)
		}
		state, over, failed := done()
		if over || failed != nil {
			return failed
		}
		w.teller.Say(state)
		select {
		case <-woken:
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// images waits until each label has an image that a node could be launched from: a
// launcher would decline the request, as it does Zuul's.
func (w *waiter) images(ctx context.Context, labels []string, provider string) error {
	changes := []*recipe.Subscription{w.mirror.SubscribeImages(), w.mirror.SubscribeComponents()}
	missing := ""
	err := w.until(ctx, changes, func() (string, bool, error) {
		for _, label := range labels {
			builders, wanted := w.mirror.Components(zkmodel.KindBuilder), imagesFor(w.cfg, label, provider)
			hindrance := words(zkmodel.NoBuilder(builders), noProvider(wanted, builders))
			if missing = missingImage(label, wanted, w.mirror.Image, hindrance); missing != "" {
				return missing, false, nil
			}
		}
		return "", true, nil
	})
	if err != nil {
		return fmt.Errorf("wait for an image: %s: %w", missing, err)
	}
	return nil
}

// wordsEvery is how often the launcher is asked why a request waits.
const wordsEvery = 2 * time.Second

// request waits until a request is fulfilled or failed, and leaves in r what became
// of it.
func (w *waiter) request(ctx context.Context, r *zkmodel.Request) error {
	if err := w.mirror.WaitSynced(ctx); err != nil {
		return err
	}
	if err := w.mirror.Barrier(ctx); err != nil { // it shows the request, which was made just now
		return err
	}
	id := r.ID
	why, asked := "", time.Time{}
	changes := []*recipe.Subscription{w.mirror.SubscribeRequests(), w.mirror.SubscribeNodes(), w.mirror.SubscribeComponents()}
	err := w.until(ctx, changes, func() (string, bool, error) {
		now := w.mirror.Request(id)
		if now == nil {
			return "", false, fmt.Errorf("request %s was deleted by another", id)
		}
		*r = *now
		if r.State == zkmodel.RequestFulfilled || r.State == zkmodel.RequestFailed {
			return "", true, nil
		}
		if r.State == zkmodel.RequestRequested && time.Since(asked) > wordsEvery {
			why, asked = launcherWords(ctx, w.cfg, id), time.Now()
		}
		return requestView{
			request: r, requests: w.mirror.Requests(), nodes: w.mirror.Nodes(),
			pools: w.mirror.Components(zkmodel.KindPool), why: why,
		}.text(), false, nil
	})
	switch {
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("request %s, which was %s, is cancelled", id, r.State)
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("wait for request %s, which is %s: %w", id, r.State, err)
	}
	return err
}
