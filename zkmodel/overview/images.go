package overview

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/attention"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/rebuild"
)

// Freshness says how what serves in a provider compares with the image's schedule.
type Freshness string

// The states of an image in a provider.
const (
	Fresh   Freshness = "fresh"
	Stale   Freshness = "stale"   // a newer build should serve by now
	Missing Freshness = "missing" // nothing serves
	Waits   Freshness = "paused"  // nothing serves, as the configuration pauses uploads there
	Unknown Freshness = "unknown" // part of the image cannot be read
)

// grace is how much later than due a new build may serve: the alarm PoolkeeperImageStale
// waits as long. patience is how long an upload of a ready build may not have begun.
const (
	grace    = 6 * time.Hour
	patience = time.Hour
)

// Image is one that is configured, at each provider that lists it.
type Image struct {
	Name     string     `json:"name"`
	Paused   bool       `json:"paused,omitempty"`
	Building *Build     `json:"building,omitempty"`
	Failed   *Failure   `json:"failed,omitempty"` // the newest build, when it failed
	Due      *time.Time `json:"due,omitempty"`    // of the next build, by age or schedule
	Places   []Place    `json:"providers"`
	// Unconfigured says that the configuration does not have it; the tree does.
	Unconfigured bool      `json:"-"`
	ready        time.Time // when its newest ready build was
}

// Build is one that is under way.
type Build struct {
	ID    string    `json:"build"`
	Host  string    `json:"host,omitempty"`
	Since time.Time `json:"since"`
}

// Failure is what failed last, and how often in a row.
type Failure struct {
	Build  string     `json:"build"`
	Count  int        `json:"count"`
	Reason string     `json:"reason,omitempty"`
	Since  time.Time  `json:"since"`
	Retry  *time.Time `json:"retry,omitempty"`
}

// Place is an image in one provider.
type Place struct {
	Provider string    `json:"provider"`
	State    Freshness `json:"state"`
	Build    string    `json:"build,omitempty"`       // that serves
	Age      int64     `json:"age_seconds,omitempty"` // since it was built
	// Uploading is a build on its way, Percent how much of it has been sent; Trial is one that
	// is tried before it serves, Canary one that serves a share of new nodes.
	Uploading string   `json:"uploading,omitempty"`
	Percent   int64    `json:"percent,omitempty"`
	Trial     string   `json:"trial,omitempty"`
	Canary    string   `json:"canary,omitempty"`
	Pinned    bool     `json:"pinned,omitempty"`
	Paused    bool     `json:"paused,omitempty"` // its uploads, by the configuration
	Failed    *Failure `json:"failed,omitempty"` // the newest upload, when it failed
}

// imageOf looks at one image; there may be nothing of it in the tree.
func (t *Tree) imageOf(cfg *configs.Config, configured *configs.DiskImage, image *zkmodel.Image) Image {
	if image == nil {
		image = &zkmodel.Image{Name: configured.Name}
	}
	one := Image{Name: image.Name, Paused: configured.Pause || image.Paused, Places: []Place{}}
	for _, b := range slices.Backward(image.Builds) {
		if b.Broken != nil {
			continue
		}
		since := listing.Changed(b.StateTime, b.Stat.Mtime)
		switch {
		case b.State == zkmodel.BuildBuilding && image.BuildsLocked && one.Building == nil:
			one.Building = &Build{ID: b.ID, Host: b.Builder, Since: whole(since)}
			continue
		case b.State == zkmodel.BuildFailed && one.Failed == nil:
			one.Failed = &Failure{Build: b.ID, Count: max(1, b.Failures), Reason: b.Reason, Since: whole(since), Retry: retry(b.RetryAt)}
			continue
		case b.State != zkmodel.BuildReady:
			continue
		}
		one.Due, one.ready = at(t.due(configured, b.Build)), since
		break
	}
	for _, p := range cfg.ProvidersOf(image.Name) {
		one.Places = append(one.Places, t.placeOf(configured, image, p))
	}
	return one
}

// Others are the images of the tree that the configuration does not have: with all providers that
// have an upload, and never late, as nobody knows when they are due.
func (t *Tree) Others(cfg *configs.Config) (list []Image) {
	for _, image := range t.Images {
		if cfg.HasImage(image.Name) {
			continue
		}
		configured := &configs.DiskImage{Name: image.Name}
		one := t.imageOf(cfg, configured, image)
		one.Unconfigured = true
		var names []string
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if !slices.Contains(names, u.Provider) {
					names = append(names, u.Provider)
				}
			}
		}
		slices.Sort(names)
		for _, name := range names {
			one.Places = append(one.Places, t.placeOf(configured, image, &configs.Provider{Name: name}))
		}
		list = append(list, one)
	}
	return list
}

// due is when a build is to be followed by another; zero when neither age nor schedule
// says so.
func (t *Tree) due(image *configs.DiskImage, b *zkmodel.Build) time.Time {
	age, aged := rebuild.DueByAge(image, b, t.Now)
	next, planned, err := rebuild.DueBySchedule(image, b)
	if err == nil && planned && (!aged || next.Before(age)) {
		return next
	}
	return age
}

// placeOf looks at an image in a provider.
func (t *Tree) placeOf(configured *configs.DiskImage, image *zkmodel.Image, provider *configs.Provider) Place {
	p := Place{Provider: provider.Name, State: Missing}
	if listed, ok := provider.Image(image.Name); ok {
		p.Paused = listed.Pause
	}
	if image.Unread != nil {
		p.State = Unknown
	}
	if u := image.Serving(provider.Name, zkmodel.Suspect); u != nil {
		b := image.Build(u.Build).Build
		p.State, p.Build, p.Age = Fresh, u.Build, int64(max(0, t.Now.Sub(b.StateTime.Time()))/time.Second)
		pin := image.Pin(provider.Name)
		p.Pinned = pin != nil && pin.Holds(b)
		if due := t.due(configured, b); !due.IsZero() && t.Now.Sub(due) > grace && !p.Pinned && !p.Paused && !configured.Pause && !image.Paused {
			p.State = Stale
		}
	}
	if p.State == Missing && p.Paused {
		p.State = Waits
	}
	if c := image.Canary(provider.Name); c != nil && c.Trial != nil && image.OnTrial(provider.Name) != nil {
		p.Canary = c.Trial.Build
	}
	t.newest(&p, image)
	return p
}

// newest tells of the newest upload to a place, unless it is ready.
func (t *Tree) newest(p *Place, image *zkmodel.Image) {
	for _, b := range slices.Backward(image.Builds) {
		for _, u := range slices.Backward(b.Uploads) {
			if u.Provider != p.Provider || u.Broken != nil || u.State == zkmodel.UploadDeleting {
				continue
			}
			switch {
			case u.OnTrial():
				p.Trial = u.Build
			case u.State == zkmodel.UploadUploading:
				p.Uploading = u.Build
				if u.Progress != nil && u.Progress.Total > 0 {
					p.Percent = int64(100 * float64(u.Progress.Sent) / float64(u.Progress.Total))
				}
			case u.State == zkmodel.UploadFailed:
				p.Failed = &Failure{
					Build: u.Build, Count: max(1, u.Failures), Reason: u.Reason,
					Since: whole(listing.Changed(u.StateTime, u.Stat.Mtime)), Retry: retry(u.RetryAt),
				}
			}
			return
		}
	}
}

func retry(at zkmodel.Epoch) *time.Time {
	if at == 0 {
		return nil
	}
	t := whole(at.Time())
	return &t
}

// lateItems are the images that are late or missing, and of which nothing else says why.
func (t *Tree) lateItems(images []Image, said []attention.Item) (items []attention.Item) {
	type place struct{ image, provider string }
	told := map[place]bool{}
	for _, i := range said {
		told[place{i.Image, i.Provider}] = true // with "", of the image anywhere
	}
	for n := range images {
		image := &images[n]
		given := !image.ready.IsZero() && t.Now.Sub(image.ready) > patience
		if given && image.nowhere() {
			items = append(items, attention.Item{
				Kind: attention.Missing, Urgent: true, Image: image.Name, What: "No provider has a ready image of " + image.Name,
				Why: "a build of it is ready, and no upload", Since: image.ready,
			})
			continue
		}
		for _, p := range image.Places {
			item := attention.Item{Image: image.Name, Build: p.Build, Provider: p.Provider}
			comes := p.Uploading != "" || p.Trial != ""
			switch {
			case told[place{image.Name, p.Provider}] || comes:
				continue
			case p.State == Missing && given:
				item.Kind, item.What, item.Since = attention.Missing, "Image "+image.Name+" is missing in "+p.Provider, image.ready
				item.Why = "a build is ready, and none was sent there"
			case p.State == Stale && !told[place{image.Name, ""}] && image.Building == nil && p.Canary == "":
				item.Kind, item.What = attention.Stale, fmt.Sprintf("Image %s in %s is older than its schedule allows", image.Name, p.Provider)
				item.Why = "no newer build serves, and none is under way"
			default:
				continue
			}
			items = append(items, item)
		}
	}
	return items
}

// nowhere reports whether an image is missing in each of its providers that may have it.
func (i *Image) nowhere() bool {
	missing := slices.ContainsFunc(i.Places, func(p Place) bool { return p.State == Missing })
	return missing && !slices.ContainsFunc(i.Places, func(p Place) bool { return p.State != Missing && p.State != Waits })
}

// Freshnesses are all that there are, in the order in which they matter.
func Freshnesses() []Freshness { return []Freshness{Missing, Unknown, Stale, Waits, Fresh} }
