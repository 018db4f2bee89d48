package builder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Explanation is what a builder has to do for one image, and why.
type Explanation struct {
	Image string
	plan.Plan
	Verdicts []plan.Verdict
}

// Explain says what the builder of a host, by its full name, has to do for some
// images, or for all that there are. It reads the tree and the host's disk as
// they are and changes nothing; a daemon may run beside it.
func Explain(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, host string, images ...string) ([]Explanation, error) {
	tree, err := store.Images(ctx)
	if err != nil {
		return nil, err
	}
	alive, err := registered(ctx, store.Session())
	if err != nil {
		return nil, err
	}
	local, err := disk.Peek(cfg.ImagesDir)
	if err != nil {
		return nil, err
	}
	known := map[string]*zkmodel.Image{}
	for _, image := range cfg.DiskImages {
		known[image.Name] = &zkmodel.Image{Name: image.Name}
	}
	for _, name := range local.Names() {
		known[name] = &zkmodel.Image{Name: name}
	}
	for _, image := range tree {
		known[image.Name] = image
	}
	if len(images) == 0 {
		images = slices.Sorted(maps.Keys(known))
	}
	now := time.Now()
	var all []Explanation
	for _, name := range images {
		image := known[name]
		if image == nil {
			return nil, fmt.Errorf("explain image %s: %w", name, zkmodel.ErrNotFound)
		}
		in := plan.Input{
			Config: cfg, Image: image, Local: local.Builds(name), Now: now, Policy: plan.DefaultPolicy(),
			Host:   peekHost(local, host),
			Others: plan.Others{Alive: alive, Since: now},
		}
		in.Doing = presumed(in)
		e := Explanation{Image: name}
		e.Plan, e.Verdicts = plan.Explain(in)
		all = append(all, e)
	}
	return all, nil
}

// peekHost describes the host without changing anything on it.
func peekHost(local *disk.Images, name string) plan.Host {
	id, err := os.ReadFile(filepath.Join(local.Dir(), "builder_id.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		id = nil // then nothing here is known to be ours
	}
	free, err := local.Free()
	if err != nil {
		free = -1
	}
	return plan.Host{Name: name, ID: strings.TrimSpace(string(id)), Arch: runtime.GOARCH, Free: free}
}

// presumed is what the daemon of this host is about, if one runs: an upload
// with its name on it is its own.
func presumed(in plan.Input) plan.Doing {
	doing := plan.Doing{Uploads: map[string]bool{}}
	short, _, _ := strings.Cut(in.Host.Name, ".")
	if !in.Others.Alive[in.Host.Name] && !in.Others.Alive[short] {
		return doing
	}
	for _, b := range in.Image.Builds {
		for _, u := range b.Uploads {
			if u.State == zkmodel.UploadUploading && u.Builder == in.Host.Name {
				doing.Uploads[plan.UploadKey(u.Image, u.Build, u.Provider)] = true
			}
		}
	}
	return doing
}

// registered lists the host names of the builders that run.
func registered(ctx context.Context, s *recipe.Session) (map[string]bool, error) {
	members, err := recipe.Members(ctx, s, zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder)
	if err != nil {
		return nil, err
	}
	hosts := map[string]bool{}
	for _, m := range members {
		hosts[zkmodel.DecodeComponent(m.Name, m.Data).Hostname] = true
	}
	return hosts, nil
}
