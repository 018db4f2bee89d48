// Package clouds reads what an operator says about an OpenStack cloud: the
// files clouds.yaml, secure.yaml and clouds-public.yaml, or the variables OS_*,
// as OpenStack's own tools read them.
package clouds

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"poolkeeper/configs"
	"poolkeeper/configs/sealed"
	"poolkeeper/configs/yamltext"
)

// What Read fails with. The messages never hold a value of a file, because any
// of them may be a secret.
var (
	// ErrNoFile: no clouds.yaml was found.
	ErrNoFile = errors.New("no clouds.yaml")
	// ErrUnknown: the file has no such cloud.
	ErrUnknown = errors.New("unknown cloud")
	// ErrIncomplete: the entry lacks something or cannot be understood.
	ErrIncomplete = errors.New("unusable cloud entry")
)

// FromEnvironment is the name of the cloud that the variables OS_* describe; ""
// means the same.
const FromEnvironment = "envvars"

// Cloud is one entry, with all that other files say about it merged into it.
type Cloud struct {
	Name   string   `yaml:"-"`
	Source string   `yaml:"-"` // the file, or "OS_*"
	Opened []string `yaml:"-"` // the values that were sealed

	keys   *sealed.Keys
	beside Auth // what the entry says of the account beside auth

	Profile      string  `yaml:"profile"`
	Vendor       string  `yaml:"cloud"` // an older word for Profile
	AuthType     string  `yaml:"auth_type"`
	Auth         Auth    `yaml:"auth"`
	Region       string  `yaml:"region_name"`
	Regions      regions `yaml:"regions"`
	Interface    string  `yaml:"interface"`
	EndpointType string  `yaml:"endpoint_type"` // an older word for Interface

	Verify   verify `yaml:"verify"`
	Insecure bool   `yaml:"insecure"` // as Verify, and wins
	CACert   string `yaml:"cacert"`
	Cert     string `yaml:"cert"`
	Key      string `yaml:"key"`

	// Private and ForceIPv4 decide which address of a machine is used.
	Private   bool `yaml:"private"`
	ForceIPv4 bool `yaml:"force_ipv4"`
	// FloatingIPSource is "None" where there are no floating IPs.
	FloatingIPSource string    `yaml:"floating_ip_source"`
	Networks         []Network `yaml:"networks"`
	// InternalNetwork and ExternalNetwork are older words for entries of Networks.
	InternalNetwork string `yaml:"internal_network"`
	ExternalNetwork string `yaml:"external_network"`

	ComputeEndpoint string `yaml:"compute_endpoint_override"`
	ImageEndpoint   string `yaml:"image_endpoint_override"`
	NetworkEndpoint string `yaml:"network_endpoint_override"`
	VolumeEndpoint  string `yaml:"volume_endpoint_override"`
	BlockEndpoint   string `yaml:"block_storage_endpoint_override"` // an older word for VolumeEndpoint
	// HasNetwork is false where the catalog's network service is of no use.
	HasNetwork *bool `yaml:"has_network"`
}

// Network says what cannot be seen of a network in the cloud itself.
type Network struct {
	Name             string `yaml:"name"` // or its id
	RoutesExternally *bool  `yaml:"routes_externally"`
	RoutesIPv4       *bool  `yaml:"routes_ipv4_externally"`
	RoutesIPv6       *bool  `yaml:"routes_ipv6_externally"`
	DefaultInterface bool   `yaml:"default_interface"` // servers are reached on it
	NATSource        bool   `yaml:"nat_source"`        // floating IPs come from it
	NATDestination   bool   `yaml:"nat_destination"`   // floating IPs lead to it
}

// Is reports whether the entry describes a network.
func (n Network) Is(id, name string) bool { return n.Name != "" && (n.Name == id || n.Name == name) }

// checkNetworks translates the older words for networks, and refuses what contradicts itself.
func (c *Cloud) checkNetworks() error {
	yes, no := true, false
	older := c.InternalNetwork + c.ExternalNetwork
	if older != "" && len(c.Networks) > 0 {
		return fmt.Errorf("%w: networks and internal_network or external_network exclude each other", ErrIncomplete)
	}
	if c.ExternalNetwork != "" {
		c.Networks = append(c.Networks, Network{Name: c.ExternalNetwork, RoutesExternally: &yes, DefaultInterface: true})
	}
	if c.InternalNetwork != "" {
		c.Networks = append(c.Networks, Network{Name: c.InternalNetwork, RoutesExternally: &no, NATDestination: true})
	}
	for key, flag := range map[string]func(Network) bool{
		"default_interface": func(n Network) bool { return n.DefaultInterface },
		"nat_destination":   func(n Network) bool { return n.NATDestination },
		"nat_source":        func(n Network) bool { return n.NATSource },
	} {
		if len(slices.DeleteFunc(slices.Clone(c.Networks), func(n Network) bool { return !flag(n) })) > 1 {
			return fmt.Errorf("%w: networks: only one network can have %s", ErrIncomplete, key)
		}
	}
	return nil
}

// verify says whether and by which authorities certificates are checked.
type verify struct {
	Off         bool
	authorities string
}

// UnmarshalYAML takes true, false, or the path of a file with authorities.
func (v *verify) UnmarshalYAML(node *yaml.Node) error {
	var yes bool
	if node.Decode(&yes) == nil {
		*v = verify{Off: !yes}
		return nil
	}
	*v = verify{}
	return node.Decode(&v.authorities)
}

// Auth is who we are in the cloud.
type Auth struct {
	URL               string `yaml:"auth_url"`
	Token             string `yaml:"token"`
	Username          string `yaml:"username"`
	UserID            string `yaml:"user_id"`
	Password          string `yaml:"password"`
	Passcode          string `yaml:"passcode"`
	AppCredID         string `yaml:"application_credential_id"`
	AppCredName       string `yaml:"application_credential_name"`
	AppCredSecret     string `yaml:"application_credential_secret"`
	SystemScope       string `yaml:"system_scope"`
	TrustID           string `yaml:"trust_id"`
	ProjectID         string `yaml:"project_id"`
	ProjectName       string `yaml:"project_name"`
	TenantID          string `yaml:"tenant_id"`   // an older word for ProjectID
	TenantName        string `yaml:"tenant_name"` // an older word for ProjectName
	UserDomainID      string `yaml:"user_domain_id"`
	UserDomainName    string `yaml:"user_domain_name"`
	ProjectDomainID   string `yaml:"project_domain_id"`
	ProjectDomainName string `yaml:"project_domain_name"`
	DomainID          string `yaml:"domain_id"`
	DomainName        string `yaml:"domain_name"`
	DefaultDomain     string `yaml:"default_domain"`
}

// Secrets are the values that nobody may see.
func (c Cloud) Secrets() []string {
	list := append([]string{c.Auth.Token, c.Auth.Password, c.Auth.Passcode, c.Auth.AppCredSecret}, c.Opened...)
	if u, err := url.Parse(c.Auth.URL); err == nil {
		password, _ := u.User.Password()
		list = append(list, password)
	}
	return list
}

// regions is a list of names, or of mappings that overlay the entry.
type regions []region

type region struct {
	Name   string    `yaml:"name"`
	Values yaml.Node `yaml:"values"`
}

// UnmarshalYAML takes both spellings.
func (r *region) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&r.Name)
	}
	type plain region
	return node.Decode((*plain)(r))
}

// file is any of the three files.
type file struct {
	Clouds map[string]yaml.Node `yaml:"clouds"`
	Public map[string]yaml.Node `yaml:"public-clouds"`
}

// Env looks a variable of the environment up, as os.LookupEnv does.
type Env func(name string) (string, bool)

// Read finds the cloud called name. The region, unless "", is the one of the
// entry's regions to use. Sealed values of files are opened by the keys.
//
// Errors: ErrNoFile, ErrUnknown, ErrIncomplete, or the file system's.
func Read(name, region string, env Env, keys *sealed.Keys) (Cloud, error) {
	cloud := Cloud{Name: name, Source: "OS_*", keys: keys}
	if name == "" || name == FromEnvironment {
		if err := cloud.fromEnvironment(env); err != nil {
			return Cloud{}, err
		}
	} else if err := cloud.fromFiles(region, env); err != nil {
		return Cloud{}, fmt.Errorf("read cloud %s: %w", name, err)
	}
	cloud.keys = nil // a Cloud is kept
	cloud.normalize(env)
	if err := cloud.checkNetworks(); err != nil {
		return Cloud{}, fmt.Errorf("read cloud %s from %s: %w", name, cloud.Source, err)
	}
	cloud.Region = cmp.Or(region, cloud.Region)
	if cloud.Region == "" && len(cloud.Regions) > 0 {
		cloud.Region = cloud.Regions[0].Name
	}
	cloud.place()
	if cloud.Auth.URL == "" {
		return Cloud{}, fmt.Errorf("read cloud %s from %s: %w: auth_url is missing", name, cloud.Source, ErrIncomplete)
	}
	return cloud, nil
}

// normalize moves what may be written in several ways to one place.
func (c *Cloud) normalize(env Env) {
	auth, beside := reflect.ValueOf(&c.Auth).Elem(), reflect.ValueOf(c.beside)
	for i := range auth.NumField() { // all are texts; within auth counts more
		if auth.Field(i).String() == "" {
			auth.Field(i).Set(beside.Field(i))
		}
	}
	c.Verify.Off = c.Verify.Off || c.Insecure
	c.CACert = cmp.Or(c.CACert, c.Verify.authorities)
	for _, path := range []*string{&c.CACert, &c.Cert, &c.Key} {
		*path = expand(env, *path)
	}
	c.VolumeEndpoint = cmp.Or(c.VolumeEndpoint, c.BlockEndpoint)
}

// place fills the region into addresses.
func (c *Cloud) place() {
	for _, url := range []*string{&c.Auth.URL, &c.ComputeEndpoint, &c.ImageEndpoint, &c.NetworkEndpoint, &c.VolumeEndpoint} {
		*url = strings.ReplaceAll(*url, "{region_name}", c.Region)
	}
}

// fromFiles lays the sources over each other: what is known of the vendor, the
// entry itself, its region, its secrets. A later one wins key by key.
func (c *Cloud) fromFiles(region string, env Env) error {
	path, main, err := readFirst(searchPath(env, "OS_CLIENT_CONFIG_FILE", "clouds"))
	if err != nil {
		return err
	}
	c.Source = path
	entry, ok := main.Clouds[c.Name]
	if !ok {
		return fmt.Errorf("%w: %s has %s", ErrUnknown, path, names(main.Clouds))
	}
	at := yamltext.Path{}.Key("clouds").Key(c.Name)
	if err := c.overlay(path, &entry, at); err != nil {
		return err
	}
	if err := c.overlayVendor(env); err != nil {
		return err
	}
	if err := c.overlay(path, &entry, at); err != nil {
		return err
	}
	if err := c.overlayRegion(path, region); err != nil {
		return err
	}
	secret, secrets, err := readFirst(secretsFor(env, path))
	switch entry, ok := secrets.Clouds[c.Name]; {
	case errors.Is(err, ErrNoFile):
		return nil
	case err != nil:
		return err
	case ok:
		return c.overlay(secret, &entry, at)
	}
	return nil
}

// overlay decodes the node at a place of a file over what is there: keys that it lacks keep their value.
func (c *Cloud) overlay(path string, node *yaml.Node, at yamltext.Path) error {
	node, opened, err := c.keys.Tree(node, at)
	if err != nil {
		return fmt.Errorf("%w: %s: a sealed value cannot be read: %w", ErrIncomplete, path, err)
	}
	c.Opened = append(c.Opened, opened...)
	if node.Decode(c) == nil && node.Decode(&c.beside) == nil {
		return nil
	}
	// The decoder's own words quote the value.
	return fmt.Errorf("%w: %s, line %d: a value has the wrong type", ErrIncomplete, path, node.Line)
}

// overlayRegion applies what the entry says of one of its regions.
func (c *Cloud) overlayRegion(path, name string) error {
	name = cmp.Or(name, c.Region)
	for i, r := range c.Regions {
		if (r.Name == name || name == "" && i == 0) && r.Values.Kind != 0 {
			return c.overlay(path, &r.Values, nil) // what is sealed has been opened with the entry
		}
	}
	return nil
}

// overlayVendor fills in what a file with public clouds, or the profiles of openstacksdk,
// says of the entry's vendor.
func (c *Cloud) overlayVendor(env Env) error {
	vendor := cmp.Or(c.Profile, c.Vendor)
	if vendor == "" {
		return nil
	}
	path, public, err := readFirst(searchPath(env, "OS_CLIENT_VENDOR_FILE", "clouds-public"))
	if err != nil && !errors.Is(err, ErrNoFile) {
		return err
	}
	if entry, ok := public.Public[vendor]; ok {
		return c.overlay(path, &entry, yamltext.Path{}.Key("public-clouds").Key(vendor))
	}
	if entry, ok := configs.VendorProfile(vendor); ok {
		return c.overlay("the profile of "+vendor, &entry, nil)
	}
	return nil
}

func names(entries map[string]yaml.Node) string {
	if len(entries) == 0 {
		return "no clouds"
	}
	return strings.Join(slices.Sorted(maps.Keys(entries)), ", ")
}
