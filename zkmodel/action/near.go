package action

import (
	"context"
	"path"
	"slices"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// near says which nodes or requests there are, and which may have been meant.
func near(ctx context.Context, store *zkmodel.Store, at string) string {
	names, err := store.Session().Children(ctx, path.Dir(at))
	if err != nil {
		return ""
	}
	return configs.Similar(path.Base(at), names)
}

// Near is what an error ends with that says that an image, a build of it, or what a provider
// has of that is not there: which there are, and which may have been meant, of the first of
// them that is unknown. "" when all that the order names are known.
func Near(ctx context.Context, store *zkmodel.Store, cfg *configs.Config, o Order) string {
	unknown := func(name string, known []string) string {
		if name == "" || slices.Contains(known, name) {
			return ""
		}
		return configs.Similar(name, known)
	}
	below := func(at string) []string {
		names, _ := store.Session().Children(ctx, at) // what cannot be read is not told
		return slices.DeleteFunc(names, func(name string) bool { return name == path.Base(zkmodel.BuildsLockPath("")) })
	}
	images := below(zkmodel.ImagesRoot)
	for n := range cfg.DiskImages {
		images = append(images, cfg.DiskImages[n].Name)
	}
	if o.Image == "" {
		return ""
	}
	if text := unknown(o.Image, images); text != "" {
		return text
	}
	providers, _ := cfg.ProviderNames()
	if o.Build != "" {
		if text := unknown(o.Build, below(zkmodel.BuildsPath(o.Image))); text != "" {
			return text
		}
		providers = append(providers, below(zkmodel.ProvidersPath(o.Image, o.Build))...)
	}
	for _, name := range append([]string{o.Provider}, o.Providers...) {
		if text := unknown(name, providers); text != "" {
			return text
		}
	}
	return ""
}
