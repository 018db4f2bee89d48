package agent

import (
	"context"

	"poolkeeper/configs/guard"
	"poolkeeper/zkmodel"
)

// seer is a daemon that follows the tree.
type seer interface{ Tree() *zkmodel.Mirror }

// lives is what there is in the tree, as far as the daemon follows it. A builder
// follows no nodes: nothing that it does depends on them.
func (k *keeper) lives(ctx context.Context) guard.Lives {
	d, ok := k.d.(seer)
	if !ok {
		return guard.Lives{Unknown: "the daemon does not follow the tree"}
	}
	tree := d.Tree()
	ctx, cancel := context.WithTimeout(ctx, keeperWait)
	defer cancel()
	err := tree.WaitSynced(ctx)
	if err == nil {
		err = tree.Barrier(ctx)
	}
	if err == nil {
		err = tree.Listed(zkmodel.ImagesRoot)
	}
	if err == nil && k.key.Kind == kindLauncher {
		err = tree.Listed(zkmodel.NodesRoot)
	}
	if err != nil {
		return guard.Lives{Unknown: "nobody can tell what there is of it: " + err.Error()}
	}
	l := guard.Lives{Uploads: readyUploads(tree.Images())}
	if k.key.Kind == kindLauncher {
		l.Nodes = busyNodes(tree.Nodes())
	}
	return l
}

// readyUploads are the uploads that can be booted, or of which nobody knows.
func readyUploads(images []*zkmodel.Image) []guard.Upload {
	var list []guard.Upload
	for _, image := range images {
		if image.Unread != nil {
			list = append(list, guard.Upload{Image: image.Name})
		}
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if u.Unknown() || u.Broken == nil && u.State == zkmodel.UploadReady {
					list = append(list, guard.Upload{Provider: u.Provider, Image: image.Name})
				}
			}
		}
	}
	return list
}

// busyNodes are those that are not idle and ready, or of which nobody knows.
func busyNodes(nodes []*zkmodel.Node) []guard.Node {
	var list []guard.Node
	for _, n := range nodes {
		idle := n.State == zkmodel.NodeReady && n.AllocatedTo == "" && !n.Locked
		switch {
		case n.Unknown():
			list = append(list, guard.Node{})
		case n.Broken == nil && !idle && n.Provider != "": // "" would be any
			list = append(list, guard.Node{Provider: n.Provider, Pool: n.Pool, Labels: n.Type})
		}
	}
	return list
}
