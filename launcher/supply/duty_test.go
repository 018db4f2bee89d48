package supply_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
)

// A provider that is not open is asked nothing: a list of no machines would say that all of
// its nodes are gone.
func TestADutyWaitsForItsProvider(t *testing.T) {
	d := supply.Duty{Provider: supply.New(configs.Provider{Name: "north"}, nil, hclog.NewNullLogger(), time.Now, func() {})}
	_, listed := d.ListNodes(t.Context())
	_, limited := d.Limits(t.Context(), nil)
	_, slots := d.Slots()
	_, cleaned := d.CleanLeaks(t.Context(), "site")
	for what, err := range map[string]error{"machines": listed, "limits": limited, "slots": slots, "leaks": cleaned} {
		if !errors.Is(err, supply.ErrNotOpen) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if d.Exists() || d.Wanted() {
		t.Error("it exists, or is wanted, before it is open")
	}
}

// cleaning is a cloud that lists machines and cleans up after them.
type cleaning struct{ *cloud }

func (c cleaning) ListNodes(context.Context) ([]providers.NodeInfo, error) {
	return []providers.NodeInfo{{ExternalID: "vm"}}, nil
}

func (c cleaning) CleanLeaks(_ context.Context, site string) (map[string]int, error) {
	return map[string]int{site: 2}, nil
}

// An open one is asked, for the installation that is meant; what it cannot do is no error
// where there is nothing to be done, and one where something was expected.
func TestADutyAsksItsProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &cloud{limits: providers.Resources{providers.Instances: 4}}
		d := supply.Duty{Provider: run(t, plain)}
		if limits, err := d.Limits(t.Context(), nil); err != nil || limits[providers.Instances] != 4 {
			t.Errorf("limits %v: %v", limits, err)
		}
		if left, err := d.CleanLeaks(t.Context(), "site"); err != nil || len(left) != 0 {
			t.Errorf("one that cleans nothing: %v (%v)", left, err)
		}
		if _, err := d.Slots(); !errors.Is(err, providers.ErrNotSupported) {
			t.Errorf("slots of one that has none: %v", err)
		}
		d = supply.Duty{Provider: open(t, func(configs.Provider) (providers.Provider, error) { return cleaning{&cloud{}}, nil })}
		if left, err := d.CleanLeaks(t.Context(), "site"); err != nil || left["site"] != 2 {
			t.Errorf("cleaned %v: %v", left, err)
		}
		if list, err := d.ListNodes(t.Context()); err != nil || len(list) != 1 {
			t.Errorf("machines %v: %v", list, err)
		}
	})
}
