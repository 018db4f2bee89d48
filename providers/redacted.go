package providers

import (
	"context"
	"slices"

	"poolkeeper/configs/redact"
)

// Redacted is a provider whose errors and consoles have none of the secrets: a
// cloud may echo what it was sent. Whatever p can more it can, too; where p cannot,
// it does nothing. Machines that exist already (Slotter), and nodes on nodes of others
// (Backed), it has only where p has.
func Redacted(p Provider, secrets *redact.Secrets) Provider {
	r := &redacted{Provider: p, secrets: secrets}
	if slots, ok := p.(Slotter); ok {
		return struct {
			*redacted
			Slotter
		}{r, slots}
	}
	if backed, ok := p.(Backed); ok {
		return struct {
			*redacted
			Backed
		}{r, backed}
	}
	return r
}

type redacted struct {
	Provider

	secrets *redact.Secrets
}

// UploadImage implements Images.
func (r *redacted) UploadImage(ctx context.Context, image ImageUpload) (string, error) {
	id, err := r.Provider.UploadImage(ctx, image)
	return id, r.secrets.Error(err)
}

// DeleteImage implements Images.
func (r *redacted) DeleteImage(ctx context.Context, id string) error {
	return r.secrets.Error(r.Provider.DeleteImage(ctx, id))
}

// ListImages implements Images.
func (r *redacted) ListImages(ctx context.Context) ([]Image, error) {
	list, err := r.Provider.ListImages(ctx)
	return list, r.secrets.Error(err)
}

// CreateNode implements Nodes.
func (r *redacted) CreateNode(ctx context.Context, node NodeSpec) (string, error) {
	id, err := r.Provider.CreateNode(ctx, node)
	return id, r.secrets.Error(err)
}

// WaitNode implements Nodes.
func (r *redacted) WaitNode(ctx context.Context, id string) (Instance, error) {
	instance, err := r.Provider.WaitNode(ctx, id)
	return instance, r.secrets.Error(err)
}

// DeleteNode implements Nodes.
func (r *redacted) DeleteNode(ctx context.Context, id string) error {
	return r.secrets.Error(r.Provider.DeleteNode(ctx, id))
}

// ListNodes implements Nodes.
func (r *redacted) ListNodes(ctx context.Context) ([]NodeInfo, error) {
	list, err := r.Provider.ListNodes(ctx)
	for i := range list {
		list[i].Down = r.secrets.Text(list[i].Down)
	}
	return list, r.secrets.Error(err)
}

// ConsoleLog implements Nodes.
func (r *redacted) ConsoleLog(ctx context.Context, id string, most int) ([]byte, error) {
	text, err := r.Provider.ConsoleLog(ctx, id, most)
	if r.secrets.Has(string(text)) {
		clean := []byte(r.secrets.Text(string(text)))
		text = slices.Clone(clean[max(0, len(clean)-most):])
	}
	return text, r.secrets.Error(err)
}

// Limits implements Nodes.
func (r *redacted) Limits(ctx context.Context, ours Ours) (Resources, error) {
	limits, err := r.Provider.Limits(ctx, ours)
	return limits, r.secrets.Error(err)
}

// NodeResources implements Nodes.
func (r *redacted) NodeResources(ctx context.Context, pool, label string) (Resources, error) {
	takes, err := r.Provider.NodeResources(ctx, pool, label)
	return takes, r.secrets.Error(err)
}

// CleanLeaks implements Cleaner.
func (r *redacted) CleanLeaks(ctx context.Context, site string) (map[string]int, error) {
	cleaner, ok := r.Provider.(Cleaner)
	if !ok {
		return nil, nil
	}
	deleted, err := cleaner.CleanLeaks(ctx, site)
	return deleted, r.secrets.Error(err)
}

// CheckCloud implements Checker.
func (r *redacted) CheckCloud(ctx context.Context) ([]Missing, error) {
	checker, ok := r.Provider.(Checker)
	if !ok {
		return nil, nil
	}
	list, err := checker.CheckCloud(ctx)
	for i := range list {
		list[i].Message = r.secrets.Text(list[i].Message)
	}
	return list, r.secrets.Error(err)
}

// Interruptions implements Interrupter.
func (r *redacted) Interruptions() map[string]string {
	if interrupter, ok := r.Provider.(Interrupter); ok {
		return interrupter.Interruptions()
	}
	return nil
}

// Prepare implements Preparer.
func (r *redacted) Prepare(ctx context.Context) error {
	preparer, ok := r.Provider.(Preparer)
	if !ok {
		return nil
	}
	return r.secrets.Error(preparer.Prepare(ctx))
}

// WatchNode implements Watcher. A provider that sees nothing watches until ctx ends.
func (r *redacted) WatchNode(ctx context.Context, id string) error {
	watcher, ok := r.Provider.(Watcher)
	if !ok {
		<-ctx.Done()
		return nil
	}
	return r.secrets.Error(watcher.WatchNode(ctx, id))
}

// Tell implements Teller. A provider that tells nothing is never in trouble.
func (r *redacted) Tell(tell func(error)) {
	if teller, ok := r.Provider.(Teller); ok {
		teller.Tell(func(trouble error) { tell(r.secrets.Error(trouble)) })
	}
}

// OfInstallation implements Sited. Most providers need not know.
func (r *redacted) OfInstallation(site string) {
	if sited, ok := r.Provider.(Sited); ok {
		sited.OfInstallation(site)
	}
}

// Ends implements Ender. A provider that does not know has nothing that ends.
func (r *redacted) Ends() []End {
	if ender, ok := r.Provider.(Ender); ok {
		return ender.Ends()
	}
	return nil
}

// Calls implements Asker. A provider that asks nobody has made none.
func (r *redacted) Calls() []Calls {
	if asker, ok := r.Provider.(Asker); ok {
		return asker.Calls()
	}
	return nil
}

// Zones are the availability zones of a provider that knows them, or nil.
func (r *redacted) Zones(ctx context.Context) ([]string, error) {
	zoner, ok := r.Provider.(Zoner)
	if !ok {
		return nil, nil
	}
	zones, err := zoner.Zones(ctx)
	return zones, r.secrets.Error(err)
}

// Close implements Provider.
func (r *redacted) Close() error { return r.secrets.Error(r.Provider.Close()) }
