// Package openstack is the provider for OpenStack clouds: images in Glance,
// nodes in Nova, with Neutron's networks and, for nodes that boot from a
// volume, Cinder.
//
// It keeps no state of its own. What it made it recognises by the metadata in
// the cloud, so that every step can be repeated after a crash.
package openstack

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/configs/redact"
	"poolkeeper/configs/sealed"
	"poolkeeper/configs/statsd"
	"poolkeeper/providers"
	"poolkeeper/providers/openstack/clouds"
)

// How long we believe what changes rarely. A cloud that says that we are wrong
// (400, 404) makes us ask again at once.
const (
	flavorAge  = time.Hour
	networkAge = time.Hour
	zoneAge    = time.Hour
	imageAge   = 5 * time.Minute
	missAge    = 30 * time.Second // of what was not found
)

// Options are what a Provider needs besides its configuration.
type Options struct {
	Logger hclog.Logger // nil is silent
	// Secrets is told the credentials and tokens that are read; nil is not.
	Secrets *redact.Secrets
	// Env is where the variables OS_*, HOME … are looked up; nil is the
	// process's environment.
	Env clouds.Env
	// Logins are those of the process; nil shares none.
	Logins *Logins
	// Statsd receives the figures of calls that openstacksdk sends for Nodepool; nil sends none.
	Statsd *statsd.Client
	// CallTime is how long one try of a call may take, uploads of data
	// excepted; 0 is a minute.
	CallTime time.Duration
	// RetryTime is for how long a call that failed is tried again; 0 is a minute.
	RetryTime time.Duration
}

// Provider is one project in one region of one cloud.
type Provider struct {
	cfg configs.Provider
	log hclog.Logger
	env clouds.Env

	secrets *redact.Secrets
	statsd  *statsd.Client // nil sends nothing
	pace    pace
	now     func() time.Time
	pick    func(n int) int // a random number below n
	ipv6    bool            // this host can reach IPv6 addresses

	accountMu   sync.Mutex
	lastAccount *clouds.Cloud // what was read last without an error

	logins   *Logins
	login    login
	health   *health
	ends     ends
	calls    calls
	roster   roster
	gate     *gate
	creating keyed
	leaks    leaks
	disks    volumeLimits

	flavors  cached[[]flavor]
	networks cached[[]network]
	paths    cached[paths]
	groups   cached[[]groups.SecGroup]
	zones    cached[zoneList]
	zoneless atomic.Bool               // the last list of zones failed
	images   cached[map[string]string] // of cloud-images: name to id
}

var (
	_ providers.Provider = (*Provider)(nil)
	_ providers.Cleaner  = (*Provider)(nil)
	_ providers.Teller   = (*Provider)(nil)
	_ providers.Checker  = (*Provider)(nil)
	_ providers.Ender    = (*Provider)(nil)
	_ providers.Asker    = (*Provider)(nil)
)

// New reads what clouds.yaml or the environment says about the provider's
// cloud. It does not talk to the cloud yet: a cloud that is down when a daemon
// starts is asked again with every call.
//
// Errors: providers.ErrInvalid, naming the provider and the cloud.
func New(cfg configs.Provider, opts Options) (*Provider, error) {
	p := &Provider{
		cfg: cfg, log: opts.Logger, env: opts.Env, secrets: opts.Secrets, statsd: opts.Statsd, pace: defaultPace(),
		now: time.Now, pick: rand.IntN, ipv6: reachesIPv6(),
		flavors: cached[[]flavor]{age: flavorAge}, networks: cached[[]network]{age: networkAge},
		paths: cached[paths]{age: networkAge}, groups: cached[[]groups.SecGroup]{age: networkAge}, zones: cached[zoneList]{aged: zoneList.age}, images: cached[map[string]string]{age: imageAge},
	}
	if p.logins = opts.Logins; p.logins == nil {
		p.logins = &Logins{}
	}
	if p.log == nil {
		p.log = hclog.NewNullLogger()
	}
	p.log = p.log.Named("openstack").With("provider", cfg.Name)
	p.health = newHealth(p.log)
	if p.env == nil {
		p.env = os.LookupEnv
	}
	p.pace.call = cmp.Or(opts.CallTime, p.pace.call)
	p.pace.total = cmp.Or(opts.RetryTime, p.pace.total)
	p.gate = newGate(p.room)
	p.roster.list = p.servers
	if _, err := p.account(); err != nil {
		return nil, fmt.Errorf("open openstack provider %s: %w: %w", cfg.Name, providers.ErrInvalid, err)
	}
	return p, nil
}

// Name implements providers.Provider.
func (p *Provider) Name() string { return p.cfg.Name }

// Close implements providers.Provider.
func (p *Provider) Close() error {
	p.login.close()
	return nil
}

// account reads the credentials again, so that ones that were replaced count
// from the next log-in on. While the files cannot be used, because one is half written for example, the old
// ones stay in use.
func (p *Provider) account() (clouds.Cloud, error) {
	cloud, err := p.readAccount()
	p.accountMu.Lock()
	defer p.accountMu.Unlock()
	if err == nil {
		p.lastAccount = &cloud
		return cloud, nil
	}
	if p.lastAccount == nil {
		return clouds.Cloud{}, err
	}
	p.log.Warn("Failed to read clouds.yaml, the old credentials stay in use", "error", err)
	return *p.lastAccount, nil
}

func (p *Provider) readAccount() (clouds.Cloud, error) {
	var keys *sealed.Keys
	if p.cfg.SecretKey != "" {
		keys, _ = sealed.Read(p.cfg.SecretKey) // keys that cannot be read say why, once they are needed
	}
	cloud, err := clouds.Read(p.cfg.Cloud, p.cfg.Region, p.env, keys)
	if err != nil {
		return clouds.Cloud{}, err
	}
	p.secrets.Add(cloud.Secrets()...)
	if _, err := cloud.AuthOptions(); err != nil {
		return clouds.Cloud{}, err
	}
	_, err = cloud.TLS()
	return cloud, err
}

// reachesIPv6 reports whether this host has an address of the IPv6 internet.
func reachesIPv6() bool {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is6() && isPublic(prefix.Addr()) {
			return true
		}
	}
	return false
}
