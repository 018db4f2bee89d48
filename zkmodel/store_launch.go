package zkmodel

import (
	"context"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/recipe"
)

// LaunchesRoot holds the launch ids of nodes, by node id: Nodepool, when it rewrites a
// node's record, drops the key that it does not know.
const LaunchesRoot = OwnRoot + "/launches"

// LaunchPath holds the launch id of one node.
func LaunchPath(node string) string { return LaunchesRoot + "/" + node }

// NewLaunchID makes a launch id that no other launch has.
func NewLaunchID() string { return newToken() }

// LaunchOf is the launch id of a node, "" when nobody knows it: of a node that
// Nodepool or an older release launched. What stands below LaunchesRoot counts only if
// it is younger than the node's record: the tree may have been wiped in between.
func (st *Store) LaunchOf(ctx context.Context, n *Node) (string, error) {
	if n.LaunchID != "" {
		return n.LaunchID, nil
	}
	data, stat, err := st.session.Get(ctx, LaunchPath(n.ID))
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read the launch of node %s: %w", n.ID, err)
	case stat.Czxid < n.Stat.Czxid:
		return "", nil
	}
	return string(data), nil
}

// launchOps are the writes that keep the launch ids of new nodes.
func launchOps(nodes []*Node) []recipe.Op {
	var ops []recipe.Op
	for _, n := range nodes {
		if n.LaunchID != "" {
			ops = append(ops, recipe.OpCreate(LaunchPath(n.ID), []byte(n.LaunchID), recipe.Persistent))
		}
	}
	return ops
}

// makeRoomForLaunches prepares LaunchesRoot for new nodes after a write that failed:
// the folder may be missing, or hold what earlier nodes with the same ids have left.
func (st *Store) makeRoomForLaunches(ctx context.Context, nodes []*Node) error {
	if err := st.session.EnsurePath(ctx, LaunchesRoot); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := st.session.Delete(ctx, LaunchPath(n.ID), recipe.AnyVersion); err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
	return nil
}
