package providers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"poolkeeper/configs/redact"
	"poolkeeper/providers"
)

// able is a provider that can more than a provider must.
type able struct {
	providers.Provider
	prepared bool
	site     string
}

func (a *able) OfInstallation(site string) { a.site = site }

func (*able) CleanLeaks(context.Context, string) (map[string]int, error) {
	return map[string]int{"port": 3}, nil
}

func (a *able) Prepare(context.Context) error {
	a.prepared = true
	return nil
}

func (*able) WatchNode(context.Context, string) error {
	return fmt.Errorf("%w: the machine says hunter22", providers.ErrRestarted)
}

func (*able) Interruptions() map[string]string { return map[string]string{"1": "taken back"} }

func (*able) Zones(context.Context) ([]string, error) { return []string{"a", "b"}, nil }

// Redacting takes nothing away from a provider but the secrets.
func TestRedactedCanWhatItsProviderCan(t *testing.T) {
	a := &able{}
	var secrets redact.Secrets
	secrets.Add("hunter22")
	p := providers.Redacted(a, &secrets)
	if deleted, err := p.(providers.Cleaner).CleanLeaks(t.Context(), ""); err != nil || deleted["port"] != 3 {
		t.Errorf("cleans %v, %v", deleted, err)
	}
	if err := p.(providers.Preparer).Prepare(t.Context()); err != nil || !a.prepared {
		t.Errorf("prepares: %v, %v", a.prepared, err)
	}
	if p.(providers.Sited).OfInstallation("here"); a.site != "here" {
		t.Errorf("works for %q", a.site)
	}
	err := p.(providers.Watcher).WatchNode(t.Context(), "1")
	if !errors.Is(err, providers.ErrRestarted) || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("watches: %v", err)
	}
	if why := p.(providers.Interrupter).Interruptions()["1"]; why != "taken back" {
		t.Errorf("interrupted: %q", why)
	}
	zones, err := p.(interface {
		Zones(ctx context.Context) ([]string, error)
	}).Zones(t.Context())
	if err != nil || !slices.Equal(zones, []string{"a", "b"}) {
		t.Errorf("zones %v, %v", zones, err)
	}
}

// A provider that sees nothing of its machines does not fail them.
func TestRedactedThatSeesNothing(t *testing.T) {
	p := providers.Redacted(struct{ providers.Provider }{}, &redact.Secrets{})
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- p.(providers.Watcher).WatchNode(ctx, "1") }()
	select {
	case err := <-watched:
		t.Errorf("ended at once: %v", err)
	default:
	}
	cancel()
	if err := <-watched; err != nil {
		t.Error(err)
	}
}

// slotted is a provider whose nodes are slots on nodes of others.
type slotted struct {
	providers.Provider
	known providers.Backing
}

func (s *slotted) OnBacking(known providers.Backing) { s.known = known }

func (*slotted) Keeps(providers.BackingNode) time.Time { return time.Time{} }

func (*slotted) Unreachable(context.Context, string, error) error { return nil }

// A launcher asks a provider whether its nodes are slots on others: that has to stay so, and may
// not be said of any other.
func TestRedactedIsBackedWhereItsProviderIs(t *testing.T) {
	var secrets redact.Secrets
	if _, backed := providers.Redacted(&able{}, &secrets).(providers.Backed); backed {
		t.Error("a cloud has backing nodes")
	}
	s := &slotted{}
	backed, is := providers.Redacted(s, &secrets).(providers.Backed)
	if !is {
		t.Fatal("it has none any more")
	}
	known := struct{ providers.Backing }{}
	if backed.OnBacking(known); s.known != known {
		t.Error("it does not know them")
	}
	for _, shown := range []string{fmt.Sprint(providers.NewVerbatim([]byte("secret"))), fmt.Sprintf("%#v %+v", providers.NewVerbatim([]byte("secret")), providers.OnSlot{ConnectionPort: providers.NewVerbatim([]byte("secret"))})} {
		if strings.Contains(shown, "secret") {
			t.Errorf("a connection shows as %s", shown)
		}
	}
}
