package builder

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// news tells of providers that this builder cannot use, and can use again, where changes are
// told. What comes and goes while ZooKeeper is away is told as it is afterwards.
type news struct {
	client *recipe.Client
	again  chan struct{}

	mu   sync.Mutex
	now  map[string]string // why a provider cannot be used, by name
	told map[string]string // as it was told
}

func newNews(client *recipe.Client) *news {
	return &news{client: client, again: make(chan struct{}, 1), now: map[string]string{}, told: map[string]string{}}
}

// note notes that a provider cannot be used, and why, or with nil that it can. It never blocks.
func (n *news) note(provider string, err error) {
	n.mu.Lock()
	if delete(n.now, provider); err != nil {
		n.now[provider] = zkmodel.BriefTrouble(err.Error())
	}
	n.mu.Unlock()
	n.look()
}

// only forgets providers that the configuration does not have any more.
func (n *news) only(names []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, known := range []map[string]string{n.now, n.told} {
		maps.DeleteFunc(known, func(name, _ string) bool { return !slices.Contains(names, name) })
	}
}

func (n *news) look() {
	select {
	case n.again <- struct{}{}:
	default:
	}
}

// run tells until ctx ends.
func (n *news) run(ctx context.Context) error {
	return n.client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		n.look()
		for {
			select {
			case <-n.again:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if s.Log() == nil {
				continue
			}
			for name, why := range n.changes() {
				if n.tell(ctx, s, name, why) != nil && clock.Sleep(ctx, time.Second) == nil {
					n.look() // ZooKeeper does not answer, which others say
				}
			}
		}
	})
}

// changes are the providers that came down, with why, or up since it was told.
func (n *news) changes() map[string]string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]string{}
	for name, why := range n.now {
		if n.told[name] == "" {
			all[name] = why
		}
	}
	for name := range n.told {
		if n.now[name] == "" {
			all[name] = ""
		}
	}
	return all
}

func (n *news) tell(ctx context.Context, s *recipe.Session, name, why string) error {
	kind := event.ProviderUp
	if why != "" {
		kind = event.ProviderDown
	}
	err := zkmodel.NewStore(s, nil).Tell(ctx, kind, "provider/"+name, event.Data{"provider": name, "reason": why})
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if delete(n.told, name); why != "" {
		n.told[name] = why
	}
	return nil
}
