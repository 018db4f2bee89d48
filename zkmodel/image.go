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
	PausedSince    int64        // the transaction that paused it; 0 when it is not, or nobody may know
	PausedBy       *FlagPause   // who paused it, why and until when; nil where nobody said so
	BuildRequested *recipe.Stat // of the flag that asks for a build; nil when nobody asks
	BuildsLocked   bool         // a process holds or wants the build lock
	Builds         []*BuildTree // in the order of their creation
	// Unread says what of the image could not be read, and why; nil when all was. What
	// is missing here may then be in the tree.
	Unread error
	// Gaps are the lists of records among that; a record itself says so, see Broken.
	Gaps []Gap
	// Verdicts are what people said of the builds; nil when that is nothing, or cannot be
	// read, which Unread says.
	Verdicts *Verdicts
	// Canaries are how its builds come into service, a provider each, where that was asked for
	// when the image was read.
	Canaries []*Canary

	pauseFlag recipe.Stat
}

// PauseText says for people who has paused the image by its flag, why, and what ends that; ""
// when nobody has.
func (i *Image) PauseText() string {
	switch {
	case !i.Paused:
		return ""
	case i.PausedBy == nil:
		return "paused by an operator (image-unpause ends it)"
	}
	return i.PausedBy.Text()
}

// Gap is a list of records that could not be read: that of the uploads of a build to a
// provider, of a build to any provider, or, without a build, of all builds.
type Gap struct {
	Build, Provider string
	Err             error
}

// BuildTree is one build with its uploads.
type BuildTree struct {
	*Build
	Uploads []*Upload // by provider, then in the order of their creation
}

// Newest reports whether an upload is the newest to its provider: the one in progress, if one
// is.
func (b *BuildTree) Newest(u *Upload) bool {
	return !slices.ContainsFunc(b.Uploads, func(v *Upload) bool { return v.Provider == u.Provider && v.Stat.Czxid > u.Stat.Czxid })
}

// underWay is the id of the build that is being made; "" when none is. A younger one
// shows that the maker of a build is gone, but for a record that nobody can read.
func (i *Image) underWay() string {
	for _, b := range slices.Backward(i.Builds) {
		if i.BuildsLocked && b.State == BuildBuilding {
			return b.ID
		}
		if b.Broken == nil {
			break
		}
	}
	return ""
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
