package configs

import (
	"maps"
	"time"
)

// KubernetesDriver configures a cluster, of the drivers kubernetes and openshiftpods.
type KubernetesDriver struct {
	Context string // of the kubeconfig; "" is the current one
	// Token is how a node's service account gets its token: TokenSecret or TokenRequest.
	Token string
	// TokenLifetime is for how long a token that is requested is good at least.
	TokenLifetime                time.Duration
	MaxServers, MaxCores, MaxRAM int // of all pools; -1 is unlimited
	MaxResources                 map[string]int
}

// How a service account gets its token.
const (
	TokenSecret  = "secret"  // which does not end, as Nodepool's
	TokenRequest = "request" // which ends
)

// KubernetesLabel is what a label is made of in a cluster.
type KubernetesLabel struct {
	Type             string // LabelNamespace or LabelPod
	Image            string
	ImagePull        string
	ImagePullSecrets []any
	CPU, CPULimit    int // -1 is not given, as below
	Memory           int // MiB
	MemoryLimit      int
	Storage          int // MB
	StorageLimit     int
	GPU              float64 // 0 is none
	GPUResource      string
	Env              []KubernetesEnv
	NodeSelector     map[string]string
	Privileged       *bool // nil leaves it to the cluster
	SchedulerName    string
	Volumes          []any
	VolumeMounts     []any
	Labels           map[string]string
	Annotations      map[string]string
	ExtraResources   map[string]int
	Spec             map[string]any // of the pod, instead of all that is above
}

// The types of labels.
const (
	LabelNamespace = "namespace"
	LabelPod       = "pod"
)

// KubernetesEnv is a variable of a container.
type KubernetesEnv struct{ Name, Value string }

// kubernetesDriver is the entry of the table of drivers.
func kubernetesDriver() driver {
	return driver{
		name: DriverKubernetes, noImages: true, defaults: defaultKubernetes,
		keys: func(l *loader, p *Provider) fields {
			keys := l.clusterKeys(p)
			own := SettingsOf[KubernetesDriver](p)
			maps.Copy(keys, fields{
				"max-servers": number(&own.MaxServers, 0, unlimited),
				"token":       oneOf(&own.Token, TokenSecret, TokenRequest), // ours
				"pools":       named(&p.Pools, poolName, l.clusterPool(p, l.kubernetesLabel)),
			})
			return keys
		},
		check: func(l *loader, v value, p *Provider, _ present) {
			v.later(func() { setTokenLifetime(l.cfg, p) })
		},
	}
}

// openShiftPodsDriver is the entry of the table of drivers.
func openShiftPodsDriver() driver {
	return driver{
		name: DriverOpenShiftPods, noImages: true, defaults: defaultKubernetes,
		keys: func(l *loader, p *Provider) fields {
			keys := l.clusterKeys(p)
			own := SettingsOf[KubernetesDriver](p)
			maps.Copy(keys, fields{
				"max-pods":     number(&own.MaxServers, 0, unlimited),
				"max-servers":  outdated("max-pods", number(&own.MaxServers, 0, unlimited)),
				"max-projects": outdated("max-pods", number(&own.MaxServers, 0, unlimited)),
				"pools":        named(&p.Pools, poolName, l.clusterPool(p, l.openShiftPodsLabel)),
			})
			return keys
		},
		check: func(_ *loader, v value, _ *Provider, have present) {
			if v.asks != nil {
				v.asks.Required = append(v.asks.Required, "context")
				return
			}
			v.require(have, "context")
		},
	}
}

func defaultKubernetes(p *Provider) {
	p.LaunchRetries = 3
	p.LaunchTimeout = 5 * time.Minute
	p.Settings = &KubernetesDriver{Token: TokenSecret, MaxServers: none, MaxCores: none, MaxRAM: none}
}

// endless is how long what has no end is taken to last.
const endless = 365 * day

// setTokenLifetime has tokens outlive the stock and the hold of a node: a token that ended under a
// held node would lock its user out.
func setTokenLifetime(cfg *Config, p *Provider) {
	hold, ready := cfg.MaxHoldAge, time.Duration(0)
	if hold <= 0 {
		hold = endless
	}
	for _, pool := range p.Pools {
		for i := range pool.Labels {
			label, ok := cfg.Label(pool.Labels[i].Name)
			switch {
			case !ok || label.MinReady <= 0: // its nodes are made for requests, and do not wait
			case label.MaxReadyAge <= 0:
				ready = endless
			default:
				ready = max(ready, label.MaxReadyAge)
			}
		}
	}
	SettingsOf[KubernetesDriver](p).TokenLifetime = ready + hold + 2*day // a job before it
}

func (d *KubernetesDriver) copied() any {
	one := *d
	one.MaxResources = maps.Clone(d.MaxResources)
	return &one
}

func (d *KubernetesDriver) limits(section string) []Limit {
	return []Limit{
		limitOf(section, "max-servers", &d.MaxServers, none), limitOf(section, "max-cores", &d.MaxCores, none),
		limitOf(section, "max-ram", &d.MaxRAM, none),
	}
}

// clusterKeys are those of a provider that is a cluster.
func (l *loader) clusterKeys(p *Provider) fields {
	own := SettingsOf[KubernetesDriver](p)
	return fields{
		"context":        text(&own.Context),
		"launch-retries": number(&p.LaunchRetries, 1, unlimited),
		"launch-timeout": patience(&p.LaunchTimeout, 7*day), // ours
		"max-cores":      number(&own.MaxCores, 0, unlimited),
		"max-ram":        number(&own.MaxRAM, 0, unlimited),
		"max-resources":  numberMap(&own.MaxResources),
	}
}

// clusterPool decodes one pool of a cluster, whose labels are decoded by label.
func (l *loader) clusterPool(p *Provider, label func(value) PoolLabel) func(value) Pool {
	return func(v value) Pool {
		pool := defaultPool(p)
		preset := KubernetesLabel{
			CPU: none, CPULimit: none, Memory: none, MemoryLimit: none, Storage: none, StorageLimit: none,
		}
		keys := l.poolKeys(&pool)
		maps.Copy(keys, fields{
			"max-cores":                     number(&pool.MaxCores, 0, unlimited),
			"max-ram":                       number(&pool.MaxRAM, 0, unlimited),
			"max-resources":                 numberMap(&pool.MaxResources),
			"default-label-cpu":             number(&preset.CPU, 0, unlimited),
			"default-label-cpu-limit":       number(&preset.CPULimit, 0, unlimited),
			"default-label-memory":          number(&preset.Memory, 0, unlimited),
			"default-label-memory-limit":    number(&preset.MemoryLimit, 0, unlimited),
			"default-label-storage":         number(&preset.Storage, 0, unlimited),
			"default-label-storage-limit":   number(&preset.StorageLimit, 0, unlimited),
			"default-label-extra-resources": numberMap(&preset.ExtraResources),
			"labels":                        named(&pool.Labels, poolLabelName, label),
		})
		v.require(v.decode("pool", keys), "name")
		for i := range pool.Labels { // the defaults may stand below the labels
			if own, ok := pool.Labels[i].Settings.(*KubernetesLabel); ok {
				own.inherit(&preset)
			}
		}
		v.checkClusterNames(&pool, p.Driver == DriverOpenShiftPods)
		return pool
	}
}

// inherit takes over what a label does not say: a limit is the label's, else the pool's, else
// what is requested.
func (k *KubernetesLabel) inherit(pool *KubernetesLabel) {
	for _, amount := range []struct{ have, limit, preset, most *int }{
		{&k.CPU, &k.CPULimit, &pool.CPU, &pool.CPULimit},
		{&k.Memory, &k.MemoryLimit, &pool.Memory, &pool.MemoryLimit},
		{&k.Storage, &k.StorageLimit, &pool.Storage, &pool.StorageLimit},
	} {
		if *amount.have == none {
			*amount.have = *amount.preset
		}
		if *amount.limit == none {
			*amount.limit = *amount.most
		}
		if *amount.limit == none {
			*amount.limit = *amount.have
		}
	}
	extra := maps.Clone(pool.ExtraResources)
	if extra == nil {
		extra = map[string]int{}
	}
	maps.Copy(extra, k.ExtraResources)
	k.ExtraResources = extra
}
