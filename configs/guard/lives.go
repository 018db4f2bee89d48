package guard

import "slices"

// Lives is what there is of a configuration's items in the tree.
type Lives struct {
	// Unknown is why nobody can tell what there is; then there may be anything.
	Unknown string
	Nodes   []Node   // but for the idle ready ones
	Uploads []Upload // ready ones
}

// Node is one node that is not idle: it is being made, in use, held or deleted. One
// whose record cannot be read has no provider, and may be of any.
type Node struct {
	Provider, Pool string
	Labels         []string
}

// Upload is an image in a provider that is ready to be booted. Of one that cannot be
// read the provider is "", which stands for any.
type Upload struct{ Provider, Image string }

// nodes says what nodes there are of a provider, a pool or a label; "" stands for
// any.
func (l Lives) nodes(provider, pool, label string) string {
	if l.Unknown != "" {
		return l.Unknown
	}
	for _, n := range l.Nodes {
		ours := (provider == "" || n.Provider == provider) && (pool == "" || n.Pool == pool) &&
			(label == "" || slices.Contains(n.Labels, label))
		if ours || n.Provider == "" {
			return "it has nodes that are not idle"
		}
	}
	return ""
}

// ready says what uploads of an image there are in a provider; "" stands for any.
func (l Lives) ready(provider, image string) string {
	if l.Unknown != "" {
		return l.Unknown
	}
	for _, u := range l.Uploads {
		if (provider == "" || u.Provider == provider || u.Provider == "") && u.Image == image {
			return "it has ready uploads, and nothing replaces them"
		}
	}
	return ""
}

// has tells whether an image can be booted in a provider for certain.
func (l Lives) has(provider, image string) bool {
	return l.Unknown == "" && slices.Contains(l.Uploads, Upload{provider, image})
}
