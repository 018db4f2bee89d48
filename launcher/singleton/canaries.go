package singleton

import (
	"context"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel"
)

// leftPasses is how many resyncs a record of canaries must have been left behind before it
// goes: launchers that are restarted, one or all, come back in less.
const leftPasses = 10

// CanaryView is what LeftCanaries sees of the tree.
type CanaryView interface {
	Components(kind string) []*zkmodel.Component
	Image(name string) *zkmodel.Image
}

// CanaryRecords are the records of how builds come into service.
type CanaryRecords interface {
	CanaryImages(ctx context.Context) ([][2]string, error)
	ForgetCanaries(ctx context.Context, provider, image string) error
}

// LeftCanaries removes how builds of images came into service that no launcher has a canary of
// any more: the key was taken out of the configuration, and perhaps all daemons were restarted, so
// that nobody follows these records. What a mistake leaves out of the configuration keeps its record:
// once it is mended, the canary would be taken for what serves.
type LeftCanaries struct {
	view CanaryView
	// frozen says why an image is left out in a provider, "" when it is not.
	frozen func(provider, image string) string
	log    hclog.Logger
	now    func() time.Time
	// after is for how long a record must have been left.
	after time.Duration
	left  map[[2]string]time.Time // since when
	none  bool                    // there is nothing, and nobody makes any without being seen
}

// NewLeftCanaries makes one for the time of one election; resync is the time between passes.
func NewLeftCanaries(
	view CanaryView, frozen func(provider, image string) string, resync time.Duration, log hclog.Logger, now func() time.Time,
) *LeftCanaries {
	return &LeftCanaries{view: view, frozen: frozen, log: log, now: now, after: leftPasses * resync, left: map[[2]string]time.Time{}}
}

// Pass looks at all records once. Where there are none, and no launcher has a canary, they are looked
// for in the first pass alone.
func (l *LeftCanaries) Pass(ctx context.Context, records CanaryRecords) error {
	pools := l.view.Components(zkmodel.KindPool)
	if l.none && !slices.ContainsFunc(pools, func(c *zkmodel.Component) bool { return slices.Contains(c.Knows, zkmodel.KnowsCanaries) }) {
		return nil
	}
	all, err := records.CanaryImages(ctx)
	if err != nil {
		return err
	}
	l.none = len(all) == 0
	left := map[[2]string]time.Time{}
	for _, at := range all {
		if !l.isLeft(pools, at[0], at[1]) {
			continue
		}
		if left[at] = l.left[at]; left[at].IsZero() {
			left[at] = l.now()
		}
	}
	l.left = left
	for at, since := range left {
		if l.now().Sub(since) < l.after {
			continue
		}
		if err := records.ForgetCanaries(ctx, at[0], at[1]); err != nil {
			return err
		}
		l.log.Info("No launcher has a canary of the image any more; what was known of it is forgotten", "image", at[1], "provider", at[0])
	}
	return nil
}

// isLeft reports whether nobody needs a record: launchers of the provider are there, and none has a
// canary of the image; or none is there, and nothing of the image is.
func (l *LeftCanaries) isLeft(pools []*zkmodel.Component, provider, image string) bool {
	if zkmodel.CanaryIsOf(pools, provider, image) || l.frozen(provider, image) != "" {
		return false
	}
	if slices.ContainsFunc(pools, func(c *zkmodel.Component) bool { return c.ProviderName == provider }) {
		return true
	}
	i := l.view.Image(image)
	return i.Unread == nil && !slices.ContainsFunc(i.Builds, func(b *zkmodel.BuildTree) bool {
		return b.Broken != nil || slices.ContainsFunc(b.Uploads, func(u *zkmodel.Upload) bool { return u.Provider == provider })
	})
}
