package launcher

import "poolkeeper/zkmodel"

// Tree is the launcher's view of images, nodes, requests and components, for
// those who show it.
func (l *Launcher) Tree() *zkmodel.Mirror { return l.mirror }
