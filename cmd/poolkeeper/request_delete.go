package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// requestDeleteCmd gives requests up.
type requestDeleteCmd struct {
	IDs []string `arg:"" name:"id" help:"The requests, as request-list shows them."`
}

// Run is the command.
func (c requestDeleteCmd) Run(ctx context.Context, a *app) error {
	return a.each(ctx, c.IDs, deleteRequest)
}

// deleteRequest deletes one request, whoever made it. Its nodes are others' then.
func deleteRequest(ctx context.Context, store *zkmodel.Store, id string) error {
	if err := configs.CheckName("request", id); err != nil {
		return err
	}
	if _, err := store.Request(ctx, id); err != nil {
		if errors.Is(err, zkmodel.ErrNotFound) {
			return errors.New("Request id " + id + " not found") // as with nodes
		}
		return err
	}
	return store.DeleteRequest(ctx, id)
}

// forgetRequest deletes a request of somebody's without a Zuul once the last of
// its nodes is to be deleted: nobody else would.
func forgetRequest(ctx context.Context, store *zkmodel.Store, id string) error {
	if id == "" {
		return nil
	}
	r, err := store.Request(ctx, id)
	if errors.Is(err, zkmodel.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(r.Requestor, requestorMark) || r.State != zkmodel.RequestFulfilled {
		return nil
	}
	if slices.ContainsFunc(r.Nodes, func(node string) bool { return stays(ctx, store, node) }) {
		return nil
	}
	return store.DeleteRequest(ctx, id)
}

// stays tells whether a node is there and not about to be deleted.
func stays(ctx context.Context, store *zkmodel.Store, id string) bool {
	n, err := store.Node(ctx, id)
	if err != nil {
		return !errors.Is(err, zkmodel.ErrNotFound)
	}
	return n.State != zkmodel.NodeDeleting && n.State != zkmodel.NodeDeleted
}
