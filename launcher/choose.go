package launcher

import (
	"cmp"
	"encoding/json"
	"fmt"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// Where connection types listen.
const (
	sshPort   = 22
	winrmPort = 5986
)

// chosen is what a node boots from by its record.
func (s *shift) chosen(h *handling, n *handled) (providers.NodeSpec, error) {
	image, err := h.pool.image(s.cfg, n.place.Label)
	if err != nil {
		return providers.NodeSpec{}, err
	}
	spec := s.spec(h, n, image)
	if image.diskImage == "" {
		return spec, nil
	}
	key, err := zkmodel.ParseUploadPath(n.node.ImageID)
	if err != nil {
		return spec, fmt.Errorf("%w: %w", ErrNoImage, err)
	}
	for _, b := range s.mirror.Image(key.Image).Builds {
		for _, u := range b.Uploads {
			if u.UploadKey == key && u.Broken == nil {
				spec.ImageID, spec.Format = u.ExternalID.Text(), u.Format
				return spec, nil
			}
		}
	}
	return spec, fmt.Errorf("find image %s again: %w", n.node.ImageID, ErrNoImage)
}

// spec is what a provider needs to know of a node, but for the image.
func (s *shift) spec(h *handling, n *handled, image imageConfig) providers.NodeSpec {
	meta := map[string]string{}
	for name, format := range h.pool.labels[n.place.Label].DynamicProperties {
		meta[name] = fill(format, h.request)
	}
	meta[providers.MetaNode] = n.node.ID
	meta[providers.MetaPool] = h.pool.config.Name
	meta[providers.MetaProvider] = h.pool.provider.Name
	meta[providers.MetaSite] = s.site
	return providers.NodeSpec{
		NodeID: n.node.ID, Hostname: "np" + n.node.ID, Pool: h.pool.config.Name, Label: n.place.Label,
		AZ: n.node.AZ, Username: image.username, Metadata: meta,
	}
}

// choose picks the image and writes into the node what it boots from and how it
// is reached.
func (s *shift) choose(h *handling, n *handled) (providers.NodeSpec, error) {
	image, err := h.pool.image(s.cfg, n.place.Label)
	if err != nil {
		return providers.NodeSpec{}, err
	}
	spec := s.spec(h, n, image)
	n.node.ImageID = image.cloudImage
	if image.diskImage != "" {
		upload := trusted([]*zkmodel.Image{s.mirror.Image(image.diskImage)}, image.diskImage, h.pool.provider.Name, s.doubted)
		if upload == nil {
			return spec, fmt.Errorf("choose image %s in provider %s: %w", image.diskImage, h.pool.provider.Name, ErrNoImage)
		}
		n.node.ImageID = upload.Path()
		spec.ImageID, spec.Format = upload.ExternalID.Text(), upload.Format
	}
	n.node.Username, n.node.PythonPath, n.node.ShellType = image.username, image.pythonPath, image.shellType
	n.node.ConnectionType = image.connection
	n.node.ConnectionPort = zkmodel.IntValue(cmp.Or(image.port, defaultPort(image.connection)))
	return spec, nil
}

// defaultPort is where a connection type listens.
func defaultPort(connection string) int {
	if connection == "winrm" {
		return winrmPort
	}
	return sshPort
}

// describe copies what the cloud says of a running machine into its record.
func describe(n *zkmodel.Node, i providers.Instance) {
	n.Cloud, n.Region, n.AZ, n.HostID = i.Cloud, i.Region, i.AZ, i.HostID
	n.InterfaceIP, n.PublicIPv4, n.PublicIPv6, n.PrivateIPv4 = i.InterfaceIP, i.PublicIPv4, i.PublicIPv6, i.PrivateIPv4
	if i.Port != 0 {
		n.ConnectionPort = zkmodel.IntValue(i.Port)
	}
	n.Username = cmp.Or(i.Username, n.Username)
	n.PythonPath = cmp.Or(i.PythonPath, n.PythonPath)
	n.ShellType = cmp.Or(i.ShellType, n.ShellType)
}

// attributes is a pool's node-attributes as records hold them.
func attributes(set map[string]any) zkmodel.Value {
	if len(set) == 0 {
		return zkmodel.Value{}
	}
	text, err := json.Marshal(set)
	if err != nil { // a configuration that was read from YAML holds nothing odd
		return zkmodel.Value{}
	}
	return zkmodel.JSONValue(text)
}
