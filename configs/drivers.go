package configs

import (
	"maps"
	"slices"
)

// The drivers that Poolkeeper has.
const (
	DriverOpenStack = "openstack"
	DriverStatic    = "static"
	DriverFake      = "fake"
	DriverLocal     = "local"
	// The two are clusters; the second puts its pods into namespaces that are there.
	DriverKubernetes    = "kubernetes"
	DriverOpenShiftPods = "openshiftpods"
	// Its nodes are slots on nodes of others.
	DriverMetastatic = "metastatic"
	DriverAWS        = "aws"
)

// drivers is the table of them. A new driver is one line here, and a function that
// returns its entry beside its configuration type; providers/drivers has the other table.
func drivers() []driver {
	return []driver{
		openStackDriver(),
		staticDriver(),
		fakeDriver(),
		localDriver(),
		kubernetesDriver(),
		openShiftPodsDriver(),
		metastaticDriver(),
		awsDriver(),
	}
}

// driver is what the configuration knows of one driver.
type driver struct {
	name string
	// defaults are what a section means where it says nothing; nil is defaultProvider's.
	defaults func(p *Provider)
	// keys is the schema of a section beyond what all drivers have.
	keys func(l *loader, p *Provider) fields
	// check, when set, reports what is wrong with a section as a whole.
	check func(l *loader, v value, p *Provider, have present)
	// noImages says that it stores no images.
	noImages bool
	// cloudsYAML says that the key cloud names an entry of clouds.yaml.
	cloudsYAML bool
	// backing, when set, says on nodes of which labels those of its labels are slots.
	backing func(p *Provider) map[string]string
}

// settings are what a driver's configuration type implements that has limits. They are
// copied with a configuration, since setting a limit changes them.
type settings interface {
	copied() any
	limits(section string) []Limit
}

// SettingsOf are the settings of a provider, nil where its driver has none or others.
func SettingsOf[T any](p *Provider) *T {
	s, _ := p.Settings.(*T)
	return s
}

// driverNamed finds a driver; the zero driver is none.
func driverNamed(name string) (driver, bool) {
	all := drivers()
	i := slices.IndexFunc(all, func(d driver) bool { return d.name == name })
	if i < 0 {
		return driver{}, false
	}
	return all[i], true
}

// Drivers are the names of the drivers that Poolkeeper has, sorted.
func Drivers() []string {
	var names []string
	for _, d := range drivers() {
		names = append(names, d.name)
	}
	slices.Sort(names)
	return names
}

// foreignDrivers are those that only Nodepool has.
var foreignDrivers = map[string]bool{
	"azure": true, "gce": true, "ibmvpc": true, "openshift": true, "runc": true, "example": true, "test": true,
}

// driverNames are those of all drivers that are known, ours and others'.
func driverNames() []string {
	return slices.Concat(slices.Collect(maps.Keys(foreignDrivers)), Drivers())
}
