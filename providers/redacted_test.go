package providers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

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
