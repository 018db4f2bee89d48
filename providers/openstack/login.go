package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	sdk "github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"poolkeeper/providers"
	"poolkeeper/providers/openstack/clouds"
)

// session is a cloud that we are logged in to. The token inside renews itself.
type session struct {
	cloud   clouds.Cloud
	client  *gophercloud.ProviderClient
	door    *transport
	compute *gophercloud.ServiceClient
	image   *gophercloud.ServiceClient
	network *gophercloud.ServiceClient // nil where the cloud has none
	volume  *gophercloud.ServiceClient // nil where the cloud has none
}

// login holds the session, made by whoever needs it first.
type login struct {
	lock keyed

	mu      sync.Mutex
	session *session
	closed  bool
}

func (l *login) current() *session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session
}

// keep stores a session, unless the provider was closed in the meantime.
func (l *login) keep(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		s.door.close()
	}
	l.session = s
}

func (l *login) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.session != nil {
		l.session.door.close()
	}
}

// session logs in, unless that was done before.
func (p *Provider) session(ctx context.Context) (*session, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if s := p.login.current(); s != nil {
		return s, nil
	}
	unlock, err := p.login.lock.lock(ctx, "")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s := p.login.current(); s != nil {
		return s, nil
	}
	s, err := p.connect(ctx)
	if err != nil {
		return nil, p.notLoggedIn(ctx, err)
	}
	p.health.note(atLogin, nil)
	p.login.keep(s)
	return s, nil
}

// notLoggedIn is the error of a log-in. It says nothing of what was to be asked: a
// wrong address is no image or server that is not there.
func (p *Provider) notLoggedIn(ctx context.Context, err error) error {
	op := "log in to cloud " + cmp.Or(p.cfg.Cloud, clouds.FromEnvironment)
	err = p.failure(ctx, op, err)
	if ctx.Err() != nil {
		return err
	}
	err = unheard(err)
	if e := (*cloudError)(nil); errors.As(err, &e) && e.status == http.StatusNotFound {
		plain := *e
		plain.message = "auth_url leads to no identity service: " + plain.message
		if unknownCredential(err) {
			plain.message = "the cloud does not know the application credential of clouds.yaml: " + e.message
		}
		err = &plain
	}
	p.health.note(atLogin, err)
	return err
}

// connect logs in and finds the services.
func (p *Provider) connect(ctx context.Context) (*session, error) {
	cloud, err := p.account()
	if err != nil {
		return nil, unreadable(err)
	}
	config, err := cloud.TLS()
	if err != nil {
		return nil, unreadable(err)
	}
	s := &session{cloud: cloud, door: newTransport(config, p.cfg.Rate, p.pace, p.log)}
	s.door.told = func(req *http.Request, resp *http.Response, took time.Duration, err error) {
		if !isDispensable(req.Context()) {
			p.health.answered(req, resp, err)
		}
		if err == nil {
			p.calls.answered(req, took)
		}
		if resp != nil && p.ends.answered(req, resp.TLS, p.now()) {
			s.door.close()
		}
	}
	s.door.ended = func(req *http.Request, resp *http.Response, took time.Duration, err error) {
		p.reportTask(s, req, resp, took, err)
	}
	p.ends.readFiles(cloud)
	if s.client, err = p.authenticate(ctx, cloud, s.door); err != nil {
		s.door.close()
		return nil, err
	}
	p.secrets.Set("token of "+p.cfg.Name, s.client.Token())
	p.loggedIn(ctx, cloud, s.client)
	s.client.ReauthFunc = func(ctx context.Context) error { return p.renew(ctx, s) }
	if err := s.findServices(p.cfg.Region); err != nil {
		s.door.close()
		return nil, err
	}
	p.log.Debug("Logged in", "cloud", cloud.Name, "region", cloud.Region, "credentials", cloud.Source)
	return s, nil
}

// renew replaces the token. The credentials are read anew: whoever replaces
// them in clouds.yaml need not restart us.
func (p *Provider) renew(ctx context.Context, s *session) error {
	cloud, err := p.account()
	if err != nil {
		return unreadable(err)
	}
	fresh, err := p.authenticate(ctx, cloud, s.door)
	if err != nil {
		return p.notLoggedIn(ctx, err)
	}
	p.health.note(atLogin, nil)
	p.secrets.Set("token of "+p.cfg.Name, s.client.Token(), fresh.Token())
	s.client.CopyTokenFrom(fresh)
	p.loggedIn(ctx, cloud, fresh)
	p.log.Debug("Renewed the token", "cloud", cloud.Name)
	return nil
}

// unreadable is the error of credentials that could be read when the provider
// was opened: somebody is about to replace them, later may work.
func unreadable(err error) error { return fmt.Errorf("%w: %w", providers.ErrTransient, err) }

// authenticate gets a token and the catalog of services, when it is this
// account's turn.
func (p *Provider) authenticate(ctx context.Context, cloud clouds.Cloud, door *transport) (client *gophercloud.ProviderClient, err error) {
	err = p.logins.do(ctx, accountOf(cloud), p.now, func() (err error) {
		client, err = authenticate(ctx, cloud, door)
		return err
	})
	return client, err
}

// authenticate gets a token and the catalog of services.
func authenticate(ctx context.Context, cloud clouds.Cloud, door *transport) (*gophercloud.ProviderClient, error) {
	options, err := cloud.AuthOptions()
	if err != nil {
		return nil, unreadable(err)
	}
	client, err := sdk.NewClient(options.IdentityEndpoint)
	if err != nil {
		return nil, fmt.Errorf("%w: auth_url: %w", providers.ErrUnusable, err)
	}
	client.HTTPClient = http.Client{Transport: door}
	client.UserAgent.Prepend("poolkeeper")
	if err := sdk.Authenticate(ctx, client, options); err != nil {
		return nil, err
	}
	return client, nil
}

// findServices looks the services up in the catalog. Only Nova and Glance are
// needed by all. The region is the provider's own, "" is that of clouds.yaml.
func (s *session) findServices(region string) error {
	c := s.cloud
	s.compute = s.service(c.ComputeEndpoint, "compute")
	s.image = s.service(c.ImageEndpoint, "image")
	if c.HasNetwork == nil || *c.HasNetwork {
		s.network = s.service(c.NetworkEndpoint, "network", "networking")
	}
	s.volume = s.service(c.VolumeEndpoint, "volumev3", "block-storage")
	for name, found := range map[string]bool{"compute": s.compute != nil, "image": s.image != nil} {
		if !found {
			key := "region-name of the provider"
			if region == "" {
				key = "region_name of clouds.yaml"
			}
			return fmt.Errorf("%w: %s: the catalog of cloud %s has no %s service in region %q, it has regions %s",
				providers.ErrUnusable, key, c.Name, name, c.Region, listed(s.regions()))
		}
	}
	// Catalogs give the root of a service or that of a version.
	s.image.ResourceBase = versioned(s.image.Endpoint, "v2/")
	s.compute.Endpoint = versioned(s.compute.Endpoint, "v2.1/")
	if s.network != nil {
		s.network.ResourceBase = versioned(s.network.Endpoint, "v2.0/")
	}
	return nil
}

// regions are those that the catalog has services in, sorted.
func (s *session) regions() []string {
	var names []string
	catalog, ok := s.client.GetAuthResult().(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
	})
	if !ok {
		return nil
	}
	found, err := catalog.ExtractServiceCatalog()
	if err != nil {
		return nil
	}
	for _, entry := range found.Entries {
		for _, endpoint := range entry.Endpoints {
			names = append(names, cmp.Or(endpoint.RegionID, endpoint.Region))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// service is a client of the first of types that the catalog has, or nil.
func (s *session) service(override string, types ...string) *gophercloud.ServiceClient {
	client := &gophercloud.ServiceClient{ProviderClient: s.client, Type: types[0]}
	if override != "" {
		client.Endpoint = gophercloud.NormalizeURL(override)
		return client
	}
	for _, name := range types {
		options := s.cloud.EndpointOpts()
		options.Type, options.Aliases = name, []string{name}
		// Without a version the locator looks into the catalog and calls nobody.
		if url, err := s.client.EndpointLocator(options); err == nil {
			client.Endpoint = url
			return client
		}
	}
	return nil
}

// versioned appends a version to an address that has none.
func versioned(endpoint, version string) string {
	trimmed := strings.TrimSuffix(endpoint, "/")
	for part := range strings.SplitSeq(trimmed, "/") {
		if len(part) >= 2 && part[0] == 'v' && part[1] >= '1' && part[1] <= '9' {
			return endpoint
		}
	}
	return endpoint + version
}
