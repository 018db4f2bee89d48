package openstack

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	volumelimits "github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"

	"poolkeeper/providers"
)

// volumeLimits are the limits of volumes that Cinder reported last.
type volumeLimits struct {
	mu     sync.Mutex
	known  providers.Resources
	failed bool // the last call
}

// absolute are the project's limits, and what is used of them.
func (p *Provider) absolute(ctx context.Context) (limits.Absolute, error) {
	s, err := p.session(ctx)
	if err != nil {
		return limits.Absolute{}, err
	}
	found, err := limits.Get(ctx, s.compute, nil).Extract()
	if is(err, http.StatusForbidden) {
		return limits.Absolute{}, fmt.Errorf("%w: the cloud does not allow this user to read the project's limits; ignore-provider-quota: true launches without them: %w",
			providers.ErrNoLimits, p.failure(ctx, "get limits", err))
	}
	if err != nil {
		return limits.Absolute{}, p.failure(ctx, "get limits", err)
	}
	return found.Absolute, nil
}

// room is what is free at the moment.
func (p *Provider) room(ctx context.Context) (providers.Resources, error) {
	a, err := p.absolute(ctx)
	if err != nil {
		return nil, err
	}
	room := providers.Resources{}
	limit(room, providers.Instances, a.MaxTotalInstances, a.TotalInstancesUsed)
	limit(room, providers.Cores, a.MaxTotalCores, a.TotalCoresUsed)
	limit(room, providers.RAM, a.MaxTotalRAMSize, a.TotalRAMUsed)
	return room, nil
}

// limit notes a limit less what is used of it; negative ones are none.
func limit(set providers.Resources, name string, most, used int) {
	if most >= 0 {
		set[name] = max(most-used, 0)
	}
}

// Limits implements providers.Nodes. What others use is counted server by
// server: the cloud's own total would hold servers of ours that came or went
// between two answers. The launcher keeps the result for a while, so it is not
// kept here.
func (p *Provider) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	a, err := p.absolute(ctx)
	if err != nil {
		return nil, err
	}
	others, err := p.usedByOthers(ctx, ours)
	if err != nil {
		return nil, err
	}
	p.health.works()
	all := providers.Resources{}
	limit(all, providers.Instances, a.MaxTotalInstances, others[providers.Instances])
	limit(all, providers.Cores, a.MaxTotalCores, others[providers.Cores])
	limit(all, providers.RAM, a.MaxTotalRAMSize, others[providers.RAM])
	if p.usesVolumes() {
		return all, p.addVolumes(ctx, all)
	}
	return all, nil
}

// usedByOthers is what servers take that are not ours. Another installation may
// have a provider of the same name in this project.
func (p *Provider) usedByOthers(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	if ours == nil {
		ours = func(m providers.NodeInfo) bool { return m.Metadata[providers.MetaProvider] == p.cfg.Name }
	}
	list, err := p.roster.since(ctx, time.Now())
	if err != nil {
		return nil, err
	}
	sizes, err := p.flavors.get(ctx, p.now, p.listFlavors)
	if err != nil {
		return nil, err
	}
	byID := make(map[string]flavor, len(sizes))
	for _, f := range sizes {
		byID[f.ID] = f
	}
	used := providers.Resources{}
	for _, s := range list.servers {
		if ours(providers.NodeInfo{ExternalID: s.ID, Name: s.Name, Metadata: s.Metadata}) {
			continue
		}
		size := byID[s.Flavor.ID] // of a deleted flavor: unknown, counts as an instance only
		used[providers.Instances]++
		used[providers.Cores] += size.Cores
		used[providers.RAM] += size.RAM
	}
	return used, nil
}

// usesVolumes reports whether any label boots from one.
func (p *Provider) usesVolumes() bool {
	for _, pool := range p.cfg.Pools {
		for _, label := range pool.Labels {
			if label.BootFromVolume {
				return true
			}
		}
	}
	return false
}

// addVolumes adds Cinder's limits. Volumes do not say whose they are, so all
// that are in use beyond our own nodes' cannot be told apart from them; the
// limits are those of the project. If Cinder does not answer, the last ones count, so that
// labels without volumes are not blocked.
func (p *Provider) addVolumes(ctx context.Context, all providers.Resources) error {
	s, err := p.session(ctx)
	if err != nil || s.volume == nil {
		return err
	}
	brief, cancel := dispensable(ctx)
	defer cancel()
	found, err := volumelimits.Get(brief, s.volume).Extract()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.disks.mu.Lock()
	defer p.disks.mu.Unlock()
	switch {
	case err == nil:
		p.disks.known, p.disks.failed = providers.Resources{}, false
		limit(p.disks.known, providers.Volumes, found.Absolute.MaxTotalVolumes, 0)
		limit(p.disks.known, providers.VolumeGB, found.Absolute.MaxTotalVolumeGigabytes, 0)
	case !p.disks.failed:
		p.disks.failed = true
		p.log.Warn("Failed to get the limits of volumes, the last known ones count", "error", p.failure(ctx, "get limits of volumes", err))
	}
	maps.Copy(all, p.disks.known)
	return nil
}
