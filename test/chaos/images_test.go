package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// keptUploads are what the policy keeps of an image at a provider: its two newest that are
// ready.
const keptUploads = 2

// gallery is what tree and clouds have of images at one moment.
type gallery struct {
	at     time.Time
	images []*zkmodel.Image
	clouds map[string][]providers.Image
}

// gallery looks at them; errMoving where the tree changed meanwhile.
func (v *watch) gallery(ctx context.Context) (*gallery, error) {
	session, err := v.client.Session(ctx)
	if err != nil {
		return nil, err
	}
	store := zkmodel.NewStore(session, nil)
	g := &gallery{at: time.Now(), clouds: map[string][]providers.Image{}}
	if g.images, err = store.Images(ctx); err != nil {
		return nil, err
	}
	for name, cloud := range v.clouds {
		if g.clouds[name], err = cloud.ListImages(ctx); err != nil {
			return nil, err
		}
	}
	if err := catchUp(ctx, session); err != nil {
		return nil, err
	}
	again, err := store.Images(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(recordsOf(g.images), recordsOf(again)) {
		return g, errMoving
	}
	return g, errors.Join(unread(g.images), unread(again))
}

// unread says what of images could not be read: then nothing is known to be missing.
func unread(images []*zkmodel.Image) (err error) {
	for _, i := range images {
		err = errors.Join(err, i.Unread)
	}
	return err
}

// recordsOf tells of every record whether it is the same.
func recordsOf(images []*zkmodel.Image) (all []string) {
	for _, i := range images {
		for _, b := range i.Builds {
			all = append(all, fmt.Sprint(i.Name, b.ID, b.Stat.Czxid, b.Stat.Version))
			for _, u := range b.Uploads {
				all = append(all, fmt.Sprint(u.Path(), u.Stat.Czxid, u.Stat.Version))
			}
		}
	}
	return all
}

// place is an image at a provider.
type place struct{ image, provider string }

// uploads calls f with every upload.
func (g *gallery) uploads(f func(*zkmodel.Upload)) {
	for _, i := range g.images {
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				f(u)
			}
		}
	}
}

// ready counts the uploads that serve: their record says so, and the cloud has them.
func (g *gallery) ready() map[place]int {
	there := map[string]bool{}
	for _, list := range g.clouds {
		for _, image := range list {
			there[image.ExternalID] = true
		}
	}
	count := map[place]int{}
	g.uploads(func(u *zkmodel.Upload) {
		if u.State == zkmodel.UploadReady && there[u.ExternalID.Text()] {
			count[place{u.Image, u.Provider}]++
		}
	})
	return count
}

// nameless are the images of ours in clouds that no record stands for, by their ids there. With
// exact, one that carries the numbers of a record, and is not the one that it names, counts
// as well: it is of another time.
func (g *gallery) nameless(exact bool) map[string]string {
	recorded := map[string]bool{}
	g.uploads(func(u *zkmodel.Upload) {
		recorded[u.ExternalID.Text()] = true
		if !exact {
			recorded[u.Provider+" "+u.Image+" "+u.Build+" "+u.ID] = true
		}
	})
	odd := map[string]string{}
	for provider, list := range g.clouds {
		for _, image := range list {
			m := image.Metadata
			numbers := provider + " " + m[providers.MetaImage] + " " + m[providers.MetaBuild] + " " + m[providers.MetaUpload]
			if m[providers.MetaSite] != otherSite && !recorded[image.ExternalID] && !recorded[numbers] {
				odd[image.ExternalID] = fmt.Sprintf("image %s (build %s, upload %s) in %s without a record",
					m[providers.MetaImage], m[providers.MetaBuild], m[providers.MetaUpload], provider)
			}
		}
	}
	return odd
}

// imageRules are what is remembered of images from one look to the next.
type imageRules struct {
	best map[place]int               // most that were ready, up to what is kept
	made map[string]map[string]int64 // image to build to the transaction that made it
	back int                         // how often the tree had gone back
}

func newImageRules() *imageRules {
	return &imageRules{best: map[place]int{}, made: map[string]map[string]int64{}}
}

// check holds a moment against the rules of images.
func (r *imageRules) check(g *gallery, backs []time.Time, wrong report) {
	if len(backs) != r.back { // what was true of another time is not of this one
		*r = *newImageRules()
		r.back = len(backs)
	}
	now := g.ready()
	for at, n := range now {
		r.best[at] = max(r.best[at], min(n, keptUploads))
	}
	for at, best := range r.best {
		if now[at] < best {
			wrong("%s has %d ready images of %s, and had %d", at.provider, now[at], at.image, best)
			r.best[at] = now[at]
		}
	}
	for _, i := range g.images {
		if r.made[i.Name] == nil {
			r.made[i.Name] = map[string]int64{}
		}
		for _, b := range i.Builds {
			if before := r.made[i.Name][b.ID]; before != 0 && before != b.Stat.Czxid {
				wrong("the number of build %s of %s was given twice", b.ID, i.Name)
			}
			r.made[i.Name][b.ID] = b.Stat.Czxid
		}
	}
}

// unsettled says what of images is not at rest, and what serves nowhere.
func (g *gallery) unsettled(orphans map[string]bool, note report) {
	for _, i := range g.images {
		for _, b := range i.Builds {
			if b.State == zkmodel.BuildBuilding || b.State == zkmodel.BuildDeleting || b.Broken != nil {
				note("build %s of %s is %s", b.ID, i.Name, b.State)
			}
		}
		if i.BuildRequested != nil {
			note("a build of %s is asked for", i.Name)
		}
	}
	g.uploads(func(u *zkmodel.Upload) {
		if u.State == zkmodel.UploadUploading || u.State == zkmodel.UploadDeleting || u.Broken != nil {
			note("upload %s is %s", u.Path(), u.State)
		}
	})
	ready := g.ready()
	for provider, images := range serves() {
		for _, image := range images {
			if n := ready[place{image, provider}]; n == 0 {
				note("%s has no ready image of %s", provider, image)
			} else if n > keptUploads {
				note("%s has %d ready images of %s, %d are kept", provider, n, image, keptUploads)
			}
		}
	}
	odd := g.nameless(false)
	for _, id := range slices.Sorted(maps.Keys(odd)) {
		if !orphans[id] {
			note("%s: %s", id, odd[id])
		}
	}
}
