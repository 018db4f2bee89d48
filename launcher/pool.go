package launcher

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// defaultPriority is that of a pool which has none.
const defaultPriority = 100

// pool is one configured pool that this launcher serves.
type pool struct {
	id       string // the launcher id; the same for as long as the process lives
	provider configs.Provider
	config   configs.Pool
	labels   map[string]configs.PoolLabel

	record *recipe.Registration
	shown  poolState // by the record; the looking goroutine's
	since  time.Time // from when on it has been so
}

// unique is a name that no other process has.
func unique() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails (crypto/rand since Go 1.24)
	return hex.EncodeToString(bits[:])
}

func newPool(host string, provider configs.Provider, section configs.Pool) *pool {
	p := &pool{
		id:       fmt.Sprintf("%s-PoolWorker.%s-%s-%s", host, provider.Name, section.Name, unique()),
		provider: provider, config: section, labels: map[string]configs.PoolLabel{},
	}
	for _, l := range labelsOf(section) {
		p.labels[l.Name] = l
	}
	return p
}

// labelsOf are the labels of a pool: its own, or those of its machines.
func labelsOf(section configs.Pool) []configs.PoolLabel {
	labels := slices.Clone(section.Labels)
	for _, n := range section.Nodes {
		for _, name := range n.Labels {
			if !slices.ContainsFunc(labels, func(l configs.PoolLabel) bool { return l.Name == name }) {
				labels = append(labels, configs.PoolLabel{Name: name})
			}
		}
	}
	return labels
}

// priority is the pool's own, else its provider's, else the default.
func (p *pool) priority() int {
	return cmp.Or(p.config.Priority, p.provider.Priority, defaultPriority)
}

// poolState is what the record of a pool says of the moment.
type poolState struct {
	paused bool // launchers with other pools need not leave it requests
	broken bool // it has no labels: its provider cannot be used
}

// component is the pool as it tells of itself; Zuul reads its id and labels.
func (p *pool) component(hostname, version string, state poolState) *zkmodel.Component {
	c := &zkmodel.Component{
		Hostname: hostname, ID: p.id, Kind: zkmodel.KindPool, PoolName: p.config.Name, Paused: &state.paused,
		Priority: p.priority(), ProviderName: p.provider.Name, State: zkmodel.ComponentRunning, Version: version,
		SupportedLabels: zkmodel.Strings{},
	}
	if state.broken {
		return c
	}
	for _, l := range labelsOf(p.config) {
		c.SupportedLabels = append(c.SupportedLabels, l.Name)
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
