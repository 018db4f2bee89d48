package launcher

import (
	"context"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/launcher/supply"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// troubles tells of providers that this launcher cannot use at all, and can use again. What
// comes and goes while ZooKeeper is away is told as it is afterwards.
type troubles struct {
	client *recipe.Client
	clouds map[string]*supply.Provider
	again  chan struct{}
	told   map[string]string // why a provider cannot be used, as it was told; by name
}

// look asks for a look at the providers. It never blocks.
func (t *troubles) look() {
	select {
	case t.again <- struct{}{}:
	default:
	}
}

// run tells until ctx ends.
func (t *troubles) run(ctx context.Context) error {
	return t.client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
		t.look()
		for {
			select {
			case <-t.again:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if s.Log() == nil {
				continue
			}
			for name, c := range t.clouds {
				if t.tell(ctx, zkmodel.NewStore(s, nil), name, c.View()) != nil && clock.Sleep(ctx, time.Second) == nil {
					t.look() // ZooKeeper does not answer, which others say
				}
			}
		}
	})
}

// tell tells of one provider, if there is news. One that was not used yet is no news.
func (t *troubles) tell(ctx context.Context, store *zkmodel.Store, name string, v supply.View) error {
	was, down := t.told[name], v.Held
	kind := event.ProviderUp
	switch {
	case v.Paused != "": // who did that is told already, and it is no news that nothing works there
		return nil
	case down == (was != ""), !down && v.Unavailable != "":
		return nil
	case down:
		kind = event.ProviderDown
	}
	err := store.Tell(ctx, kind, "provider/"+name, event.Data{"provider": name, "reason": reason(v, down)})
	if err != nil {
		return err
	}
	if t.told[name] = ""; down {
		t.told[name] = v.Trouble
	}
	return nil
}

// reason is why a provider that is down cannot be used.
func reason(v supply.View, down bool) string {
	if down {
		return v.Trouble
	}
	return ""
}
