package zkmodel

import (
	"errors"
	"fmt"

	"poolkeeper/zkmodel/recipe"
)

// leftover reports whether a znode is what a lock of kazoo leaves that came too late:
// it makes the record anew, empty, when it has just been deleted. Such a znode never
// held anything. One that was emptied, holds what cannot be decoded, or could not be
// read, is a record of which nobody knows what it stands for.
func leftover(broken error, st recipe.Stat) bool {
	return broken != nil && !errors.Is(broken, recipe.ErrUnread) && st.Czxid != 0 && st.DataLength == 0 && st.Version == 0
}

// Leftover reports whether the record never held anything: a lock that came too late
// has made it. See Unknown.
func (b *Build) Leftover() bool { return leftover(b.Broken, b.Stat) }

// Leftover is as Build.Leftover.
func (u *Upload) Leftover() bool { return leftover(u.Broken, u.Stat) }

// Leftover is as Build.Leftover.
func (n *Node) Leftover() bool { return leftover(n.Broken, n.Stat) }

// Unknown reports whether there is something of which we cannot tell what it is: it
// takes its place, and nothing of it is deleted unless an operator says so.
func (b *Build) Unknown() bool { return b.Broken != nil && !b.Leftover() }

// Unknown is as Build.Unknown.
func (u *Upload) Unknown() bool { return u.Broken != nil && !u.Leftover() }

// UnreadNodes says of node records that cannot be read that they take room, and how to remove them.
func UnreadNodes(ids []string) string {
	if len(ids) == 1 {
		return "the record of node " + ids[0] + " cannot be read, so it counts as a node: to remove the record: poolkeeper node-delete --broken " + ids[0]
	}
	return fmt.Sprintf("the records of %d nodes cannot be read, so each counts as a node: to remove the first: poolkeeper node-delete --broken %s", len(ids), ids[0])
}

// Unknown is as Build.Unknown.
func (n *Node) Unknown() bool { return n.Broken != nil && !n.Leftover() }
