package site

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/providers"
)

// errDead is what a process that has crashed gets of every call; nobody hears of it.
var errDead = fmt.Errorf("%w: this process is dead", providers.ErrTransient)

// handle is a cloud in the hands of one process. While that is paused no call leaves it, and
// no answer comes in; once it is dead, none does any more. The judge hears of each call that
// changes something, as it leaves.
type handle struct {
	providers.Provider // of the process's way to the cloud
	process            *process
}

// call has a call leave the process, and its answer come in.
func call[T any](ctx context.Context, h handle, name string, judge func(), do func() (T, error)) (T, error) {
	var none T
	defer h.process.begins(name)()
	if err := h.process.pass(ctx, "before "+name); err != nil {
		return none, err
	}
	if judge != nil {
		judge()
	}
	answer, err := do()
	if late := h.process.pass(ctx, "after "+name); late != nil && errors.Is(late, errDead) {
		return none, late
	}
	return answer, err
}

// CreateNode implements providers.Nodes.
func (h handle) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	return call(ctx, h, "create", func() { h.process.world.judge.creates(h.process, h.Name(), spec) },
		func() (string, error) { return h.Provider.CreateNode(ctx, spec) })
}

// WaitNode implements providers.Nodes.
func (h handle) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	return call(ctx, h, "wait", nil, func() (providers.Instance, error) { return h.Provider.WaitNode(ctx, id) })
}

// DeleteNode implements providers.Nodes.
func (h handle) DeleteNode(ctx context.Context, id string) error {
	_, err := call(ctx, h, "delete", func() { h.process.world.judge.deletes(h.process, h.Name(), id) },
		func() (struct{}, error) { return struct{}{}, h.Provider.DeleteNode(ctx, id) })
	return err
}

// ListNodes implements providers.Nodes.
func (h handle) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	return call(ctx, h, "list", nil, func() ([]providers.NodeInfo, error) { return h.Provider.ListNodes(ctx) })
}

// Limits implements providers.Nodes.
func (h handle) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	return call(ctx, h, "limits", nil, func() (providers.Resources, error) {
		told, err := h.Provider.Limits(ctx, ours)
		if err == nil {
			h.process.world.judge.limitTold(h.Name(), told)
		}
		return told, err
	})
}
