package launcher

import (
	"cmp"
	"fmt"

	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// spec is what a provider needs to know of a node, but for the image.
func (s *session) spec(h *requestRun, n *nodeRun, image pool.Image) providers.NodeSpec {
	meta := map[string]string{}
	for name, format := range h.pool.Labels[n.place.Label].DynamicProperties {
		meta[name] = node.Fill(format, h.request)
	}
	meta[providers.MetaNode] = n.node.ID
	meta[providers.MetaPool] = h.pool.Section.Name
	meta[providers.MetaProvider] = h.pool.Provider.Name
	meta[providers.MetaSite] = s.finder.Site
	if n.node.LaunchID != "" { // one that an older release began has none
		meta[providers.MetaLaunch] = n.node.LaunchID
	}
	return providers.NodeSpec{
		NodeID: n.node.ID, Hostname: "np" + n.node.ID, Pool: h.pool.Section.Name, Label: n.place.Label,
		AZ: n.node.AZ, Username: image.Username, Metadata: meta,
	}
}

// choose picks the image and writes into the node what it boots from and how it
// is reached.
func (s *session) choose(h *requestRun, n *nodeRun) (providers.NodeSpec, error) {
	image, err := h.pool.Image(s.cfg, n.place.Label)
	if err != nil {
		return providers.NodeSpec{}, err
	}
	spec := s.spec(h, n, image)
	n.node.ImageID = image.CloudImage
	if image.DiskImage != "" {
		upload := s.trust().Choose(image.DiskImage, h.pool.Provider.Name)
		if upload == nil {
			return spec, fmt.Errorf("choose image %s in provider %s: %w", image.DiskImage, h.pool.Provider.Name, pool.ErrNoImage)
		}
		n.node.ImageID = upload.Path()
		spec.ImageID, spec.Format = upload.ExternalID.Text(), upload.Format
	}
	n.node.Username, n.node.PythonPath, n.node.ShellType = image.Username, image.PythonPath, image.ShellType
	n.node.ConnectionType = image.Connection
	n.node.ConnectionPort = zkmodel.IntValue(cmp.Or(image.Port, node.DefaultPort(image.Connection)))
	return spec, nil
}
