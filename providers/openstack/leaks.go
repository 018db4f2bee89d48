package openstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/floatingips"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"poolkeeper/providers"
)

// Kinds of things that CleanLeaks deletes.
const (
	leakedPort       = "port"
	leakedFloatingIP = "floatingip"
)

// floatingIPInterval is the least time between two looks at a floating IP that
// nothing is attached to: it may be on its way.
const floatingIPInterval = time.Minute

// leaks remembers what looked leaked, and since when.
type leaks struct {
	mu   sync.Mutex // one look at a time
	seen map[string]time.Time
	told map[string]bool // floating IPs that are only reported
}

// CleanLeaks implements providers.Cleaner for ports of servers that are gone,
// and for floating IPs without a server.
func (p *Provider) CleanLeaks(ctx context.Context, site string) (map[string]int, error) {
	in, err := p.session(ctx)
	if err != nil || in.network == nil {
		return nil, err
	}
	p.leaks.mu.Lock()
	defer p.leaks.mu.Unlock()
	suspects := map[string]time.Duration{} // "kind id" to how long it must look leaked
	if err := p.suspectPorts(ctx, in, suspects); err != nil {
		return nil, p.failure(ctx, "look for leaked ports", err)
	}
	if err := p.suspectFloatingIPs(ctx, in, site, suspects); err != nil {
		return nil, p.failure(ctx, "look for leaked floating IPs", err)
	}
	deleted := map[string]int{}
	var failed error
	for _, name := range p.leaks.judge(suspects, p.now()) {
		kind, id, _ := strings.Cut(name, " ")
		if err := deleteLeak(ctx, in, kind, id); err != nil {
			failed = errors.Join(failed, p.failure(ctx, "delete leaked "+name, err))
			continue
		}
		p.log.Info("Deleted a leak", "kind", kind, "id", id)
		deleted[kind]++
	}
	return deleted, failed
}

// judge notes what looks leaked now, forgets what does not any more, and gives
// what has done so for long enough.
func (l *leaks) judge(suspects map[string]time.Duration, now time.Time) []string {
	if l.seen == nil {
		l.seen = map[string]time.Time{}
	}
	maps.DeleteFunc(l.seen, func(name string, _ time.Time) bool { _, still := suspects[name]; return !still })
	var guilty []string
	for name, interval := range suspects {
		since, before := l.seen[name]
		switch {
		case !before:
			l.seen[name] = now
		case now.Sub(since) >= interval:
			guilty = append(guilty, name)
		}
	}
	return guilty
}

// suspectPorts finds ports that Nova made for a server which is not there any
// more. A port that somebody made for later names no server, and is left alone.
func (p *Provider) suspectPorts(ctx context.Context, in *session, suspects map[string]time.Duration) error {
	if p.cfg.PortCleanupEvery <= 0 {
		return nil
	}
	all, err := pages[ports.Port](ctx, ports.List(in.network, ports.ListOpts{Status: "DOWN", Limit: pageSize}), "ports")
	if err != nil {
		return failure(ctx, "list ports", err)
	}
	// Read behind the ports, so that it holds every server that has one.
	list, err := p.roster.since(ctx, time.Now())
	if err != nil {
		return err
	}
	for _, port := range all {
		if port.DeviceID == "" || port.DeviceOwner != "" && !strings.HasPrefix(port.DeviceOwner, "compute:") {
			continue
		}
		if _, exists := list.servers[port.DeviceID]; !exists {
			suspects[leakedPort+" "+port.ID] = p.cfg.PortCleanupEvery
		}
	}
	return nil
}

// suspectFloatingIPs finds floating IPs that lead nowhere: ours, and with
// clean-floating-ips all of the project but those of other sites. One that an
// older version of us has made, whatever its site, is only told of.
func (p *Provider) suspectFloatingIPs(ctx context.Context, in *session, site string, suspects map[string]time.Duration) error {
	if noFloatingIPs(in) {
		return nil
	}
	all, err := pages[floatingips.FloatingIP](ctx,
		floatingips.List(in.network, floatingips.ListOpts{Limit: pageSize}), "floatingips")
	if missing(err) { // a Neutron without routers
		return nil
	}
	if err != nil {
		return failure(ctx, "list floating IPs", err)
	}
	for _, ip := range all {
		if ip.PortID != "" {
			continue
		}
		mark, marked := readMark(ip.Description)
		switch {
		case marked && mark.site != "" && mark.site != site:
		case p.cfg.CleanFloatingIPs, marked && mark.site == site && mark.provider == p.cfg.Name:
			suspects[leakedFloatingIP+" "+ip.ID] = floatingIPInterval
		case marked && mark.provider == p.cfg.Name && !p.leaks.told[ip.ID]:
			if p.leaks.told == nil {
				p.leaks.told = map[string]bool{}
			}
			p.leaks.told[ip.ID] = true
			p.log.Warn("Floating IP leads nowhere and names no site, it may be another installation's; "+
				"clean-floating-ips deletes such", "floating_ip", ip.FloatingIP, "id", ip.ID, "description", ip.Description)
		}
	}
	return nil
}

func deleteLeak(ctx context.Context, in *session, kind, id string) error {
	switch kind {
	case leakedPort:
		err := ports.Delete(ctx, in.network, id).ExtractErr()
		if missing(err) {
			return nil
		}
		return failure(ctx, "delete port", err)
	case leakedFloatingIP:
		return releaseFloatingIP(ctx, in, id)
	}
	return fmt.Errorf("%w: no leaks are of kind %s", providers.ErrNotSupported, kind)
}
