package action

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/operate"
)

func (d *Doer) hold(ctx context.Context, o Order) error {
	return NotThere(ctx, d.Store, d.operator().Hold(ctx, o.Node, o.Reason, o.For), o.Node)
}

func (d *Doer) deleteNode(ctx context.Context, o Order) error {
	var err error
	if o.Broken {
		err = d.operator().DeleteBrokenNode(ctx, o.Node)
	} else {
		err = d.operator().DeleteNode(ctx, o.Node)
	}
	switch {
	case errors.Is(err, zkmodel.ErrUndecodable):
		return fmt.Errorf("%w; --broken deletes the record", err)
	case errors.Is(err, operate.ErrDecodable):
		return fmt.Errorf("%w: node-delete without --broken deletes it", err)
	}
	return NotThere(ctx, d.Store, err, o.Node)
}

// deleteRequest deletes one request, of any requestor. Its nodes are others' then.
func (d *Doer) deleteRequest(ctx context.Context, o Order) error {
	err := d.operator().DeleteRequest(ctx, o.Request)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Request id " + o.Request + " not found" + near(ctx, d.Store, zkmodel.RequestPath(o.Request))) // as with nodes
	}
	return err
}

// NotThere keeps the message of a node that is not there, which scripts know, and adds which node
// may have been meant. Other errors it returns as they are.
func NotThere(ctx context.Context, store *zkmodel.Store, err error, id string) error {
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Node id " + id + " not found" + near(ctx, store, zkmodel.NodePath(id))) // Nodepool's words
	}
	return err
}

func (d *Doer) pauseProvider(ctx context.Context, o Order) error { return d.halt(ctx, o, false) }
func (d *Doer) drainProvider(ctx context.Context, o Order) error { return d.halt(ctx, o, true) }

// halt has nothing begun in a provider.
func (d *Doer) halt(ctx context.Context, o Order, drain bool) error {
	if err := KnownProvider(ctx, d.Config, d.Store, o.Provider); err != nil {
		return err
	}
	p, err := d.operator().PauseProvider(ctx, o.Provider, o.Reason, o.For, drain)
	if err != nil {
		return err
	}
	d.Say(p.Text())
	if text := unsupported(ctx, d.Store, "it takes effect"); text != "" {
		d.Note(text)
	}
	return nil
}

func (d *Doer) resumeProvider(ctx context.Context, o Order) error {
	err := d.operator().ResumeProvider(ctx, o.Provider)
	if !errors.Is(err, operate.ErrNotPaused) {
		return err
	}
	var paused []string
	all, unread := d.Store.ProviderPauses(ctx)
	for _, p := range all {
		paused = append(paused, p.Provider)
	}
	if unread != nil {
		return err
	}
	return fmt.Errorf("%w%s", err, configs.Similar(o.Provider, paused))
}

// KnownProvider refuses a provider that is not configured and that no daemon serves.
func KnownProvider(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, name string) error {
	if _, ok := cfg.Provider(name); ok {
		return nil
	}
	serving, err := store.Serving(ctx, name)
	if err != nil || len(serving) > 0 {
		return err
	}
	names, _ := cfg.ProviderNames()
	return fmt.Errorf("there is no provider %s in %s, and no daemon serves one%s", name, cfg.Path, configs.Similar(name, names))
}
