package launch

import (
	"cmp"
	"fmt"

	"poolkeeper/launcher/node"
	"poolkeeper/launcher/pool"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// spec is what a provider needs to know of a node, but for the image.
func (l *Launches) spec(o *Order, n *Run, image pool.Image) providers.NodeSpec {
	meta := node.Metadata(n.Node, l.Finder.Site)
	for name, format := range o.Pool.Labels[n.Place.Label].DynamicProperties {
		if _, ours := meta[name]; !ours {
			meta[name] = node.Fill(format, o.Request)
		}
	}
	return providers.NodeSpec{
		NodeID: n.Node.ID, Hostname: "np" + n.Node.ID, Pool: o.Pool.Section.Name, Label: n.Place.Label,
		AZ: n.Node.AZ, Username: image.Username, Metadata: meta,
	}
}

// choose picks the image and writes into the node what it boots from and how it
// is reached. The image is that of an upload, or, without one, of what serves.
func (l *Launches) choose(o *Order, n *Run, upload *zkmodel.Upload) (providers.NodeSpec, error) {
	image, err := o.Pool.Image(l.Config, n.Place.Label)
	if err != nil {
		return providers.NodeSpec{}, err
	}
	spec := l.spec(o, n, image)
	n.Node.Attributes = zkmodel.ObjectValue(o.Pool.Section.NodeAttributes) // without those of what an attempt before stood on
	n.Node.ImageID = image.CloudImage
	if image.DiskImage != "" {
		if upload == nil {
			upload = l.trust().Choose(image.DiskImage, o.Pool.Provider.Name)
		}
		if upload == nil {
			return spec, fmt.Errorf("choose image %s in provider %s: %w", image.DiskImage, o.Pool.Provider.Name, pool.ErrNoImage)
		}
		n.Node.ImageID = upload.Path()
		spec.ImageID, spec.Format = upload.ExternalID.Text(), upload.Format
	}
	n.Node.Username, n.Node.PythonPath, n.Node.ShellType = image.Username, image.PythonPath, image.ShellType
	n.Node.ConnectionType = image.Connection
	n.Node.ConnectionPort = zkmodel.IntValue(cmp.Or(image.Port, node.DefaultPort(image.Connection)))
	return spec, nil
}
