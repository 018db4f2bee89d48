package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/drivers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// AlienImageListCmd lists the images in clouds that have no record of a ready upload.
type AlienImageListCmd struct {
	view.Flags
	view.ByImage
	Provider string `arg:"" optional:"" help:"The provider; by default all."`
}

// Help is what the command's own help says.
func (*AlienImageListCmd) Help() string {
	return "Asks the clouds for images that carry the mark of Poolkeeper or of Nodepool, and lists those of which no ready upload has " +
		"a record. One that is just being sent is among them; --detail shows what its record says. What of ours has leaked is " +
		"deleted by builders; nothing is deleted here. The exit code is 1 when a cloud could not be asked."
}

// Run is the command.
func (c *AlienImageListCmd) Run(ctx context.Context, a *app.App) error {
	return a.Reads().WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
		sections, err := c.sections(cfg)
		if err != nil {
			return err
		}
		clouds := askClouds(ctx, sections, &drivers.Process{
			Logger: a.Logger(hclog.Error), Secrets: &a.Secrets, CallTime: app.CloudCall, RetryTime: app.CloudRetry,
		})
		// Records are read behind the clouds: what is ready there then has one.
		images, err := store.Images(ctx)
		if err != nil {
			return err
		}
		var aliens []listing.Alien
		failed := 0
		for _, cloud := range clouds {
			if cloud.err != nil {
				failed++
				text := strings.ReplaceAll(a.Secrets.Error(cloud.err).Error(), "\n", "; ")
				fmt.Fprintf(a.Stderr, "poolkeeper: the images of %s cannot be listed: %s\n", cloud.provider, listing.Visible(text))
			}
			aliens = append(aliens, cloud.aliens(images)...)
		}
		for _, image := range images {
			if image.Unread != nil {
				fmt.Fprintf(a.Stderr, "poolkeeper: records of image %s cannot be read, so images of it may be listed that have one: %s\n",
					listing.Visible(image.Name), listing.Visible(a.Secrets.Text(image.Unread.Error())))
			}
		}
		if err := c.Show(a, listing.Aliens(aliens), c.Images(cfg)); err != nil {
			return err
		}
		if failed > 0 {
			return fmt.Errorf("%d of %d providers could not be asked", failed, len(clouds))
		}
		return nil
	})
}

// sections are the providers that are asked.
func (c *AlienImageListCmd) sections(cfg *configs.Config) ([]configs.Provider, error) {
	if c.Provider == "" {
		return slices.DeleteFunc(slices.Clone(cfg.Providers), func(p configs.Provider) bool {
			_, _, here := drivers.Guests(p)
			return here // its images are on a host's disk, which is no cloud
		}), nil
	}
	if p, ok := cfg.Provider(c.Provider); ok {
		return []configs.Provider{*p}, nil
	}
	if cfg.IsSkipped(c.Provider) {
		return nil, fmt.Errorf("provider %q has a driver in %s that there is not here: its cloud cannot be asked", c.Provider, cfg.Path)
	}
	names, _ := cfg.ProviderNames()
	return nil, fmt.Errorf("provider %q is not in %s%s", c.Provider, cfg.Path,
		configs.Similar(c.Provider, slices.DeleteFunc(names, func(name string) bool { return name == "" })))
}

// cloudImages is what a cloud has of a provider's images.
type cloudImages struct {
	provider string
	images   []providers.Image
	err      error
}

// askClouds lists the images of some providers, all at once, in their order. A cloud that
// keeps no images has none.
func askClouds(ctx context.Context, sections []configs.Provider, process *drivers.Process) []cloudImages {
	clouds := make([]cloudImages, len(sections))
	var group sync.WaitGroup
	for n, section := range sections {
		clouds[n].provider = section.Name
		group.Go(func() {
			p, err := process.Open(section)
			if err == nil {
				clouds[n].images, err = p.ListImages(ctx)
				_ = p.Close() // it has nothing to say
			}
			if !errors.Is(err, providers.ErrNotSupported) {
				clouds[n].err = err
			}
		})
	}
	group.Wait()
	return clouds
}

// aliens are the images of a cloud of which no ready upload has a record.
func (c cloudImages) aliens(images []*zkmodel.Image) []listing.Alien {
	ready, records := map[string]bool{}, map[zkmodel.UploadKey]string{}
	for _, image := range images {
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if u.Provider != c.provider {
					continue
				}
				records[u.UploadKey] = string(u.State)
				if u.Broken != nil {
					records[u.UploadKey] = "broken"
				} else if u.State == zkmodel.UploadReady {
					ready[u.ExternalID.Text()] = true
				}
			}
		}
	}
	var list []listing.Alien
	for _, i := range c.images {
		if ready[i.ExternalID] {
			continue
		}
		key := zkmodel.UploadKey{
			Image: i.Metadata[providers.MetaImage], Build: i.Metadata[providers.MetaBuild], Provider: c.provider, ID: i.Metadata[providers.MetaUpload],
		}
		list = append(list, listing.Alien{
			Provider: c.provider, Name: i.Name, ID: i.ExternalID, Image: key.Image, Build: key.Build, Upload: key.ID, Record: records[key],
		})
	}
	slices.SortFunc(list, func(a, b listing.Alien) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}
