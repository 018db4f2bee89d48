package launcher

import (
	"cmp"
	"fmt"

	"poolkeeper/launcher/node"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// spec is what a provider needs to know of a node, but for the image.
func (s *session) spec(h *requestRun, n *nodeRun, image imageConfig) providers.NodeSpec {
	meta := map[string]string{}
	for name, format := range h.pool.labels[n.place.Label].DynamicProperties {
		meta[name] = node.Fill(format, h.request)
	}
	meta[providers.MetaNode] = n.node.ID
	meta[providers.MetaPool] = h.pool.config.Name
	meta[providers.MetaProvider] = h.pool.provider.Name
	meta[providers.MetaSite] = s.site
	if n.node.LaunchID != "" { // one that an older release began has none
		meta[providers.MetaLaunch] = n.node.LaunchID
	}
	return providers.NodeSpec{
		NodeID: n.node.ID, Hostname: "np" + n.node.ID, Pool: h.pool.config.Name, Label: n.place.Label,
		AZ: n.node.AZ, Username: image.username, Metadata: meta,
	}
}

// choose picks the image and writes into the node what it boots from and how it
// is reached.
func (s *session) choose(h *requestRun, n *nodeRun) (providers.NodeSpec, error) {
	image, err := h.pool.image(s.cfg, n.place.Label)
	if err != nil {
		return providers.NodeSpec{}, err
	}
	spec := s.spec(h, n, image)
	n.node.ImageID = image.cloudImage
	if image.diskImage != "" {
		upload := s.trust().Choose(image.diskImage, h.pool.provider.Name)
		if upload == nil {
			return spec, fmt.Errorf("choose image %s in provider %s: %w", image.diskImage, h.pool.provider.Name, ErrNoImage)
		}
		n.node.ImageID = upload.Path()
		spec.ImageID, spec.Format = upload.ExternalID.Text(), upload.Format
	}
	n.node.Username, n.node.PythonPath, n.node.ShellType = image.username, image.pythonPath, image.shellType
	n.node.ConnectionType = image.connection
	n.node.ConnectionPort = zkmodel.IntValue(cmp.Or(image.port, node.DefaultPort(image.connection)))
	return spec, nil
}
