package waves

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/wave"
)

// Wish says which images a wave has.
type Wish struct {
	All   bool     // that the configuration has
	Match []string // patterns, as the shell has them
	Order wave.Order
	Until wave.Until
}

// ErrNeverValidated says that a wave is to wait for what never happens.
var ErrNeverValidated = errors.New("never validated")

// ErrNoImages says that a wish names no image.
var ErrNoImages = errors.New("no images")

// Jobs are those of a wave, in their order. newest tells when the newest ready build of an
// image began, as a transaction, or 0 without one.
//
// Errors: ErrNoImages, ErrNeverValidated; a pattern that is none, or that no image has.
func Jobs(cfg *configs.Config, wish Wish, newest func(image string) int64) ([]wave.Job, error) {
	images, err := wish.images(cfg)
	if err != nil {
		return nil, err
	}
	if wish.Until == wave.UntilValidated {
		if never := unvalidated(cfg, images); len(never) > 0 {
			return nil, fmt.Errorf("until validated: %w: %s: %s has no validate for them; leave them out, or use until uploaded",
				ErrNeverValidated, strings.Join(never, ", "), cfg.Path)
		}
	}
	if wish.Order == wave.ByFreshness {
		ages := map[string]int64{}
		for _, image := range images {
			ages[image] = newest(image)
		}
		slices.SortStableFunc(images, func(a, b string) int { return cmp.Compare(ages[a], ages[b]) })
	}
	jobs := make([]wave.Job, len(images))
	for i, image := range images {
		jobs[i] = Job(cfg, image)
	}
	return jobs, nil
}

// images are those that are asked for, each once: as the patterns come, and then as the
// configuration has them. One that nobody needs in any format is never built.
func (w Wish) images(cfg *configs.Config) ([]string, error) {
	patterns := w.Match
	if w.All {
		patterns = []string{"*"}
	}
	var images []string
	for _, pattern := range patterns {
		found, unneeded := false, []string(nil)
		for i := range cfg.DiskImages {
			name := cfg.DiskImages[i].Name
			matches, err := path.Match(pattern, name)
			switch {
			case err != nil:
				return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
			case !matches:
			case len(cfg.ImageFormats(name)) == 0:
				unneeded = append(unneeded, name)
			case !slices.Contains(images, name):
				images = append(images, name)
				found = true
			default:
				found = true
			}
		}
		switch {
		case !found && len(unneeded) > 0:
			return nil, fmt.Errorf("%w: %s: no provider lists them, and they have no formats", ErrNoImages, strings.Join(unneeded, ", "))
		case !found:
			return nil, fmt.Errorf("%w: none of %s is like %q", ErrNoImages, cfg.Path, pattern)
		}
	}
	if len(images) == 0 {
		return nil, fmt.Errorf("%w: expected --all or --match", ErrNoImages)
	}
	return images, nil
}

// NewestReady is when the newest ready build of an image began, as a transaction, or 0.
func NewestReady(image *zkmodel.Image) int64 {
	newest := int64(0)
	for _, b := range image.Builds {
		if b.State == zkmodel.BuildReady {
			newest = max(newest, b.Stat.Czxid)
		}
	}
	return newest
}

// unvalidated are those of images that have no validation.
func unvalidated(cfg *configs.Config, images []string) []string {
	return slices.DeleteFunc(slices.Clone(images), func(name string) bool {
		image, ok := cfg.DiskImage(name)
		return ok && image.Validate != nil
	})
}
