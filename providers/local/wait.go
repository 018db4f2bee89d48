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
		InterfaceIP: loopback, PrivateIPv4: loopback, Port: g.Port,
	}, nil
}

func (p *Provider) wait(ctx context.Context, id string) (guest, error) {
	if ctx.Err() != nil {
		return guest{}, context.Cause(ctx)
	}
	g, err := p.settled(ctx, id)
	if err != nil {
		return g, err
	}
	var status string
	if g.Phase == started {
		status, err = askStatus(ctx, p.guests.path(id))
	}
	if err == nil && status == "running" {
		return g, nil
	}
	if ctx.Err() != nil {
		return g, context.Cause(ctx)
	}
	return g, p.why(id, status, err)
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

// why explains a guest that does not run.
func (p *Provider) why(id, status string, cause error) error {
	g, err := p.read(id)
	switch {
	case err != nil:
		return err
	case g.Phase == deleting:
		return providers.ErrNotFound
	case g.Phase == planned:
		return fmt.Errorf("%w: its launcher died before it was started", providers.ErrNodeFailed)
	}
	on, err := p.alive(id)
	switch {
	case err != nil:
		return err
	case !on:
		return fmt.Errorf("%w: QEMU has ended: %s", providers.ErrNodeFailed, readTail(p.guests.path(id, qemuLogName)))
	case status != "":
		return fmt.Errorf("%w: QEMU is in state %q", providers.ErrNodeFailed, status)
	}
	return fmt.Errorf("%w: %w", providers.ErrTransient, cause)
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
