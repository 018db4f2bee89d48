// Package nodes has the commands about nodes and node requests.
package nodes

import (
	"context"
	"errors"
	"path"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// notThere keeps the message that scripts know, and adds which node may have been meant.
func notThere(ctx context.Context, store *zkmodel.Store, err error, id string) error {
	if errors.Is(err, zkmodel.ErrNotFound) {
		return errors.New("Node id " + id + " not found" + near(ctx, store, zkmodel.NodePath(id))) // Nodepool's words
	}
	return err
}

// near tells which record may have been meant by the path of one that is not there.
func near(ctx context.Context, store *zkmodel.Store, at string) string {
	names, err := store.Session().Children(ctx, path.Dir(at))
	if err != nil {
		return ""
	}
	return configs.Similar(path.Base(at), names)
}
