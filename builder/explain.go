package builder

import (
	"cmp"
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

	"poolkeeper/builder/control"
	"poolkeeper/builder/disk"
	"poolkeeper/builder/plan"
	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Explanation is what a builder has to do for one image, and why.
type Explanation struct {
	Image string
	plan.Plan
	Verdicts []plan.Verdict
}

// unbegun says of each provider of an image whether no launcher of these begins canaries of it.
func unbegun(cfg *configs.Config, image string, pools []*zkmodel.Component) map[string]bool {
	is := map[string]bool{}
	for _, p := range cfg.ProvidersOf(image) {
		is[p.Name] = !zkmodel.CanaryIsOf(pools, p.Name, image)
	}
	return is
}

// Explain says what the builder of a host, by its full name, has to do for some
// images, or for all that there are. It reads the tree and the host's disk as
// they are and changes nothing; a daemon may run beside it.
func Explain(ctx context.Context, cfg *configs.Config, store *zkmodel.Store, host string, images ...string) ([]Explanation, error) {
	tree, err := store.Images(ctx)
	if err != nil {
		return nil, err
	}
	them, err := peersOf(ctx, cfg, store)
	if err != nil {
		return nil, err
	}
	local, here, err := peekHost(cfg.ImagesDir, host)
	if err != nil {
		return nil, err
	}
	known := knownImages(cfg, local.Names(), tree)
	if len(images) == 0 {
		images = slices.Sorted(maps.Keys(known))
	}
	if i := slices.IndexFunc(them.works, func(w zkmodel.BuilderWork) bool { return w.Host == host }); i >= 0 {
		here.ClockOff = them.works[i].ClockOff
	}
	now := clock.Now(ctx).Add(-here.ClockOff)
	if us := builderOn(them.builders, host); us != nil {
		here.Unfit = us.Reason
	}
	pauses, err := store.ProviderPauses(ctx)
	if err != nil {
		return nil, err
	}
	var all []Explanation
	for _, name := range images {
		image := known[name]
		if image == nil {
			return nil, fmt.Errorf("explain image %s: %w%s", name, zkmodel.ErrNotFound, configs.Similar(name, slices.Collect(maps.Keys(known))))
		}
		in := plan.Input{
			Config: cfg, Image: image, Local: control.LocalBuilds(local, name), Now: now, Policy: plan.DefaultPolicy(),
			Host:     here,
			Others:   plan.Others{Alive: them.alive(), Since: now},
			NoCanary: control.NoCanary(cfg, name, func(string) []*zkmodel.Component { return them.pools }),
			Paused:   zkmodel.Paused(pauses, now), Unbegun: unbegun(cfg, name, them.pools),
		}
		if err := onTrial(ctx, store, &in, them.pools); err != nil {
			return nil, err
		}
		in.InFlight = presumed(in)
		e := Explanation{Image: name}
		e.Plan, e.Verdicts = plan.Explain(in)
		e.Verdicts = append(e.Verdicts, elsewhere(in, e.Verdicts)...)
		for kind, limit := range them.limits {
			if slices.ContainsFunc(e.Actions, func(a plan.Action) bool { return a.Kind == kind }) {
				e.Verdicts = append(e.Verdicts, limit)
			}
		}
		e.unheeded(image, them.pools)
		e.refused(cfg, name, them.pools)
		e.hindered(cfg, them.sorted(), host)
		e.Verdicts = append(e.Verdicts, workers(them.works, host, cfg, e.Actions)...)
		plan.MarkDeciding(e.Verdicts)
		all = append(all, e)
	}
	return all, nil
}

// elsewhere explains the uploads whose files are on the host of another builder, as that builder decides about them: of
// its disk it knows what the records of its builds tell.
func elsewhere(in plan.Input, own []plan.Verdict) (list []plan.Verdict) {
	waits := map[string]bool{} // subjects that only another host can decide
	for _, v := range own {
		if v.Speaks == plan.Against && strings.HasPrefix(v.Subject, "upload to ") {
			waits[v.Subject] = v.Rule == "files"
		}
	}
	asked := map[string]bool{in.Host.Name: true}
	for _, b := range slices.Backward(in.Image.Builds) {
		if b.State != zkmodel.BuildReady || asked[b.Builder] || !in.Others.IsAlive(b.Builder) {
			continue
		}
		asked[b.Builder] = true
		there := in
		there.Host = plan.Host{Name: b.Builder, ID: b.BuilderID, Free: -1}
		there.Local = nil
		for _, other := range in.Image.Builds {
			if other.Builder == b.Builder && other.State == zkmodel.BuildReady {
				there.Local = append(there.Local, plan.LocalBuild{ID: other.ID, Formats: other.Formats, Ours: true})
			}
		}
		there.InFlight = presumed(there)
		_, verdicts := plan.Explain(there)
		for _, v := range verdicts {
			if waits[v.Subject] && v.Rule != "files" {
				v.Detail += " (on " + b.Builder + ")"
				list = append(list, v)
			}
		}
	}
	return list
}

// knownImages are those of the configuration, of this host's folder and of the tree.
func knownImages(cfg *configs.Config, local []string, tree []*zkmodel.Image) map[string]*zkmodel.Image {
	known := map[string]*zkmodel.Image{}
	for _, image := range cfg.DiskImages {
		known[image.Name] = &zkmodel.Image{Name: image.Name}
	}
	for _, name := range local {
		known[name] = &zkmodel.Image{Name: name}
	}
	for _, image := range tree {
		known[image.Name] = image
	}
	return known
}

// onTrial reads the trials of an image's uploads, where there are any.
func onTrial(ctx context.Context, store *zkmodel.Store, in *plan.Input, pools []*zkmodel.Component) error {
	in.Untriable = control.Untriable(in.Image, pools)
	if in.Untriable == nil {
		return nil
	}
	all, err := store.Validations(ctx)
	in.Validations = slices.DeleteFunc(all, func(v *zkmodel.Validation) bool { return v.Image != in.Image.Name })
	return err
}

// peers is what the tree tells of all builders.
type peers struct {
	builders map[string]*zkmodel.Component // by host name
	works    []zkmodel.BuilderWork
	pools    []*zkmodel.Component       // of launchers
	limits   map[plan.Kind]plan.Verdict // that all share, by what they bound
}

// peersOf reads that.
func peersOf(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) (f peers, err error) {
	if f.builders, err = registered(ctx, store.Session()); err != nil {
		return f, err
	}
	if f.works, err = store.BuilderWorks(ctx); err != nil {
		return f, err
	}
	if f.pools, err = store.Components(ctx, zkmodel.KindPool); err != nil {
		return f, err
	}
	f.limits, err = fleetLimits(ctx, store.Session(), cfg)
	return f, err
}

// unheeded says which launchers go on with a build that was rolled back or rejected, or
// with a newer one than the one that is pinned, as they know nothing of that.
func (e *Explanation) unheeded(image *zkmodel.Image, pools []*zkmodel.Component) {
	said := map[string]bool{}
	for _, c := range pools {
		u := image.Unheeded(c.ProviderName)
		if u == nil || c.Broken != nil || c.Heeds() || said[c.Hostname+" "+c.ProviderName] {
			continue
		}
		said[c.Hostname+" "+c.ProviderName] = true
		e.Verdicts = append(e.Verdicts, plan.Verdict{
			Subject: "launchers", Rule: "verdict", Speaks: plan.Against,
			Detail: fmt.Sprintf("the launcher on %s knows no verdicts and goes on with build %s at %s (image-rollback --delete takes it away)", c.Hostname, u.Build, u.Provider),
		})
	}
}

// refused says in which providers no build of an image is a canary, although it has one.
func (e *Explanation) refused(cfg *configs.Config, image string, pools []*zkmodel.Component) {
	if cfg.CanaryOf(image) == nil {
		return
	}
	for _, p := range cfg.ProvidersOf(image) {
		if why := zkmodel.CanariesRefused(pools, p.Name); why != "" {
			e.Verdicts = append(e.Verdicts, plan.Verdict{Subject: "launchers", Rule: "canary", Speaks: plan.Against, Detail: why})
		}
	}
}

// sorted are the builders by host name.
func (p peers) sorted() []*zkmodel.Component {
	return slices.SortedFunc(maps.Values(p.builders), func(a, b *zkmodel.Component) int { return strings.Compare(a.Hostname, b.Hostname) })
}

// alive are the hosts of builders that run.
func (p peers) alive() map[string]bool {
	hosts := map[string]bool{}
	for host := range p.builders {
		hosts[host] = true
	}
	return hosts
}

// fleetLimits says how the limits stand that all builders share, by what they bound.
func fleetLimits(ctx context.Context, s *recipe.Session, cfg *configs.Config) (map[plan.Kind]plan.Verdict, error) {
	limits := map[plan.Kind]plan.Verdict{}
	for kind, l := range map[plan.Kind]struct {
		rule, path string
		most       int
	}{
		plan.Build:  {"max-concurrent-builds", zkmodel.BuildLimitPath, cfg.MaxConcurrentBuilds},
		plan.Upload: {"max-concurrent-uploads", zkmodel.UploadLimitPath, cfg.MaxConcurrentUploads},
	} {
		if l.most <= 0 {
			continue
		}
		claims, err := recipe.Members(ctx, s, l.path)
		if err != nil {
			return nil, err
		}
		var by []string
		for _, c := range claims {
			by = append(by, cmp.Or(string(c.Data), c.Name))
		}
		v := plan.Verdict{Subject: string(kind), Rule: l.rule, Detail: fmt.Sprintf("%d of %d are under way or wait, in all builders", len(by), l.most)}
		if len(by) >= l.most {
			slices.Sort(by)
			v.Speaks, v.Detail = plan.Against, v.Detail+": it waits for "+strings.Join(slices.Compact(by), ", ")
		}
		limits[kind] = v
	}
	return limits, nil
}

// peekHost describes the host and its images-dir, which is "" on a host that is no builder's, without changing anything
// on it.
func peekHost(dir, name string) (*disk.Images, plan.Host, error) {
	if dir == "" {
		return &disk.Images{}, plan.Host{Name: name, Free: -1}, nil
	}
	local, err := disk.Peek(dir)
	if err != nil {
		return nil, plan.Host{}, err
	}
	id, err := os.ReadFile(filepath.Join(local.Dir(), "builder_id.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		id = nil // then nothing here is known to be ours
	}
	free, err := local.Free()
	if err != nil {
		free = -1
	}
	return local, plan.Host{Name: name, ID: strings.TrimSpace(string(id)), Arch: runtime.GOARCH, Free: free}, nil
}

// presumed is what the daemon of this host is about, if one runs: an upload
// with its name on it is its own.
func presumed(in plan.Input) plan.InFlight {
	inFlight := plan.InFlight{Uploads: map[string]bool{}}
	if short, _, _ := strings.Cut(in.Host.Name, "."); !in.Others.Alive[in.Host.Name] && !in.Others.Alive[short] {
		return inFlight
	}
	for _, b := range in.Image.Builds {
		for _, u := range b.Uploads {
			if u.State == zkmodel.UploadUploading && u.Builder == in.Host.Name {
				inFlight.Uploads[plan.UploadKey(u.Image, u.Build, u.Provider)] = true
			}
		}
	}
	return inFlight
}

// builderOn finds the builder of a host, which may be registered by its short name.
func builderOn(builders map[string]*zkmodel.Component, host string) *zkmodel.Component {
	short, _, _ := strings.Cut(host, ".")
	return cmp.Or(builders[host], builders[short])
}

// registered lists the builders that run, by host name.
func registered(ctx context.Context, s *recipe.Session) (map[string]*zkmodel.Component, error) {
	members, err := recipe.Members(ctx, s, zkmodel.ComponentsRoot+"/"+zkmodel.KindBuilder)
	if err != nil {
		return nil, err
	}
	hosts := map[string]*zkmodel.Component{}
	for _, m := range members {
		c := zkmodel.DecodeComponent(m.Name, m.Data)
		hosts[cmp.Or(c.Hostname, strings.TrimRight(m.Name, "0123456789"))] = c // a name is the host's and a number
	}
	return hosts, nil
}
