package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"poolkeeper/providers"
)

// The logs of a guest's first start, kept when it is started again.
const firstSuffix = ".kvm"

// rescues reports whether a guest that fails is to be started again: it runs with
// KVM, and that was our choice.
func (p *Provider) rescues(g guest) bool { return p.speed.automatic() && g.Accel == kvm }

// failed is the error of a guest that has failed.
func (p *Provider) failed(g guest, reason string) error {
	return fmt.Errorf("%w: %s (%s)", providers.ErrNodeFailed, reason, g.runs())
}

// rescue starts a guest again, emulated, that has failed with KVM, and lets KVM be
// distrusted from then on. It returns nil when the guest runs again, whoever has
// started it. Once begun it does not end with ctx, but within undoTime.
//
// Errors: providers.ErrNodeFailed with the reason when that is not to be done, or
// does not work; ErrNotFound (deleted in the meantime).
func (p *Provider) rescue(ctx context.Context, seen guest, reason string) error {
	failed := p.failed(seen, reason)
	if !p.rescues(seen) {
		return failed
	}
	g, held, err := p.operate(ctx, seen.ID)
	switch {
	case errors.Is(err, providers.ErrNotFound):
		return err
	case err != nil:
		return errors.Join(failed, err)
	}
	defer held.Close() //nolint:errcheck // unlocks
	switch {
	case g.Phase == deleting:
		return providers.ErrNotFound
	case g.Phase == started && g.Accel != kvm:
		return nil // another process was faster
	case g.Phase != started:
		return failed
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTime)
	defer cancel()
	if err := p.restart(ctx, g, held, reason); err != nil {
		return fmt.Errorf("%w; it cannot be started again emulated: %w", failed, err)
	}
	return nil
}

// restart starts a guest again, emulated, from a fresh disk. The caller operates
// on it.
func (p *Provider) restart(ctx context.Context, g guest, held *os.File, reason string) error {
	p.log.Warn("Guest failed with KVM and is started again, emulated", "node", g.NodeID, "guest", g.ID, "reason", reason)
	choice, err := p.speed.distrust(ctx, fmt.Sprintf("node %s failed with KVM: %s", g.NodeID, reason))
	if err != nil {
		return err
	}
	g.Phase, g.Port = planned, 0 // if we die now, it is begun anew
	g.Accel, g.AccelWhy = choice.Accel, choice.Why
	if g.Snapshot != "" {
		g.Snapshot, g.SnapshotWhy = "", "it is of a guest with KVM"
	}
	if err := p.write(g); err != nil {
		return err
	}
	if err := p.halt(ctx, g); err != nil {
		return err
	}
	for _, name := range []string{consoleName, qemuLogName} {
		path := p.guests.path(g.ID, name)
		if err := os.Rename(path, path+firstSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := p.prepare(ctx, g, held); err != nil {
		return err
	}
	return p.bringUp(ctx, g)
}
