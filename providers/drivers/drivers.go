// Package drivers is the table of the drivers: how each opens a provider. It is what a
// process asks that knows sections of the configuration, and no driver.
package drivers

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/configs/statsd"
	"poolkeeper/providers"
	"poolkeeper/providers/aws"
	"poolkeeper/providers/fake"
	"poolkeeper/providers/kubernetes"
	"poolkeeper/providers/local"
	"poolkeeper/providers/metastatic"
	"poolkeeper/providers/openstack"
	"poolkeeper/providers/static"
)

// table has a line for each driver; configs has the other table.
func table() map[string]driver {
	return map[string]driver{
		configs.DriverOpenStack:     made(openOpenStack),
		configs.DriverStatic:        made(plain(static.New)),
		configs.DriverFake:          made(logged(fake.New)),
		configs.DriverLocal:         made(openLocal).runs(localGuests, local.ExplainSnapshots),
		configs.DriverKubernetes:    made(cluster(kubernetes.New)),
		configs.DriverOpenShiftPods: made(cluster(kubernetes.NewPods)),
		configs.DriverMetastatic:    made(plain(metastatic.New)),
		configs.DriverAWS:           made(openAWS),
	}
}

// made is the entry of a driver whose providers are of the type P: what they can is what P implements.
func made[P providers.Provider](open func(configs.Provider, *Process) (P, error)) driver {
	var none P
	_, checks := any(none).(providers.Checker)
	return driver{
		open:   func(cfg configs.Provider, p *Process) (providers.Provider, error) { return open(cfg, p) },
		checks: checks,
	}
}

// driver is what the table knows of one driver.
type driver struct {
	// open makes the provider of a section.
	open func(cfg configs.Provider, p *Process) (providers.Provider, error)
	// guests, when set, says how the machines of a section run on this host, and why.
	// It tries nothing out.
	guests func(cfg configs.Provider) (accel, why string)
	// snapshots, when set, says which images they are resumed from, likewise.
	snapshots func(cfg configs.Provider) ([]Snapshot, error)
	// checks says that its providers are a providers.Checker, before one of them is opened.
	checks bool
}

// runs is the driver whose machines run on this host.
func (d driver) runs(guests func(cfg configs.Provider) (accel, why string), snapshots func(cfg configs.Provider) ([]Snapshot, error)) driver {
	d.guests, d.snapshots = guests, snapshots
	return d
}

// Snapshot says whether machines of an image are resumed from a snapshot, on this host.
type Snapshot = local.SnapshotState

// Process is what all providers of one process share. Logger is required.
type Process struct {
	Logger  hclog.Logger
	Secrets *redact.Secrets // that no error may show; nil knows none
	// CallTime is how long a cloud may take for one call, and RetryTime for how long a
	// call that failed is tried again; 0 is the driver's own.
	CallTime, RetryTime time.Duration
	// Statsd receives Nodepool's figures of calls to clouds; nil sends none.
	Statsd *statsd.Client

	logins openstack.Logins
}

// Open makes the provider of a section. No secret shows in its errors, nor in those of
// the provider.
//
// Errors: providers.ErrNotSupported for a driver that is not in the table; those of the
// driver.
func (p *Process) Open(cfg configs.Provider) (providers.Provider, error) {
	d, known := table()[cfg.Driver]
	if !known {
		return nil, fmt.Errorf("open provider %s: driver %q: %w", cfg.Name, cfg.Driver, providers.ErrNotSupported)
	}
	opened, err := d.open(cfg, p)
	if err != nil {
		return nil, p.Secrets.Error(err)
	}
	return providers.Redacted(opened, p.Secrets), nil
}

// Checks reports whether the clouds of a driver can be asked for what the configuration
// names (providers.Checker).
func Checks(name string) bool { return table()[name].checks }

// Guests says how the machines of a section run on this host, and why; false for drivers
// whose machines run elsewhere. It tries nothing out.
func Guests(cfg configs.Provider) (accel, why string, here bool) {
	d := table()[cfg.Driver]
	if d.guests == nil {
		return "", "", false
	}
	accel, why = d.guests(cfg)
	return accel, why, true
}

// Snapshots says of the images of a section from which of them machines are resumed on this host; none for drivers that
// resume nothing. It tries nothing out.
func Snapshots(cfg configs.Provider) ([]Snapshot, error) {
	d := table()[cfg.Driver]
	if d.snapshots == nil {
		return nil, nil
	}
	return d.snapshots(cfg)
}

func openOpenStack(cfg configs.Provider, p *Process) (*openstack.Provider, error) {
	return openstack.New(cfg, openstack.Options{
		Logger: p.Logger, Secrets: p.Secrets, Logins: &p.logins, CallTime: p.CallTime, RetryTime: p.RetryTime,
		Statsd: p.Statsd,
	})
}

func openAWS(cfg configs.Provider, p *Process) (*aws.Provider, error) {
	return aws.New(cfg, aws.Options{Logger: p.Logger, Secrets: p.Secrets, CallTime: p.CallTime, RetryTime: p.RetryTime})
}

// logged is for drivers that take a logger, and share nothing else.
func logged[P providers.Provider](open func(configs.Provider, hclog.Logger) (P, error)) func(configs.Provider, *Process) (P, error) {
	return func(cfg configs.Provider, p *Process) (P, error) { return open(cfg, p.Logger) }
}

// cluster is for drivers of a Kubernetes cluster.
func cluster(open func(configs.Provider, kubernetes.Options) (*kubernetes.Provider, error)) func(configs.Provider, *Process) (*kubernetes.Provider, error) {
	return func(cfg configs.Provider, p *Process) (*kubernetes.Provider, error) {
		return open(cfg, kubernetes.Options{Secrets: p.Secrets, CallTime: p.CallTime})
	}
}

// plain is for drivers that cannot fail to open.
func plain[P providers.Provider](open func(configs.Provider) P) func(configs.Provider, *Process) (P, error) {
	return func(cfg configs.Provider, _ *Process) (P, error) { return open(cfg), nil }
}

func openLocal(cfg configs.Provider, p *Process) (*local.Provider, error) {
	return local.New(cfg, local.Options{Logger: p.Logger})
}

func localGuests(cfg configs.Provider) (accel, why string) {
	c, err := local.Explain(cfg)
	if err == nil {
		return c.Accel, c.Why
	}
	if settings := configs.SettingsOf[configs.LocalDriver](&cfg); settings != nil {
		accel = settings.Accel
	}
	if errors.Is(err, providers.ErrNotFound) {
		return accel, "nobody has found out yet on this host: a launcher does when it starts"
	}
	return accel, "it cannot be told: " + err.Error()
}
