package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"poolkeeper/providers"
)

// The words that a guest is described with.
const (
	cloud    = "local"
	loopback = "127.0.0.1"
)

// WaitNode implements providers.Nodes. CreateNode has waited for QEMU already,
// so this looks whether it runs, and whether it says so itself.
func (p *Provider) WaitNode(ctx context.Context, externalID string) (providers.Instance, error) {
	g, err := p.wait(ctx, externalID)
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return providers.Instance{}, fmt.Errorf("wait for node %s: %w", externalID, err)
	}
	return providers.Instance{
		ExternalID: g.ID, Cloud: cloud, Region: cloud, HostID: host,
		InterfaceIP: loopback, PrivateIPv4: loopback, Port: g.Port, Runs: g.runs(),
	}, nil
}

// wait looks at a guest, again when it had to be started again.
func (p *Provider) wait(ctx context.Context, id string) (guest, error) {
	for {
		g, reason, err := p.look(ctx, id)
		if err != nil || reason == "" {
			return g, err
		}
		if err := p.rescue(ctx, g, reason); err != nil {
			return g, err
		}
	}
}

// look tells why a guest does not run, or "" when it does.
func (p *Provider) look(ctx context.Context, id string) (g guest, reason string, err error) {
	if ctx.Err() != nil {
		return g, "", context.Cause(ctx)
	}
	if g, err = p.settled(ctx, id); err != nil {
		return g, "", err
	}
	var status string
	if g.Phase == started {
		status, err = askStatus(ctx, p.guests.path(id))
	}
	if err == nil && status == "running" {
		return g, "", nil
	}
	if ctx.Err() != nil {
		return g, "", context.Cause(ctx)
	}
	reason, err = p.why(ctx, g, status, err)
	return g, reason, err
}

// settled reads the record of a guest that nobody is starting any more.
func (p *Provider) settled(ctx context.Context, id string) (guest, error) {
	g, err := p.read(id)
	if err != nil || g.Phase != planned {
		return g, err
	}
	g, held, err := p.operate(ctx, id)
	if err != nil {
		return g, err
	}
	return g, held.Close()
}

// why explains a guest that does not run, by what was seen and by its record as it
// is now.
func (p *Provider) why(ctx context.Context, seen guest, status string, cause error) (reason string, err error) {
	g, err := p.read(seen.ID)
	switch {
	case err != nil:
		return "", err
	case g.Phase == deleting:
		return "", providers.ErrNotFound
	case g.Phase == planned:
		return "", fmt.Errorf("%w: its launcher died before it was started", providers.ErrNodeFailed)
	}
	if status != "" {
		return fmt.Sprintf("QEMU is in state %q: %s", status, readDecisive(p.guests.path(g.ID, qemuLogName))), nil
	}
	switch gone, err := p.gone(ctx, g.ID); {
	case err != nil:
		return "", err
	case gone:
		return p.ending(g.ID), nil
	}
	return "", fmt.Errorf("%w: %w", providers.ErrTransient, cause)
}

// ConsoleLog implements providers.Nodes.
func (p *Provider) ConsoleLog(ctx context.Context, externalID string, limit int) ([]byte, error) {
	text, err := p.console(ctx, externalID, limit)
	if err != nil {
		return nil, fmt.Errorf("read console of node %s: %w", externalID, err)
	}
	return text, nil
}

func (p *Provider) console(ctx context.Context, id string, limit int) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if _, err := p.read(id); err != nil {
		return nil, err
	}
	text, err := tail(p.guests.path(id, consoleName), limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // QEMU has not come so far
	}
	return text, err
}
