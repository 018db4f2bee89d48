// Package figures is what every daemon tells of itself and of the images in the tree, as
// metrics: its version, its configuration, its session with ZooKeeper, and what is in
// service where. All is read when it is asked for, so nothing of it is lost by a restart.
package figures

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
)

// Tree is where images and components are seen; *zkmodel.Mirror is one.
type Tree interface {
	Images() []*zkmodel.Image
	Components(kind string) []*zkmodel.Component
	ProviderPauses() []*zkmodel.ProviderPause
	// Listed is nil when the children of a path could be read.
	Listed(path string) error
	// WaitSynced returns nil once the tree has been read.
	WaitSynced(ctx context.Context) error
}

// Source is what a daemon's figures are read from. All of it is required, but for Reloads.
type Source struct {
	Version string // of the program
	Config  func() *configs.Config
	Tree    Tree
	// Reloads knows how the last reload went; nil where there is none.
	Reloads *Reloads
}

// Collector tells a daemon's figures. It implements prometheus.Collector.
type Collector struct {
	of           Source
	certificates certificates
	synced       atomic.Bool // the tree was read once

	build, reloaded, reloadedAt, frozen, sealed, expiry *prometheus.Desc
	components, pools                                   *prometheus.Desc
	ready, readyAt, builtAt, builds, uploads, paused    *prometheus.Desc
	given, maintained                                   *prometheus.Desc
	failing, slow, stuck                                *prometheus.Desc
}

// New makes one.
func New(of Source) *Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("poolkeeper_"+name, help, labels, nil)
	}
	return &Collector{
		of:         of,
		build:      desc("build_info", "Always 1; the version of the program, and of Go.", "version", "goversion"),
		reloaded:   desc("configuration_last_reload_successful", "1 when the configuration was taken the last time that it was read, else 0."),
		reloadedAt: desc("configuration_last_reload_success_timestamp_seconds", "When the configuration was taken the last time."),
		frozen:     desc("configuration_frozen", "Items of the configuration that are left out because of a mistake."),
		sealed:     desc("configuration_secrets_unreadable", "Items of the configuration that are left out because a sealed value cannot be read."),
		expiry: desc("certificate_expiry_timestamp_seconds",
			"When the first certificate of a file ends that the configuration names; of a file of CAs, the last.", "use", "file"),
		components: desc("components", "Builders, and pools of launchers, that are registered.", "kind"),
		pools:      desc("provider_pools", "Pools of launchers that are registered for the provider; of what the configuration has pools for.", "provider"),
		ready:      desc("image_ready", "1 while the provider has an upload of the image that nodes can boot from, else 0.", "image", "provider"),
		readyAt:    desc("image_ready_timestamp_seconds", "When the upload was ready that nodes of the provider boot from.", "image", "provider"),
		builtAt:    desc("image_built_timestamp_seconds", "When the build was ready that nodes of the provider boot from.", "image", "provider"),
		builds:     desc("image_build_failures", "Builds of the image that failed in a row, up to the newest; 0 when that did well.", "image"),
		uploads:    desc("image_upload_failures", "Uploads of the image's newest build that failed in a row.", "image", "provider"),
		given:      desc("image_builds", "Ready builds of the image, but for those whose first uploads are under way.", "image"),
		maintained: desc("provider_paused", "1 while a person has paused the provider, else 0.", "provider"),
		failing:    desc("provider_failing_launches", "Launches in the provider that have failed since the last one that succeeded, of all labels and launchers.", "provider"),
		slow:       desc("provider_slow", "1 while a call to the provider's cloud takes more than 30 seconds, else 0.", "provider"),
		stuck:      desc("image_stuck_uploads", "Uploads of the provider whose deletion is stuck.", "provider"),
		paused:     desc("image_paused", "1 while builds of the image are paused by its configuration or an operator, else 0.", "image"),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.build, c.reloaded, c.reloadedAt, c.frozen, c.sealed, c.expiry, c.components, c.pools,
		c.ready, c.readyAt, c.builtAt, c.builds, c.uploads, c.paused, c.given, c.maintained,
		c.failing, c.slow, c.stuck,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	tell := func(desc *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	cfg := c.of.Config()
	tell(c.build, 1, c.of.Version, runtime.Version())
	tell(c.frozen, float64(len(cfg.Frozen)))
	unopened := 0
	for _, item := range cfg.Frozen {
		if strings.Contains(item.Why, configs.Unopened) {
			unopened++
		}
	}
	tell(c.sealed, float64(unopened))
	if c.of.Reloads != nil {
		ok, at := c.of.Reloads.last()
		tell(c.reloaded, number(ok))
		tell(c.reloadedAt, seconds(at))
	}
	for _, file := range filesOf(cfg) {
		if end, there := c.certificates.end(file); there {
			tell(c.expiry, seconds(end), file.use, file.path)
		}
	}
	if !c.seen() {
		return
	}
	if c.of.Tree.Listed(zkmodel.ComponentsRoot) == nil {
		for _, kind := range []string{zkmodel.KindBuilder, zkmodel.KindPool} {
			tell(c.components, float64(len(c.of.Tree.Components(kind))), kind)
		}
		for provider, f := range failuresOf(cfg, c.of.Tree.Components(zkmodel.KindPool)) {
			tell(c.failing, float64(f.launches), provider)
			tell(c.slow, number(f.slow), provider)
		}
		for provider, n := range poolsOf(cfg, c.of.Tree.Components(zkmodel.KindPool)) {
			tell(c.pools, float64(n), provider)
		}
	}
	paused := zkmodel.Paused(c.of.Tree.ProviderPauses(), time.Now())
	for _, p := range cfg.Providers {
		tell(c.maintained, number(paused[p.Name] != nil), p.Name)
	}
	if c.of.Tree.Listed(zkmodel.ImagesRoot) == nil {
		c.images(cfg, tell)
	}
}

// patience is how long a scrape waits for the first view of the tree.
const patience = 250 * time.Millisecond

// seen reports whether there is a view of the tree. One that is old, while ZooKeeper is
// away, still counts: what is in service does not change by that.
func (c *Collector) seen() bool {
	if c.synced.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.of.Tree.WaitSynced(ctx) == nil {
		c.synced.Store(true)
	}
	return c.synced.Load()
}

// images tells of the images that are configured. What cannot be read is not told: it is
// neither ready nor missing.
func (c *Collector) images(cfg *configs.Config, tell func(*prometheus.Desc, float64, ...string)) {
	known := map[string]*zkmodel.Image{}
	stuck := map[string]int{}
	for _, image := range c.of.Tree.Images() {
		known[image.Name] = image
		for _, b := range image.Builds {
			for _, u := range b.Uploads {
				if u.Stuck(time.Now()) {
					stuck[u.Provider]++
				}
			}
		}
	}
	for _, p := range cfg.Providers {
		tell(c.stuck, float64(stuck[p.Name]), p.Name)
	}
	for i := range cfg.DiskImages {
		configured := &cfg.DiskImages[i]
		image := known[configured.Name]
		if image == nil {
			image = &zkmodel.Image{Name: configured.Name}
		}
		tell(c.paused, number(configured.Pause || image.Paused), image.Name)
		if image.Unread != nil {
			continue
		}
		tell(c.builds, float64(buildFailures(image)), image.Name)
		tell(c.given, float64(builds(image, time.Now())), image.Name)
		for _, provider := range cfg.ProvidersOf(image.Name) {
			tell(c.uploads, float64(uploadFailures(image, provider.Name)), image.Name, provider.Name)
			upload := image.Serving(provider.Name, func(u *zkmodel.Upload) bool { return u.Suspect != "" })
			tell(c.ready, number(upload != nil), image.Name, provider.Name)
			if upload == nil {
				continue
			}
			tell(c.readyAt, float64(upload.StateTime), image.Name, provider.Name)
			for _, b := range image.Builds {
				if b.ID == upload.Build {
					tell(c.builtAt, float64(b.StateTime), image.Name, provider.Name)
				}
			}
		}
	}
}

// poolsOf counts the registered pools of each provider for which a configuration has pools. Of
// one that cannot be read nobody knows the provider: then nothing is told.
func poolsOf(cfg *configs.Config, registered []*zkmodel.Component) map[string]int {
	count := map[string]int{}
	for i := range cfg.Providers {
		if len(cfg.Providers[i].Pools) > 0 {
			count[cfg.Providers[i].Name] = 0
		}
	}
	for _, pool := range registered {
		if pool.Broken != nil {
			return nil
		}
		if _, ours := count[pool.ProviderName]; ours {
			count[pool.ProviderName]++
		}
	}
	return count
}

// failures are what pools report of a provider.
type failures struct {
	launches int
	slow     bool
}

// failuresOf returns what registered pools report of the providers of a configuration that have pools.
func failuresOf(cfg *configs.Config, registered []*zkmodel.Component) map[string]failures {
	all := map[string]failures{}
	for i := range cfg.Providers {
		if len(cfg.Providers[i].Pools) > 0 {
			all[cfg.Providers[i].Name] = failures{}
		}
	}
	for _, pool := range registered {
		f, ours := all[pool.ProviderName]
		if !ours || pool.Broken != nil {
			continue
		}
		for _, label := range pool.Failing {
			f.launches += label.Failed
		}
		f.slow = f.slow || pool.Slow != nil
		all[pool.ProviderName] = f
	}
	return all
}

// unsent is how long a build may wait for its first upload to begin, for a worker above all.
const unsent = 6 * time.Hour

// builds are the ready builds of an image. One whose first uploads are under way, or wait to
// begin, does not count: that nothing of it serves is no trouble yet.
func builds(image *zkmodel.Image, now time.Time) (n int) {
	for _, b := range image.Builds {
		if b.Broken != nil || b.State != zkmodel.BuildReady {
			continue
		}
		ended := func(u *zkmodel.Upload) bool { return u.Broken == nil && u.State != zkmodel.UploadUploading }
		if len(b.Uploads) == 0 && now.Sub(b.StateTime.Time()) > unsent || slices.ContainsFunc(b.Uploads, ended) {
			n++
		}
	}
	return n
}

// buildFailures are the failures in a row that end with the newest build that has ended.
func buildFailures(image *zkmodel.Image) int {
	for _, b := range slices.Backward(image.Builds) {
		switch {
		case b.Broken != nil:
		case b.State == zkmodel.BuildFailed:
			return max(1, b.Failures)
		case b.State == zkmodel.BuildReady:
			return 0
		}
	}
	return 0
}

// uploadFailures are the failures in a row of the newest ready build's uploads to a provider.
func uploadFailures(image *zkmodel.Image, provider string) int {
	for _, b := range slices.Backward(image.Builds) {
		if b.Broken != nil || b.State != zkmodel.BuildReady {
			continue
		}
		for _, u := range slices.Backward(b.Uploads) {
			switch {
			case u.Provider != provider || u.Broken != nil:
			case u.State == zkmodel.UploadFailed:
				return max(1, u.Failures)
			case u.State == zkmodel.UploadReady:
				return 0
			}
		}
		return 0
	}
	return 0
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
