package openstack

import (
	"context"
	"slices"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"

	"poolkeeper/providers"
)

// What Nova calls the states that matter to us.
const (
	statusActive      = "ACTIVE"
	statusError       = "ERROR"
	statusDeleted     = "DELETED"
	statusSoftDeleted = "SOFT_DELETED"
	taskDeleting      = "deleting"

	typeFloating = "floating" // of an address
)

// pageSize is how many entries of a list are asked for at once. Services cap
// it at their own maximum, usually 1,000.
const pageSize = 1000

// server is what we need of a server; Nova tells more.
type server struct {
	ID        string               `json:"id"`
	Name      string               `json:"name"`
	Status    string               `json:"status"`
	Task      string               `json:"OS-EXT-STS:task_state"`
	HostID    string               `json:"hostId"`
	Zone      string               `json:"OS-EXT-AZ:availability_zone"`
	Created   time.Time            `json:"created"`
	Metadata  map[string]string    `json:"metadata"`
	Addresses map[string][]address `json:"addresses"` // by network
	Fault     fault                `json:"fault"`
	Flavor    struct {
		ID string `json:"id"`
	} `json:"flavor"`
}

// fault is why a server is in state ERROR.
type fault struct {
	Message string `json:"message"`
}

// address is one address of a server.
type address struct {
	IP   string `json:"addr"`
	Type string `json:"OS-EXT-IPS:type"` // fixed or typeFloating
	MAC  string `json:"OS-EXT-IPS-MAC:mac_addr"`
}

// gone tells a server that Nova still knows but nobody can use again.
func (s *server) gone() bool {
	return s.Status == statusDeleted || s.Status == statusSoftDeleted
}

// down is why a server cannot be used; "" for one that runs or starts.
func (s *server) down() string {
	switch s.Status {
	case statusError, "SHUTOFF", "SUSPENDED", "PAUSED", "SHELVED", "SHELVED_OFFLOADED":
	default:
		return ""
	}
	why := "its server is in state " + s.Status
	if s.Fault.Message != "" {
		why += ": " + providers.Words(s.Fault.Message)
	}
	return why
}

// servers lists all servers of the project.
func (p *Provider) servers(ctx context.Context) ([]server, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	all, err := pages[server](ctx, servers.List(s.compute, servers.ListOpts{Limit: pageSize}), "servers")
	if err != nil {
		return nil, unheard(p.failure(ctx, "list servers", err)) // a list is never gone, and so says nothing of a server
	}
	return slices.DeleteFunc(all, func(s server) bool { return s.gone() }), nil
}

// server asks for one server.
//
// Errors: providers.ErrNotFound also for one that was deleted.
func (p *Provider) server(ctx context.Context, id string) (*server, error) {
	s, err := p.session(ctx)
	if err != nil {
		return nil, err
	}
	var found server
	if err := servers.Get(ctx, s.compute, id).ExtractInto(&found); err != nil {
		return nil, p.failure(ctx, "get server "+id, err)
	}
	if found.gone() {
		return nil, p.failure(ctx, "get server "+id, providers.ErrNotFound)
	}
	return &found, nil
}

// isUUID reports whether an id can be one of OpenStack's. Others are in no cloud,
// and must not become part of an address.
func isUUID(id string) bool {
	if len(id) != 36 && len(id) != 32 {
		return false
	}
	for i, c := range []byte(id) {
		dash := len(id) == 36 && (i == 8 || i == 13 || i == 18 || i == 23)
		digit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if dash != (c == '-') || !dash && !digit {
			return false
		}
	}
	return true
}

// missing reports whether a cloud said that something does not exist.
func missing(err error) bool {
	return gophercloud.ResponseCodeIs(err, 404) || is(err, 404) || is(err, 410)
}
