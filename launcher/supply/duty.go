package supply

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/providers"
)

// Duty is a provider as what one launcher does for all uses it (singleton.Cloud). While it
// is not open, every question to the cloud fails with ErrNotOpen.
type Duty struct{ *Provider }

// Exists reports whether its machines exist already; known when it is open.
func (d Duty) Exists() bool { return d.IsStatic() }

// ListNodes lists its machines.
func (d Duty) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	defer d.Timing(ctx, "list servers")()
	return p.ListNodes(ctx)
}

// CleanLeaks deletes what machines of an installation left behind, and counts it by kind.
// A provider that cannot has nothing to be counted.
func (d Duty) CleanLeaks(ctx context.Context, site string) (map[string]int, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	cleaner, ok := p.(providers.Cleaner)
	if !ok {
		return nil, nil
	}
	return cleaner.CleanLeaks(ctx, site)
}

// MoreRoom notes that something was deleted that no record shows.
func (d Duty) MoreRoom() { d.ResetQuotaBackoff() }

// Limits asks for its limits.
func (d Duty) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	defer d.Timing(ctx, "read limits")()
	limits, err := p.Limits(ctx, ours)
	if errors.Is(err, providers.ErrNoLimits) && !d.honorsLimits() {
		return providers.Resources{}, nil
	}
	return limits, err
}

// Wanted reports whether a request waits for room in it.
func (d Duty) Wanted() bool { return d.Wants() }

// Slots are the machines of a provider whose machines exist already.
//
// Errors: providers.ErrNotSupported from any other.
func (d Duty) Slots() ([]providers.Slot, error) {
	p, err := d.Use()
	if err != nil {
		return nil, err
	}
	s, ok := p.(providers.Slotter)
	if !ok {
		return nil, fmt.Errorf("list the slots of %s: %w", d.Section().Name, providers.ErrNotSupported)
	}
	return s.Slots(), nil
}
