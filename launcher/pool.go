package launcher

import (
	"cmp"
	"fmt"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/kit"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/supply"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// pool is one configured pool that this launcher serves.
type pool struct {
	id       string // the launcher id; the same for as long as the process lives
	provider configs.Provider
	config   configs.Pool
	labels   map[string]configs.PoolLabel
	// frozen says of labels why they are left out of the configuration, and rest
	// of all that the pool does not have, "" when they are not.
	frozen map[string]string
	rest   string

	record *recipe.Registration
	shown  poolState // by the record; the looking goroutine's
	since  time.Time // from when on it has been so
}

func newPool(host string, provider configs.Provider, section configs.Pool) *pool {
	p := &pool{
		id:       fmt.Sprintf("%s-PoolWorker.%s-%s-%s", host, provider.Name, section.Name, kit.RandomHex(16)),
		provider: provider, config: section, labels: map[string]configs.PoolLabel{},
	}
	for _, l := range supply.Labels(section) {
		p.labels[l.Name] = l
	}
	return p
}

// freeze notes what is left out of the configuration of the pool.
func (p *pool) freeze(cfg *configs.Config) {
	provider, name := p.provider.Name, p.config.Name
	p.frozen, p.rest = map[string]string{}, cfg.MayLackLabels(provider, name)
	for label, why := range cfg.Missed() {
		if _, has := p.labels[label]; !has {
			p.frozen[label] = why
		}
	}
	for label := range p.labels {
		if why := cfg.FrozenLabel(provider, name, label); why != "" {
			p.frozen[label] = why
		}
	}
}

// priority is the pool's own, else its provider's, else the default.
func (p *pool) priority() int {
	return cmp.Or(p.config.Priority, p.provider.Priority, schedule.DefaultPriority)
}

// checksHostKeys tells whether the host keys of a label's nodes are read.
func (p *pool) checksHostKeys(label string) bool {
	if own := p.labels[label].HostKeyChecking; own != nil {
		return *own
	}
	return p.config.HostKeyChecking
}

// poolState is what the record of a pool says of the moment.
type poolState struct {
	paused bool // launchers with other pools need not leave it requests
	broken bool // it offers no labels: its provider was never of use yet
	// trouble is why its provider cannot be used, "" when it can.
	trouble string
}

// component is the pool as it tells of itself; Zuul reads its id and labels.
func (p *pool) component(hostname, version string, state poolState) *zkmodel.Component {
	c := &zkmodel.Component{
		Hostname: hostname, ID: p.id, Kind: zkmodel.KindPool, PoolName: p.config.Name, Paused: &state.paused,
		Priority: p.priority(), ProviderName: p.provider.Name, State: zkmodel.ComponentRunning, Version: version,
		SupportedLabels: zkmodel.Strings{}, Trouble: zkmodel.BriefTrouble(state.trouble),
	}
	labels := &c.SupportedLabels
	if state.broken {
		labels = &c.TroubledLabels
	}
	for _, l := range supply.Labels(p.config) {
		if p.frozen[l.Name] == "" {
			*labels = append(*labels, l.Name)
		}
	}
	return c
}

// imageConfig is what a label boots from, as the configuration has it.
type imageConfig struct {
	diskImage  string // "" for a cloud image
	cloudImage string
	username   string
	pythonPath string
	shellType  string
	connection string
	port       int
}

// image finds the settings of a label's image in the configuration.
func (p *pool) image(cfg *configs.Config, label string) (imageConfig, error) {
	l, ok := p.labels[label]
	if !ok {
		return imageConfig{}, fmt.Errorf("find image of label %s: pool %s of %s does not have the label: %w",
			label, p.config.Name, p.provider.Name, ErrNoImage)
	}
	for _, c := range p.provider.CloudImages {
		if l.CloudImage != "" && c.Name == l.CloudImage {
			return imageConfig{
				cloudImage: c.Name, username: c.Username, pythonPath: c.PythonPath, shellType: c.ShellType,
				connection: c.ConnectionType, port: c.ConnectionPort,
			}, nil
		}
	}
	for _, d := range cfg.DiskImages {
		if d.Name != l.DiskImage {
			continue
		}
		image := imageConfig{
			diskImage: d.Name, username: d.Username, pythonPath: d.PythonPath, shellType: d.ShellType,
			connection: "ssh",
		}
		for _, here := range p.provider.DiskImages {
			if here.Name == d.Name {
				image.connection, image.port = cmp.Or(here.ConnectionType, "ssh"), here.ConnectionPort
			}
		}
		return image, nil
	}
	return imageConfig{}, fmt.Errorf("find image of label %s: neither diskimage %q nor cloud-image %q is configured: %w",
		label, l.DiskImage, l.CloudImage, ErrNoImage)
}

// poolLimits are the limits that the configuration sets for a pool.
func poolLimits(p configs.Pool) providers.Resources {
	limits := providers.Resources{}
	for name, n := range map[string]int{
		providers.Instances: p.MaxServers,
		providers.Cores:     p.MaxCores,
		providers.RAM:       p.MaxRAM,
		providers.Volumes:   p.MaxVolumes,
		providers.VolumeGB:  p.MaxVolumeGB,
	} {
		if n >= 0 {
			limits[name] = n
		}
	}
	return limits
}

// tenantLimits are the limits of the configuration, by tenant.
func tenantLimits(cfg *configs.Config) map[string]providers.Resources {
	limits := make(map[string]providers.Resources, len(cfg.TenantLimits))
	for _, t := range cfg.TenantLimits {
		limits[t.Tenant] = t.Limits
	}
	return limits
}
