package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"poolkeeper/providers"
)

// How long a QEMU may take to end, when asked and when killed.
const (
	quitTime = 3 * time.Second
	killTime = 10 * time.Second
	// copyTime is how long a copy of its lock may live after it.
	copyTime = time.Second
)

// DeleteNode implements providers.Nodes.
func (p *Provider) DeleteNode(ctx context.Context, externalID string) error {
	if err := p.remove(ctx, externalID); err != nil {
		return fmt.Errorf("delete node %s: %w", externalID, err)
	}
	return nil
}

func (p *Provider) remove(ctx context.Context, id string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g, held, err := p.operate(ctx, id)
	if errors.Is(err, providers.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // unlocks
	return p.destroy(ctx, g)
}

// destroy ends a guest and removes its files. The caller operates on it.
func (p *Provider) destroy(ctx context.Context, g guest) error {
	g.Phase = deleting // a crash from here on must not look like a failed node
	if err := p.write(g); err != nil && !errors.Is(err, providers.ErrQuota) {
		return err // a full disk is no reason to keep what fills it
	}
	if err := p.halt(ctx, g); err != nil {
		return err
	}
	if err := p.guests.remove(g.ID); err != nil {
		return err
	}
	p.log.Debug("Guest is gone", "node", g.NodeID, "guest", g.ID)
	return nil
}

// halt ends a guest's QEMU, if there is one, and returns when it has ended.
func (p *Provider) halt(ctx context.Context, g guest) error {
	p.events.drop(g.ID)
	on, err := p.alive(g.ID)
	if err != nil || !on {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, quitTime)
	defer cancel()
	// QEMU may cut the connection before it answers; only its end counts.
	asking := quit(asked, p.guests.path(g.ID))
	if p.ended(asked, g.ID) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.log.Warn("QEMU does not end and is killed", "node", g.NodeID, "guest", g.ID, "error", asking)
	if err := killGuest(g.UUID); err != nil {
		return fmt.Errorf("%w: kill QEMU: %w", providers.ErrTransient, err)
	}
	killed, cancelKill := context.WithTimeout(ctx, killTime)
	defer cancelKill()
	if err := p.ended(killed, g.ID); err != nil {
		return fmt.Errorf("%w: QEMU does not end: %w", providers.ErrTransient, err)
	}
	return nil
}

// gone reports whether a guest's QEMU has ended that has hung up on us. Another
// program that we start at this moment may hold a copy of the lock until it runs.
func (p *Provider) gone(ctx context.Context, id string) (bool, error) {
	moment, cancel := context.WithTimeout(ctx, copyTime)
	defer cancel()
	switch err := p.ended(moment, id); {
	case err == nil:
		return true, nil
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return false, nil
	case errors.Is(err, fs.ErrNotExist): // the folder is gone
		return true, nil
	default:
		return false, err
	}
}

// ended waits until a guest's QEMU has let go of its lock.
func (p *Provider) ended(ctx context.Context, id string) error {
	f, err := lock(ctx, p.guests.path(id, aliveName))
	if err != nil {
		return err
	}
	return f.Close()
}
