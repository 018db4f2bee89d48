package bootable

import (
	"slices"

	"poolkeeper/zkmodel"
)

// Judged says of idle nodes, by id, what was said of the build that they booted from,
// where that is not to serve any more; nil where nothing was said of any build. A node
// that is in use, or given to a request, is none.
func Judged(images []*zkmodel.Image, nodes []*zkmodel.Node) map[string]string {
	said := slices.ContainsFunc(images, func(i *zkmodel.Image) bool { return i.Verdicts != nil && len(i.Verdicts.List) > 0 })
	if !said {
		return nil
	}
	judged := map[string]string{}
	texts := map[string]string{} // by upload: many nodes have the same
	for _, n := range nodes {
		if n.Broken != nil || n.State != zkmodel.NodeReady || n.AllocatedTo != "" || n.Locked {
			continue
		}
		text, known := texts[n.ImageID]
		if !known {
			if v := zkmodel.VerdictOn(images, n.ImageID); v != nil {
				text = v.Text()
			}
			texts[n.ImageID] = text
		}
		if text != "" {
			judged[n.ID] = text
		}
	}
	return judged
}
