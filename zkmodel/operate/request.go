package operate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"poolkeeper/zkmodel"
)

// RequestorMark begins the names of requestors that are people with this program.
const RequestorMark = zkmodel.RequestorMark

// DeleteRequest deletes a request, also one that another made. Its nodes are others' then.
//
// Errors: zkmodel.ErrNotFound.
func (o *Operator) DeleteRequest(ctx context.Context, id string) error {
	r, err := o.store.Request(ctx, id)
	if err != nil {
		return err
	}
	return o.store.EraseRequest(ctx, r)
}

// forgetRequest deletes a request that a person made once the last of
// its nodes is to be deleted: nobody else would.
func (o *Operator) forgetRequest(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	r, err := o.store.Request(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(r.Requestor, RequestorMark) || r.State != zkmodel.RequestFulfilled {
		return nil
	}
	if slices.ContainsFunc(r.Nodes, func(node string) bool { return o.stays(ctx, node) }) {
		return nil
	}
	return o.store.DeleteRequest(ctx, id)
}

// stays reports whether a node is there and not about to be deleted.
func (o *Operator) stays(ctx context.Context, id string) bool {
	n, err := o.store.Node(ctx, id)
	if err != nil {
		return !errors.Is(err, zkmodel.ErrNotFound)
	}
	return n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted
}
