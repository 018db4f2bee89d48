package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"

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

// PartNode gives the machine of a node, whose launch failed and whose lock is held, a record of its own in state
// deleting, in one transaction with also: external_id and launch_id move to it, and the node becomes a new launch
// without a machine. It returns that record, which no process has locked. After an error the node is as before;
// recipe.ErrConnectionLost reports that the transaction may be done.
func (st *Store) PartNode(ctx context.Context, lock *recipe.Held, n *Node, also ...recipe.Op) (*Node, error) {
	next, left := *n, *n
	next.ExternalID, next.Slot, next.DriverData, next.Asked, next.DeleteError = Value{}, Value{}, Value{}, 0, ""
	next.LaunchID = NewLaunchID()
	left.ID, left.Stat, left.AllocatedTo, left.Token, left.Asked = "", recipe.Stat{}, "", newToken(), 0
	begin(&left, EpochOf(st.now()))
	if err := Move(&left, NodeDeleting, ByUs, EpochOf(st.now())); err != nil {
		return nil, fmt.Errorf("part node %s: %w", n.ID, err)
	}
	save, err := SaveOp(&next)
	if err != nil {
		return nil, fmt.Errorf("part node: %w", err)
	}
	data, err := left.Encode()
	if err == nil {
		err = st.session.EnsurePath(ctx, LaunchPath(n.ID)) // it may be missing or empty
	}
	if err != nil {
		return nil, fmt.Errorf("part node %s: %w", n.ID, err)
	}
	ops := append([]recipe.Op{
		save, recipe.OpCreate(NodesRoot+"/", data, recipe.Sequential), recipe.OpSet(LaunchPath(n.ID), []byte(next.LaunchID), recipe.AnyVersion),
	}, also...)
	results, err := lock.Multi(ctx, ops...)
	if err != nil {
		return nil, fmt.Errorf("part node %s: %w", n.ID, notFound(err))
	}
	next.Stat, left.ID = results[0].Stat, path.Base(results[1].Path)
	*n = next
	return &left, nil
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
