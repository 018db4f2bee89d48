package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// PausesRoot holds which providers people have paused, a provider each. It is not there
// before the first pause.
const PausesRoot = OwnRoot + "/paused-providers"

// PausePathOf is where a provider is paused.
func PausePathOf(provider string) string { return PausesRoot + "/" + provider }

// ProviderPause says that a person has paused a provider (docs/wire.md §8.1): nothing is
// launched or uploaded there, and nobody is given an idle node of it. What is under way goes
// on, and what is to be deleted is deleted.
type ProviderPause struct {
	Provider string      `json:"-"`
	Stat     recipe.Stat `json:"-"`
	Broken   error       `json:"-"` // it is paused all the same

	Pause
	// Drain says that idle nodes are deleted.
	Drain bool `json:"drain,omitempty"`
}

// Text says for people who has paused the provider, for how long, why, and what ends that.
func (p *ProviderPause) Text() string {
	if p.Broken != nil {
		return fmt.Sprintf("provider %s is paused, and the record of that cannot be read (%v): provider-resume removes it", p.Provider, p.Broken)
	}
	what := "paused"
	if p.Drain {
		what = "drained"
	}
	return fmt.Sprintf("provider %s is %s", p.Provider, p.text(what, "provider-resume"))
}

func decodePause(provider string, data []byte, stat recipe.Stat) *ProviderPause {
	p := &ProviderPause{}
	if err := json.Unmarshal(data, p); err != nil {
		p = &ProviderPause{Broken: err}
	}
	p.Provider, p.Stat = provider, stat
	return p
}

// PauseProvider pauses a provider, or pauses it anew with what is said now.
func (st *Store) PauseProvider(ctx context.Context, p ProviderPause) error {
	path := PausePathOf(p.Provider)
	data, err := json.Marshal(p)
	if err == nil {
		err = st.session.EnsurePath(ctx, PausesRoot)
	}
	if err != nil {
		return fmt.Errorf("pause provider %s: %w", p.Provider, err)
	}
	told := gone{event.ProviderPaused, "provider/" + p.Provider, p.eventData("provider", p.Provider)}
	if p.Drain {
		told.data["drain"] = true
	}
	for {
		_, there, err := st.session.Exists(ctx, path)
		if err != nil {
			return fmt.Errorf("pause provider %s: %w", p.Provider, err)
		}
		op := recipe.OpCreate(path, data, recipe.Persistent)
		if there {
			op = recipe.OpSet(path, data, recipe.AnyVersion)
		}
		err = st.telling(ctx, func(also []recipe.Op) error {
			_, err := st.session.Multi(ctx, slices.Concat([]recipe.Op{op}, also)...)
			return err
		}, told)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, recipe.ErrNoNode), isExists(err): // another one was faster
		default:
			return fmt.Errorf("pause provider %s: %w", p.Provider, err)
		}
	}
}

// ResumeProvider ends the pause of a provider, by a person or a rule that is named, and reports whether
// there was one. seen, when not nil, is the one that it ends, and no other.
func (st *Store) ResumeProvider(ctx context.Context, provider, by string, seen *ProviderPause) (was bool, err error) {
	version := recipe.AnyVersion
	if seen != nil {
		version = seen.Stat.Version
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		_, err := st.session.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpDelete(PausePathOf(provider), version)}, also)...)
		return err
	}, gone{event.ProviderResumed, "provider/" + provider, event.Data{"provider": provider, "by": by}})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, recipe.ErrNoNode), seen != nil && errors.Is(err, recipe.ErrVersion):
		return false, nil
	}
	return false, fmt.Errorf("resume provider %s: %w", provider, err)
}

// ProviderPauses lists the pauses of providers by name, also those whose time is over.
func (st *Store) ProviderPauses(ctx context.Context) ([]*ProviderPause, error) {
	names, err := st.session.Children(ctx, PausesRoot)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list pauses of providers: %w", err)
	}
	slices.Sort(names)
	var list []*ProviderPause
	for _, name := range names {
		data, stat, err := st.session.Get(ctx, PausePathOf(name))
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the pause of provider %s: %w", name, err)
		}
		list = append(list, decodePause(name, data, stat))
	}
	return list, nil
}

// SubscribePauses reports the providers that are paused or resumed.
func (m *Mirror) SubscribePauses() *recipe.Subscription { return subscribe(m.pauses, PausesRoot) }

// ProviderPauses lists the pauses of providers by name, also those whose time is over.
func (m *Mirror) ProviderPauses() []*ProviderPause {
	var list []*ProviderPause
	m.pauses.View(func(v recipe.View) {
		for _, name := range v.Children(PausesRoot) {
			if e, ok := v.Get(PausePathOf(name)); ok {
				p := decodePause(name, e.Data, e.Stat)
				p.Broken = broken(e, p.Broken)
				list = append(list, p)
			}
		}
	})
	return list
}

// Paused are the providers that are paused at a time of ZooKeeper's clock, by name.
func Paused(list []*ProviderPause, now time.Time) map[string]*ProviderPause {
	paused := map[string]*ProviderPause{}
	for _, p := range list {
		if !p.Over(now) {
			paused[p.Provider] = p
		}
	}
	return paused
}

// pauseInterest says what a Mirror follows below PausesRoot.
func pauseInterest(p string) recipe.Interest {
	switch len(below(PausesRoot, p)) {
	case 0:
		return recipe.Children
	case 1:
		return recipe.Data
	}
	return recipe.None
}
