// Package configs holds the configuration: its types, its defaults, strict
// loading in Nodepool's own format, and validation. It knows nothing of
// ZooKeeper, clouds or daemons.
package configs

import (
	"crypto/ed25519"
	"time"
)

// Config is one loaded configuration, defaults filled in, inheritance of
// images resolved. Treat it as immutable: a reload makes a new one.
type Config struct {
	Path       string // the file it was read from
	SecurePath string // the file with the secrets; "" without one
	SecretKey  string // the file with the keys that open sealed values; "" without one
	HostPath   string // the file with what is the host's own; "" without one

	// ConfigSigners are the keys of those who may push a configuration, as the secure
	// file has them; nil when it does not say.
	ConfigSigners []ed25519.PublicKey
	// FleetDir is where the last good version of a pushed configuration is kept.
	FleetDir string
	// Only are patterns of the names of images that a builder of this host builds; nil is
	// all. See Selects.
	Only []string
	// HostLabels are what this host is called, for images that are built only on some hosts.
	HostLabels []string

	ElementsDir       string // directories with elements, separated by colons
	ImagesDir         string
	BuildLogDir       string
	BuildLogRetention int           // builds an image; negative keeps all
	MaxHoldAge        time.Duration // 0 is unlimited
	WebApp            WebApp
	ZooKeeper         ZooKeeper
	DiskImages        []DiskImage // without abstract ones, parents applied
	Labels            []Label
	Providers         []Provider
	Skipped           []SkippedProvider // of drivers that we do not have
	TenantLimits      []TenantLimit

	MaxConcurrentBuilds  int // of all builders together; 0 is unlimited
	MaxConcurrentUploads int // of all builders together; 0 is unlimited
	// BuildEnvAllow names the variables of the daemon's environment that a
	// build sees; one that ends with * names all that begin so.
	BuildEnvAllow []string
	// HookEnvAllow names the variables of the daemon's environment that a
	// post-upload-hook sees although they look like secrets; * as above.
	HookEnvAllow []string
	// Foreign are the providers of drivers that Poolkeeper does not have.
	Foreign []ForeignProvider
	// LauncherGrace is how long requests that only a launcher which has left could
	// serve wait for it to come back; 0 is not at all.
	LauncherGrace    time.Duration
	BuildDiskReserve int64 // bytes that a build must leave free in ImagesDir

	// PoolOrder is which of several pools of the same priority takes a request.
	PoolOrder string // OrderSpread or OrderFill

	Waves   []Wave   // of builds, that begin by a schedule
	Hooks   []Hook   // what others tell, that begins waves
	Sources []Source // what is looked at, that begins waves
	Events  *Events  // what is told of changes; nil tells nothing

	// Frozen are the items that are left out.
	Frozen []Frozen

	// HalfRead is why a file beside the configuration, clouds.yaml, could not be decoded: a daemon that runs
	// keeps its configuration then, as the file may be half written. Nil if all could.
	HalfRead error
	// Warnings are findings that do not stop a daemon, one line each, naming
	// file, line and key.
	Warnings []string

	inputs inputs         // the files that it was read from
	opened []string       // the values that were sealed
	places map[string]int // the lines of keys; nil when nobody asked
	doubts doubts         // what no value shows
}

// ZooKeeper says how to reach the ensemble.
type ZooKeeper struct {
	Servers []string // host:port
	Chroot  string   // "" or "/path"; one for all servers
	Timeout time.Duration
	TLS     *ZooKeeperTLS  // nil speaks plain text
	Auth    *ZooKeeperAuth // nil authenticates by TLS alone, or not at all
}

// ZooKeeperTLS names the PEM files of a TLS connection.
type ZooKeeperTLS struct {
	Cert, Key, CA  string
	VerifyHostname bool // off by default, as the certificates that Nodepool's sites use want it
}

// ZooKeeperAuth is the user of digest authentication.
type ZooKeeperAuth struct {
	User      string
	Password  string `json:"-" yaml:"-"`
	OwnerOnly bool   // what we make is closed to others; Zuul then needs the same user
}

// DiskImage is one image to be built.
type DiskImage struct {
	Name              string
	Release           string
	Elements          []string
	EnvVars           EnvVars
	SecretEnvVars     []string // names of EnvVars to be masked in logs, sorted
	Formats           []string // what the image asks for; Config.Formats adds the providers'
	KeepFormats       []string
	DeleteAfterUpload bool
	RebuildAge        time.Duration // 0 never rebuilds because of age
	RebuildSchedule   string        // five cron fields or @daily …; "" has none
	RebuildTimezone   string        // of schedule and windows; "UTC" by default
	RebuildJitter     int           // percent of RebuildAge, or of the time between two of the schedule
	BuildWindows      []BuildWindow // scheduled builds start only within; none is always
	KeepBuilds        int           // ready builds, and uploads a provider, that are kept
	Architecture      string        // as Go names it (amd64, arm64); "" fits every builder
	HostLabels        []string      // all of which a host must have that builds it
	BuildTimeout      time.Duration
	DIBCmd            string
	Pause             bool
	Username          string
	PythonPath        string
	ShellType         string
	Metadata          map[string]string
	Validate          *Validate // nil lets new uploads serve at once
	Canary            *Canary   // never changed once it is there; nil has a build serve as soon as it is ready
}

// EnvVars are variables of a build by name. Printing them shows names only,
// because their values are often secrets.
type EnvVars map[string]string

// Label is a kind of node that requests may name.
type Label struct {
	Name        string
	MinReady    int
	MaxReadyAge time.Duration // 0 is unlimited
}

// TenantLimit caps what one tenant may use over all providers.
type TenantLimit struct {
	Tenant string
	Limits map[string]int // by resource name: instances, cores, ram, volumes …
}

// Provider is one cloud. Keys that a driver has no use for keep their zero
// value.
type Provider struct {
	Name           string
	Driver         string // openstack, kubernetes, local …
	MaxConcurrency int    // -1 is unlimited
	Priority       int    // lower is preferred; 100 by default

	Cloud              string // clouds.yaml entry
	Region             string
	Rate               time.Duration // between two calls of the cloud's API
	BootTimeout        time.Duration
	LaunchTimeout      time.Duration
	LaunchRetries      int
	ImageUploadTimeout time.Duration
	ImageNameFormat    string
	ImageFormat        string // what the provider takes: qcow2, raw …; never "" once loaded
	ImageImportMethod  string // "" uploads; glance-direct or web-download let the cloud import
	ImageImportURL     string // web-download only: where the cloud finds the files of ImagesDir
	PostUploadHook     string
	CleanFloatingIPs   bool
	PortCleanupEvery   time.Duration // 0 is off
	// UnansweredCreateTimeout is for how long after it was asked the cloud may still make
	// a machine whose creation it did not answer.
	UnansweredCreateTimeout time.Duration

	// SecretKey is the file with the keys that open sealed values of its cloud's entry in
	// clouds.yaml; "" where no cloud is named there, and without keys.
	SecretKey string

	DiskImages  []ProviderImage
	CloudImages []CloudImage
	Pools       []Pool

	// Settings are what only its driver has: a pointer to the driver's configuration type
	// (LocalDriver, FakeDriver …), nil for a driver without one. See SettingsOf.
	Settings any
}

// SkippedProvider is a provider whose driver Nodepool has and we do not. It is
// left alone: what the tree holds of it belongs to somebody else.
type SkippedProvider struct {
	Name   string
	Driver string
}

// ProviderImage is a built image as one provider uses it.
type ProviderImage struct {
	Name           string
	Pause          bool
	ConfigDrive    *bool // nil leaves it to the cloud
	ConnectionType string
	ConnectionPort int
	Meta           map[string]string
	// Username, PythonPath and ShellType are what only this provider has; "" is the image's.
	Username, PythonPath, ShellType string
	// Settings are what only its driver has: a pointer to its type (AWSImage), or nil.
	Settings any
}

// CloudImage is an image that the cloud has already.
type CloudImage struct {
	Name           string
	ImageID        string
	ImageName      string
	ConfigDrive    *bool
	Username       string
	PythonPath     string
	ShellType      string
	ConnectionType string
	ConnectionPort int
	// Settings are what only its driver has: a pointer to its type (AWSCloudImage), or nil.
	Settings any
}

// Pool is a part of a provider with limits and labels of its own.
type Pool struct {
	Name                string
	MaxServers          int            // -1 is unlimited, 0 disables the pool
	MaxCores            int            // -1 is unlimited
	MaxRAM              int            // MiB; -1 is unlimited
	MaxVolumes          int            // -1 is unlimited
	MaxVolumeGB         int            // -1 is unlimited
	MaxResources        map[string]int // by name: what only some drivers have
	IgnoreProviderQuota bool
	AvailabilityZones   []string
	Networks            []string
	SecurityGroups      []string
	AutoFloatingIP      bool
	HostKeyChecking     bool
	NodeAttributes      map[string]any
	Priority            int // the provider's unless given
	Labels              []PoolLabel
	Nodes               []StaticNode // driver static only
	// Settings are what only its driver has: a pointer to its type (AWSPool), or nil.
	Settings any
}

// PoolLabel says how a pool makes a node of a label.
type PoolLabel struct {
	Name               string
	DiskImage          string
	CloudImage         string
	FlavorName         string
	MinRAM             int // MiB; 0 asks for nothing
	Cores              int // driver local; 0 means its default
	KeyName            string
	ConsoleLog         bool
	BootFromVolume     bool
	VolumeSize         int // GB
	InstanceProperties map[string]string
	DynamicProperties  map[string]string
	UserData           string
	Networks           []string
	HostKeyChecking    *bool // nil means the pool's

	// Connection is how Zuul reaches nodes of a label that boots from no image of the
	// configuration, with their PythonPath and ShellType; "" where it boots from one.
	Connection string
	PythonPath string
	ShellType  string
	// Settings are what only its driver has: a pointer to its type (KubernetesLabel), or nil.
	Settings any
}

// ForeignProvider is what is known of a provider of a driver that Poolkeeper lacks.
type ForeignProvider struct {
	Name, Driver string
	Images       []string // that it lists
}
