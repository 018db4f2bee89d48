package zkmodel

import (
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// Images lists all images, by name.
func (m *Mirror) Images() []*Image {
	var list []*Image
	m.images.View(func(v recipe.View) {
		for _, name := range v.Children(ImagesRoot) {
			list = append(list, m.viewImage(v, name))
		}
	})
	m.trimImages(list)
	for _, image := range list {
		image.judge(m.verdictsOf(image.Name))
		image.judgeCanaries(m.canariesOf(image.Name))
		m.notePause(image)
	}
	return list
}

// ImageNames lists the names of all images.
func (m *Mirror) ImageNames() []string { return m.images.Children(ImagesRoot) }

// Image returns one image; an image without a znode has neither flags nor builds.
func (m *Mirror) Image(name string) *Image {
	var image *Image
	m.images.View(func(v recipe.View) { image = m.viewImage(v, name) })
	image.judge(m.verdictsOf(name))
	image.judgeCanaries(m.canariesOf(name))
	m.notePause(image)
	return image
}

// notePause notes who has paused an image.
func (m *Mirror) notePause(image *Image) {
	if image.Paused {
		entry, there := m.pausedBy.Get(PausesPath)
		image.pausedBy(DecodePauses(entry.Data, entry.Stat, there))
	}
}

// Judged reports whether people said anything of an image's builds.
func (m *Mirror) Judged(image string) bool {
	_, there := m.verdicts.Get(VerdictsPath(image))
	return there
}

// verdictsOf is what was said of an image's builds; nil when that is nothing.
func (m *Mirror) verdictsOf(image string) (*Verdicts, error) {
	entry, there := m.verdicts.Get(VerdictsPath(image))
	if !there || entry.Err != nil && entry.Data == nil {
		return nil, m.verdicts.Unread(VerdictsPath(image))
	}
	return DecodeVerdicts(image, entry.Data, entry.Stat)
}

// viewImage reads an image out of a view.
func (m *Mirror) viewImage(v recipe.View, name string) *Image {
	image := &Image{Name: name, Unread: v.Unread(ImagePath(name))}
	pause, paused := v.Get(PausePath(name))
	image.Paused, image.PausedSince, image.pauseFlag = paused, pause.Stat.Czxid, pause.Stat
	if flag, ok := v.Get(RequestBuildPath(name)); ok && flag.Err == nil {
		image.BuildRequested = &flag.Stat
	}
	lock, _ := v.Get(BuildsLockPath(name))
	image.BuildsLocked = lock.Err != nil || slices.ContainsFunc(v.Children(BuildsLockPath(name)), recipe.IsContender)
	for _, id := range v.Children(BuildsPath(name)) {
		if entry, ok := v.Get(BuildPath(name, id)); ok && id != lockName {
			image.Builds = append(image.Builds, &BuildTree{Build: m.viewBuild(name, id, entry), Uploads: m.viewUploads(v, name, id)})
		}
	}
	image.sortTree()
	if image.Unread != nil {
		image.Gaps = viewGaps(v, image)
	}
	return image
}

// viewGaps finds the lists of an image that could not be read.
func viewGaps(v recipe.View, image *Image) []Gap {
	var gaps []Gap
	note := func(build, provider string, paths ...string) {
		for _, p := range paths {
			if entry, ok := v.Get(p); ok && entry.Err != nil {
				gaps = append(gaps, Gap{build, provider, entry.Err})
				return
			}
		}
	}
	note("", "", ImagePath(image.Name), BuildsPath(image.Name))
	for _, b := range image.Builds {
		note(b.ID, "", b.Path(), ProvidersPath(image.Name, b.ID))
		for _, provider := range v.Children(ProvidersPath(image.Name, b.ID)) {
			note(b.ID, provider, path.Join(ProvidersPath(image.Name, b.ID), provider), UploadsPath(image.Name, b.ID, provider))
		}
	}
	return gaps
}

// broken is what is wrong with a record: that it could never be read, or what its
// data says. One that could be read before stands as it was then.
func broken(e recipe.Entry, inData error) error {
	if e.Err != nil && e.Data == nil {
		return fmt.Errorf("%w: %w", recipe.ErrUnread, e.Err)
	}
	return inData
}

// viewBuild reads a build. The caller has its own copy of what was decoded before, beside the Stat of
// now: that of a folder changes while its data does not.
func (m *Mirror) viewBuild(image, id string, entry recipe.Entry) *Build {
	if entry.Err != nil {
		b := DecodeBuild(image, id, entry.Data, entry.Stat)
		b.Broken = broken(entry, b.Broken)
		return b
	}
	b := *m.buildCache.get(BuildPath(image, id), stampOf(entry.Stat, false), func() *Build { return DecodeBuild(image, id, entry.Data, entry.Stat) })
	b.Stat = entry.Stat
	return &b
}

// viewUpload is viewBuild for an upload.
func (m *Mirror) viewUpload(key UploadKey, path string, entry recipe.Entry) *Upload {
	if entry.Err != nil {
		u := DecodeUpload(key, entry.Data, entry.Stat)
		u.Broken = broken(entry, u.Broken)
		return u
	}
	u := *m.uploadCache.get(path, stampOf(entry.Stat, false), func() *Upload { return DecodeUpload(key, entry.Data, entry.Stat) })
	u.Stat = entry.Stat
	return &u
}

// trimImages forgets the builds and uploads that are gone, of all images.
func (m *Mirror) trimImages(list []*Image) {
	var builds []*Build
	var uploads []*Upload
	for _, image := range list {
		for _, b := range image.Builds {
			builds = append(builds, b.Build)
			uploads = append(uploads, b.Uploads...)
		}
	}
	m.buildCache.trim(builds, (*Build).Path)
	m.uploadCache.trim(uploads, func(u *Upload) string { return u.Path() })
}

// viewUploads reads the uploads of a build out of a view.
func (m *Mirror) viewUploads(v recipe.View, image, build string) []*Upload {
	var list []*Upload
	v.Each(ProvidersPath(image, build), func(provider recipe.Child) {
		parent := UploadsPath(image, build, provider.Name()) + "/"
		provider.Below("images", func(c recipe.Child) {
			if id := c.Name(); id != lockName {
				key := UploadKey{Image: image, Build: build, Provider: provider.Name(), ID: id}
				list = append(list, m.viewUpload(key, parent+id, c.Entry()))
			}
		})
	})
	return list
}

// Nodes lists all nodes, by id.
func (m *Mirror) Nodes() []*Node {
	list := make([]*Node, 0, m.nodeCache.size())
	m.nodes.View(func(v recipe.View) {
		v.Each(NodesRoot, func(c recipe.Child) {
			list = append(list, m.viewNode(c.Name(), stamp{c.Mzxid(), c.Mtime(), c.Unread() || c.Has(lockName, recipe.IsContender)}, c.Entry))
		})
	})
	m.nodeCache.trim(list, func(n *Node) string { return n.ID })
	return list
}

// Node returns one node, or nil.
func (m *Mirror) Node(id string) *Node {
	var n *Node
	m.nodes.View(func(v recipe.View) {
		if entry, ok := v.Get(NodePath(id)); ok && !isLost(id, entry) {
			lock, _ := v.Get(LockPath(NodePath(id)))
			locked := entry.Err != nil || lock.Err != nil || slices.ContainsFunc(v.Children(LockPath(NodePath(id))), recipe.IsContender)
			n = m.viewNode(id, stampOf(entry.Stat, locked), func() recipe.Entry { return entry })
		}
	})
	return n
}

func (m *Mirror) viewNode(id string, s stamp, entry func() recipe.Entry) *Node {
	return m.nodeCache.get(id, s, func() *Node {
		e := entry()
		n := DecodeNode(id, e.Data, e.Stat)
		n.Broken = broken(e, n.Broken)
		n.Locked = s.locked
		return n
	})
}

// Requests lists all node requests in the order in which they are served.
func (m *Mirror) Requests() []*Request {
	list := make([]*Request, 0, m.requestCache.size())
	m.requests.View(func(v recipe.View) {
		v.Each(RequestsRoot, func(c recipe.Child) {
			list = append(list, m.viewRequest(c.Name(), stamp{c.Mzxid(), c.Mtime(), false}, c.Entry))
		})
	})
	m.requestCache.trim(list, func(r *Request) string { return r.ID })
	slices.SortFunc(list, CompareRequests)
	return list
}

// Request returns one node request, or nil.
func (m *Mirror) Request(id string) *Request {
	var r *Request
	m.requests.View(func(v recipe.View) {
		if entry, ok := v.Get(RequestPath(id)); ok {
			r = m.viewRequest(id, stampOf(entry.Stat, false), func() recipe.Entry { return entry })
		}
	})
	return r
}

func (m *Mirror) viewRequest(id string, s stamp, entry func() recipe.Entry) *Request {
	return m.requestCache.get(id, s, func() *Request {
		e := entry()
		r := DecodeRequest(id, e.Data, e.Stat)
		r.Broken = broken(e, r.Broken)
		return r
	})
}

// Components lists the running daemons or pools of a kind. They change seldom, and each
// decision asks for them, so the list is kept until something changes.
func (m *Mirror) Components(kind string) []*Component {
	var list []*Component
	m.components.View(func(v recipe.View) {
		list = m.componentLists.at(v.Version(), kind, func() []*Component { return m.viewComponents(v, kind) })
	})
	return slices.Clone(list)
}

func (m *Mirror) viewComponents(v recipe.View, kind string) []*Component {
	var list []*Component
	parent := ComponentsRoot + "/" + kind
	for _, name := range v.Children(parent) {
		full := path.Join(parent, name)
		if entry, ok := v.Get(full); ok {
			list = append(list, m.componentCache.get(full, stampOf(entry.Stat, false), func() *Component {
				c := DecodeComponent(name, entry.Data)
				c.Broken = broken(entry, c.Broken)
				if c.Broken != nil {
					c.Kind = kind
				}
				return c
			}))
		}
	}
	return list
}
