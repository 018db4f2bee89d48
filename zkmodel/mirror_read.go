package zkmodel

import (
	"path"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// Images lists all images, by name.
func (m *Mirror) Images() []*Image {
	var list []*Image
	m.images.View(func(v recipe.View) {
		for _, name := range v.Children(ImagesRoot) {
			list = append(list, viewImage(v, name))
		}
	})
	return list
}

// ImageNames lists the names of all images.
func (m *Mirror) ImageNames() []string { return m.images.Children(ImagesRoot) }

// Image returns one image; an image without a znode has neither flags nor builds.
func (m *Mirror) Image(name string) *Image {
	var image *Image
	m.images.View(func(v recipe.View) { image = viewImage(v, name) })
	return image
}

// viewImage reads an image out of a view.
func viewImage(v recipe.View, name string) *Image {
	image := &Image{Name: name}
	_, image.Paused = v.Get(PausePath(name))
	if flag, ok := v.Get(RequestBuildPath(name)); ok {
		image.BuildRequested = &flag.Stat
	}
	image.BuildsLocked = slices.ContainsFunc(v.Children(BuildsLockPath(name)), recipe.IsContender)
	for _, id := range v.Children(BuildsPath(name)) {
		if entry, ok := v.Get(BuildPath(name, id)); ok && id != lockName {
			tree := &BuildTree{Build: DecodeBuild(name, id, entry.Data, entry.Stat)}
			tree.Uploads = viewUploads(v, name, id)
			image.Builds = append(image.Builds, tree)
		}
	}
	image.sortTree()
	return image
}

// viewUploads reads the uploads of a build out of a view.
func viewUploads(v recipe.View, image, build string) []*Upload {
	var list []*Upload
	for _, provider := range v.Children(ProvidersPath(image, build)) {
		for _, id := range v.Children(UploadsPath(image, build, provider)) {
			key := UploadKey{Image: image, Build: build, Provider: provider, ID: id}
			if entry, ok := v.Get(key.Path()); ok && id != lockName {
				list = append(list, DecodeUpload(key, entry.Data, entry.Stat))
			}
		}
	}
	return list
}

// Nodes lists all nodes, by id.
func (m *Mirror) Nodes() []*Node {
	var list []*Node
	m.nodes.View(func(v recipe.View) {
		ids := v.Children(NodesRoot)
		list = make([]*Node, 0, len(ids))
		for _, id := range ids {
			if n := m.viewNode(v, id); n != nil {
				list = append(list, n)
			}
		}
	})
	m.nodeCache.trim(list, func(n *Node) string { return n.ID })
	return list
}

// Node returns one node, or nil.
func (m *Mirror) Node(id string) *Node {
	var n *Node
	m.nodes.View(func(v recipe.View) { n = m.viewNode(v, id) })
	return n
}

func (m *Mirror) viewNode(v recipe.View, id string) *Node {
	entry, ok := v.Get(NodePath(id))
	if !ok {
		return nil
	}
	locked := slices.ContainsFunc(v.Children(LockPath(NodePath(id))), recipe.IsContender)
	return m.nodeCache.get(id, stamp{entry.Stat.Mzxid, locked}, func() *Node {
		n := DecodeNode(id, entry.Data, entry.Stat)
		n.Locked = locked
		return n
	})
}

// Requests lists all node requests in the order in which they are served.
func (m *Mirror) Requests() []*Request {
	var list []*Request
	m.requests.View(func(v recipe.View) {
		for _, id := range v.Children(RequestsRoot) {
			if r := m.viewRequest(v, id); r != nil {
				list = append(list, r)
			}
		}
	})
	m.requestCache.trim(list, func(r *Request) string { return r.ID })
	slices.SortFunc(list, CompareRequests)
	return list
}

// Request returns one node request, or nil.
func (m *Mirror) Request(id string) *Request {
	var r *Request
	m.requests.View(func(v recipe.View) { r = m.viewRequest(v, id) })
	return r
}

func (m *Mirror) viewRequest(v recipe.View, id string) *Request {
	entry, ok := v.Get(RequestPath(id))
	if !ok {
		return nil
	}
	return m.requestCache.get(id, stamp{mzxid: entry.Stat.Mzxid}, func() *Request {
		return DecodeRequest(id, entry.Data, entry.Stat)
	})
}

// Components lists the running daemons or pools of a kind.
func (m *Mirror) Components(kind string) []*Component {
	var list []*Component
	parent := ComponentsRoot + "/" + kind
	m.components.View(func(v recipe.View) {
		for _, name := range v.Children(parent) {
			full := path.Join(parent, name)
			if entry, ok := v.Get(full); ok {
				list = append(list, m.componentCache.get(full, stamp{mzxid: entry.Stat.Mzxid}, func() *Component {
					return DecodeComponent(name, entry.Data)
				}))
			}
		}
	})
	return list
}
