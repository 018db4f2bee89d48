package configs

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// AWSDriver configures an account and region of Amazon's.
type AWSDriver struct {
	Profile string // of the shared configuration; "" is the environment's, else the machine's role
	Bucket  string // of S3, where image files wait for their import
	// Rate is how many calls a second change something; those that read may be ten times as many.
	Rate float64
	// ImportTimeout is how long Amazon may take to import an image file.
	ImportTimeout                time.Duration
	MaxServers, MaxCores, MaxRAM int // of all pools; -1 is unlimited
	MaxResources                 map[string]int

	UseInternalIP, HostKeyChecking, PublicIPv4, PublicIPv6 bool // of pools that say nothing
}

// AWSImage is how a built image gets into the account, and what it becomes there.
type AWSImage struct {
	ImportMethod     string // AWSImportSnapshot …
	Architecture     string // x86_64 or arm64
	ENASupport       bool
	IMDSSupport      string // v2.0, or "" that leaves it to Amazon
	VolumeType       string
	VolumeSize       int // GiB; 0 is the image's
	IOPS, Throughput int // 0 leaves it to Amazon
}

// The ways in which an image gets into an account.
const (
	AWSImportSnapshot  = "snapshot"
	AWSImportImage     = "image"
	AWSImportEBSDirect = "ebs-direct"
)

// AWSFilter is one condition by which an image is looked for.
type AWSFilter struct {
	Name   string
	Values []string
}

// AWSCloudImage is what an image that the account has already is looked for by.
type AWSCloudImage struct{ Filters []AWSFilter }

// AWSPool is where a pool's nodes are made.
type AWSPool struct {
	SubnetIDs        []string // none is the default one of a zone
	SecurityGroupIDs []string // none is the default one
	UseInternalIP    bool
	PublicIPv4       bool
	PublicIPv6       bool
}

// AWSLabel is what a node of a label is made of.
type AWSLabel struct {
	InstanceType     string
	Fleet            *AWSFleet // instead of InstanceType
	EBSOptimized     bool
	VolumeType       string
	VolumeSize       int // GiB; 0 is the image's
	IOPS, Throughput int // 0 leaves it to Amazon
	ProfileName      string
	ProfileARN       string
	Tags             map[string]string
	UseSpot          bool
	SpotFallback     string // SpotOnDemand, or "" for none
	IMDSv2           string // required, optional, or "" that leaves it to the image
	DedicatedHost    bool
}

// SpotOnDemand has a node made on demand where Amazon has no spot instance for it.
const SpotOnDemand = "on-demand"

// AWSFleet lets Amazon choose the type of an instance.
type AWSFleet struct {
	InstanceTypes []string
	Strategy      string
}

// awsStrategies are the ways in which a fleet chooses.
var awsStrategies = []string{"prioritized", "price-capacity-optimized", "capacity-optimized", "diversified", "lowest-price"}

// awsDriver is the entry of the table of drivers.
func awsDriver() driver {
	return driver{
		name: DriverAWS,
		defaults: func(p *Provider) {
			defaultCloud(p)
			p.BootTimeout = 3 * time.Minute
			p.ImageFormat = "raw"
			p.ImageUploadTimeout = 4 * time.Hour
			p.UnansweredCreateTimeout = 5 * time.Minute
			p.Settings = &AWSDriver{
				Rate: 2, HostKeyChecking: true, PublicIPv4: true,
				MaxServers: none, MaxCores: none, MaxRAM: none,
			}
		},
		keys:  (*loader).awsKeys,
		check: (*loader).checkAWS,
	}
}

func (d *AWSDriver) copied() any {
	one := *d
	one.MaxResources = maps.Clone(d.MaxResources)
	return &one
}

func (d *AWSDriver) limits(section string) []Limit {
	return []Limit{
		limitOf(section, "max-servers", &d.MaxServers, none), limitOf(section, "max-cores", &d.MaxCores, none),
		limitOf(section, "max-ram", &d.MaxRAM, none),
	}
}

// awsKeys is the schema of an account.
func (l *loader) awsKeys(p *Provider) fields {
	own := SettingsOf[AWSDriver](p)
	keys := l.cloudKeys(p)
	maps.Copy(keys, fields{
		"region-name":               notEmpty(&p.Region),
		"profile-name":              text(&own.Profile),
		"rate":                      perSecond(&own.Rate),
		"use-internal-ip":           flag(&own.UseInternalIP),
		"host-key-checking":         flag(&own.HostKeyChecking),
		"public-ipv4":               flag(&own.PublicIPv4),
		"public-ipv6":               flag(&own.PublicIPv6),
		"object-storage":            awsStorage(&own.Bucket),
		"image-format":              oneOf(&p.ImageFormat, "ova", "vhd", "vhdx", "vmdk", "raw"),
		"image-import-timeout":      patience(&own.ImportTimeout, 7*day),
		"unanswered-create-timeout": unansweredCreate(&p.UnansweredCreateTimeout), // ours
		"max-servers":               number(&own.MaxServers, 0, unlimited),
		"max-cores":                 number(&own.MaxCores, 0, unlimited),
		"max-ram":                   number(&own.MaxRAM, 0, unlimited),
		"max-resources":             numberMap(&own.MaxResources),
		"cloud-images":              named(&p.CloudImages, func(x CloudImage) string { return x.Name }, l.awsCloudImage),
		"diskimages":                named(&p.DiskImages, func(x ProviderImage) string { return x.Name }, l.awsImage),
		"pools":                     named(&p.Pools, poolName, l.awsPool(p)),
	})
	return keys
}

// checkAWS reports what no key of a section shows alone.
func (l *loader) checkAWS(v value, p *Provider, have present) {
	v.require(have, "region-name")
	own := SettingsOf[AWSDriver](p)
	own.ImportTimeout = cmp.Or(own.ImportTimeout, p.ImageUploadTimeout)
	for i := range p.Pools { // what the pools say may stand above
		p.Pools[i].inheritAWS(own)
	}
	for _, image := range p.DiskImages {
		settings, ok := image.Settings.(*AWSImage)
		switch {
		case !ok:
		case settings.ImportMethod == AWSImportEBSDirect && p.ImageFormat != "raw":
			v.report(lint, "the image %q cannot be uploaded: import-method ebs-direct needs image-format raw", image.Name)
		case settings.ImportMethod != AWSImportEBSDirect && own.Bucket == "":
			v.report(lint, "the image %q cannot be uploaded: import-method %s needs object-storage", image.Name, settings.ImportMethod)
		}
	}
}

// inheritAWS gives a pool what it does not say itself.
func (p *Pool) inheritAWS(own *AWSDriver) {
	pool, ok := p.Settings.(*awsPool)
	if !ok {
		return // read already
	}
	given := func(said *bool, preset bool) bool {
		if said == nil {
			return preset
		}
		return *said
	}
	p.HostKeyChecking = given(pool.hostKeys, own.HostKeyChecking)
	p.Settings = &AWSPool{
		SubnetIDs: pool.subnets, SecurityGroupIDs: pool.groups,
		UseInternalIP: given(pool.internal, own.UseInternalIP),
		PublicIPv4:    given(cmp.Or(pool.address, pool.ipv4), own.PublicIPv4),
		PublicIPv6:    given(pool.ipv6, own.PublicIPv6),
	}
}

// awsStorage decodes where image files wait for their import.
func awsStorage(out *string) decodeFunc {
	return func(v value) {
		v.require(v.decode("object storage", fields{"bucket-name": notEmpty(out)}), "bucket-name")
	}
}

// perSecond decodes a number of calls a second, which has to be more than none.
func perSecond(out *float64) decodeFunc {
	return func(v value) {
		preset := *out
		if v.says(func() Shape { return Shape{Type: Number, Default: preset, Least: new(int)} }) {
			return
		}
		fraction(out)(v)
		if *out <= 0 {
			v.report(refused, "0 would be no calls at all, %g is taken", preset)
			*out = preset
		}
	}
}

// awsCloudImage decodes an image that the account has already.
func (l *loader) awsCloudImage(v value) CloudImage {
	image := CloudImage{ConnectionType: defaultConnection, PythonPath: defaultPythonPath}
	own := &AWSCloudImage{}
	have := v.decode("cloud image", fields{
		"name":            notEmpty(&image.Name),
		"image-id":        text(&image.ImageID),
		"image-filters":   list(&own.Filters, awsFilter),
		"username":        text(&image.Username),
		"python-path":     text(&image.PythonPath),
		"shell-type":      text(&image.ShellType),
		"connection-type": text(&image.ConnectionType),
		"connection-port": port(&image.ConnectionPort),
	})
	v.require(have, "name", "username")
	switch {
	case have["image-id"] && have["image-filters"]:
		v.fail("image-id and image-filters exclude each other")
	case !have["image-id"] && !have["image-filters"]:
		v.lacks([]string{"image-id", "image-filters"}, "the cloud image needs either image-id or image-filters")
	}
	if !have["connection-port"] {
		image.ConnectionPort = ConnectionPort(image.ConnectionType)
	}
	image.Settings = own
	return image
}

// awsFilter decodes one condition, whose keys may begin as Amazon's.
func awsFilter(v value) AWSFilter {
	var f AWSFilter
	have := v.decode("image filter", fields{
		"name": text(&f.Name), "values": texts(&f.Values),
		"Name": outdated("name", text(&f.Name)), "Values": outdated("values", texts(&f.Values)),
	})
	if v.asks != nil {
		return f
	}
	if !have["name"] && !have["Name"] {
		v.lacks([]string{"name"}, `the key "name" is missing`)
	}
	if !have["values"] && !have["Values"] {
		v.lacks([]string{"values"}, `the key "values" is missing`)
	}
	return f
}

// awsImage decodes a built image.
func (l *loader) awsImage(v value) ProviderImage {
	image := ProviderImage{ConnectionType: defaultConnection, Meta: map[string]string{}}
	own := &AWSImage{
		ImportMethod: AWSImportSnapshot, Architecture: "x86_64", ENASupport: true, IMDSSupport: "v2.0", VolumeType: "gp3",
	}
	have := v.decode("provider image", fields{
		"name":            text(&image.Name),
		"pause":           flag(&image.Pause),
		"username":        text(&image.Username),
		"python-path":     text(&image.PythonPath),
		"shell-type":      text(&image.ShellType),
		"connection-type": text(&image.ConnectionType),
		"connection-port": port(&image.ConnectionPort),
		"tags":            textMap(&image.Meta),
		"import-method":   oneOf(&own.ImportMethod, AWSImportSnapshot, AWSImportImage, AWSImportEBSDirect),
		"architecture":    awsArchitecture(&own.Architecture),
		"ena-support":     flag(&own.ENASupport),
		"imds-support":    oneOf(&own.IMDSSupport, "v2.0", ""),
		"volume-type":     text(&own.VolumeType),
		"volume-size":     number(&own.VolumeSize, 1, unlimited),
		"iops":            number(&own.IOPS, 1, unlimited),
		"throughput":      number(&own.Throughput, 1, unlimited),
	})
	v.require(have, "name")
	if have["name"] {
		v.later(func() { l.checkImage(v, image.Name) })
	}
	if !have["connection-port"] {
		image.ConnectionPort = ConnectionPort(image.ConnectionType)
	}
	image.Settings = own
	return image
}

// awsArchitecture decodes an architecture, in anybody's spelling, into Amazon's.
func awsArchitecture(out *string) decodeFunc {
	return func(v value) {
		text(out)(v)
		switch spellings[*out] {
		case "amd64":
			*out = "x86_64"
		case "arm64":
			*out = "arm64"
		default:
			if !slices.Contains([]string{"i386", "x86_64_mac", "arm64_mac"}, *out) {
				v.report(refused, "Amazon has no architecture %q", *out)
			}
		}
	}
}
