package zkmodel

import (
	"cmp"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// Image is all that the tree holds of one image: its flags, its builds and
// their uploads.
type Image struct {
	Name           string
	Paused         bool
	BuildRequested *recipe.Stat // of the flag that asks for a build; nil when nobody asks
	BuildsLocked   bool         // somebody holds or wants the build lock
	Builds         []*BuildTree // in the order of their creation
}

// BuildTree is one build with its uploads.
type BuildTree struct {
	*Build
	Uploads []*Upload // by provider, then in the order of their creation
}

// sortTree brings builds and uploads into order. Creation counts, as ids that
// Nodepool made are random.
func (i *Image) sortTree() {
	slices.SortFunc(i.Builds, func(a, b *BuildTree) int {
		return cmp.Or(cmp.Compare(a.Stat.Czxid, b.Stat.Czxid), cmp.Compare(a.ID, b.ID))
	})
	for _, b := range i.Builds {
		slices.SortFunc(b.Uploads, func(x, y *Upload) int {
			return cmp.Or(
				cmp.Compare(x.Provider, y.Provider),
				cmp.Compare(x.Stat.Czxid, y.Stat.Czxid),
				cmp.Compare(x.ID, y.ID))
		})
	}
}
