package configs

import (
	"time"
)

// What a configuration means where it says nothing. Each function gives one
// mapping of the file its defaults; the schema then overwrites what is given.
// Where Nodepool's code and its documentation differ, the code counts.

// The orders of pools.
const (
	// OrderSpread takes the pool of which the smallest share is in use.
	OrderSpread = "spread"
	// OrderFill takes the pool that is configured first, until it is full.
	OrderFill = "fill"
)

// none marks a limit that is not set.
const none = -1

const (
	defaultZooKeeperPort = 2281
	defaultUsername      = "zuul"
	defaultPythonPath    = "auto"
	defaultConnection    = "ssh"
	defaultImageFormat   = "qcow2"
	defaultPriority      = 100
	defaultRebuildAge    = 24 * time.Hour
	defaultBuildTimeout  = 8 * time.Hour
)

func defaultConfig() *Config {
	return &Config{
		BuildLogDir:       "/var/log/nodepool/builds",
		BuildLogRetention: 7,
		WebApp:            WebApp{Port: 8005, ListenAddress: "0.0.0.0"},
		ZooKeeper:         ZooKeeper{Timeout: 10 * time.Second},
		BuildDiskReserve:  1 << 30,
		LauncherGrace:     2 * time.Minute,
		BuildEnvAllow:     basicEnvironment(),
		PoolOrder:         OrderSpread,
	}
}

// basicEnvironment is what every build may see of the daemon's environment:
// where programs are, the language, and the way out. TMPDIR is not in it:
// diskimage-builder calls `mktemp -t`, for which TMPDIR wins over the private
// folder of the build, and what is outside of that is not found by the sweep.
func basicEnvironment() []string {
	return []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "LC_*", "TZ",
		"http_proxy", "https_proxy", "ftp_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "DIB_*",
	}
}

func defaultDiskImage(name string) DiskImage {
	return DiskImage{
		Name:            name,
		EnvVars:         EnvVars{},
		Metadata:        map[string]string{},
		RebuildAge:      defaultRebuildAge,
		RebuildTimezone: "UTC",
		RebuildJitter:   10,
		KeepBuilds:      2,
		BuildTimeout:    defaultBuildTimeout,
		DIBCmd:          "disk-image-create",
		Username:        defaultUsername,
		PythonPath:      defaultPythonPath,
	}
}

func defaultProvider(name, driver string) Provider {
	p := Provider{Name: name, Driver: driver, MaxConcurrency: none, Priority: defaultPriority}
	if d, _ := driverNamed(driver); d.defaults != nil {
		d.defaults(&p)
	}
	return p
}

// defaultCloud is for drivers that store images and launch nodes.
func defaultCloud(p *Provider) {
	p.BootTimeout = time.Minute
	p.LaunchTimeout = time.Hour
	p.LaunchRetries = 3
	p.ImageUploadTimeout = time.Hour
	p.ImageNameFormat = "{image_name}-{timestamp}"
}

// defaultOpenStack is for drivers with OpenStack's keys.
func defaultOpenStack(p *Provider) {
	defaultCloud(p)
	p.Rate = time.Second
	p.PortCleanupEvery = 10 * time.Minute
	p.UnansweredCreateTimeout = 5 * time.Minute
}

func defaultPool(provider *Provider) Pool {
	return Pool{
		MaxServers: none, MaxCores: none, MaxRAM: none, MaxVolumes: none, MaxVolumeGB: none,
		AutoFloatingIP:  true,
		HostKeyChecking: true,
		NodeAttributes:  map[string]any{},
		Priority:        provider.Priority,
	}
}

func defaultPoolLabel() PoolLabel { return PoolLabel{VolumeSize: 50} }

func defaultStaticNode() StaticNode {
	return StaticNode{
		Username: defaultUsername, Timeout: 5 * time.Second, HostKeyChecking: true,
		ConnectionType: defaultConnection, PythonPath: defaultPythonPath, MaxParallelJobs: 1,
	}
}

// ConnectionPort is where a connection type listens unless the file says.
func ConnectionPort(connectionType string) int {
	if connectionType == "winrm" {
		return 5986
	}
	return 22
}

// inheritNetworks gives the labels of a pool what they do not say themselves.
func (p *Pool) inheritNetworks() {
	for i := range p.Labels {
		if p.Labels[i].Networks == nil {
			p.Labels[i].Networks = p.Networks
		}
	}
}
