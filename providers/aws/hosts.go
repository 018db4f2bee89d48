package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// host is the dedicated host of a node: allocated for it, under a token, and released with it.
func (m *making) host(ctx context.Context, at place) (string, error) {
	for range 10 {
		if err := m.ask(ctx); err != nil {
			return "", err
		}
		made, err := m.p.account.ec2.AllocateHosts(ctx, &ec2.AllocateHostsInput{
			AvailabilityZone: text(at.zone), InstanceType: text(m.offer.own.InstanceType), Quantity: sdk.Int32(1), AutoPlacement: types.AutoPlacementOff,
			ClientToken:       sdk.String(m.token("host", at.zone)),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeDedicatedHost, Tags: m.p.nodeTags(m.offer, m.spec)}},
		})
		if m.isSpent(err) {
			continue
		}
		if err != nil {
			return "", m.refused(ctx, err)
		}
		if len(made.HostIds) != 1 {
			return "", fmt.Errorf("%w: %d hosts were allocated, one was asked for", providers.ErrTransient, len(made.HostIds))
		}
		h, err := m.p.hostByID(ctx, made.HostIds[0])
		if errors.Is(err, providers.ErrNotFound) && !m.p.fresh.isGone(made.HostIds[0]) { // not shown yet
			return made.HostIds[0], nil
		}
		if err != nil && !errors.Is(err, providers.ErrNotFound) {
			return "", err
		}
		if err == nil && h.State != types.AllocationStateReleased && h.State != types.AllocationStateReleasedPermanentFailure && !m.p.fresh.isGone(made.HostIds[0]) {
			return made.HostIds[0], nil
		}
		m.round++ // a token of before
	}
	return "", fmt.Errorf("%w: each token of the launch is used up", providers.ErrTransient)
}

// onHost makes the instance on its host, which may be unknown yet.
func (m *making) onHost(ctx context.Context, in *ec2.RunInstancesInput, at place) (string, error) {
	for start := clock.Now(ctx); ; {
		id, err := m.run(ctx, in, at, false)
		waited := clock.Now(ctx).Sub(start)
		if codeOf(err) != "InvalidHostID.NotFound" || waited > m.p.fresh.settle {
			return id, err
		}
		if err := m.p.sleep(ctx, waited); err != nil {
			return "", err
		}
	}
}

func (p *Provider) hostByID(ctx context.Context, id string) (types.Host, error) {
	found, err := p.account.ec2.DescribeHosts(ctx, &ec2.DescribeHostsInput{HostIds: []string{id}})
	if err != nil {
		return types.Host{}, p.named(ctx, "look at host "+id, err)
	}
	if found.Hosts == nil {
		return types.Host{}, p.named(ctx, "look at host "+id, errNoList)
	}
	if h := theOne(found.Hosts, id, func(h *types.Host) *string { return h.HostId }); h != nil {
		return *h, nil
	}
	return types.Host{}, fmt.Errorf("look at host %s: %w", id, providers.ErrNotFound)
}

// releaseOwnHost releases the host of an instance that has ended, if it was allocated for it.
func (p *Provider) releaseOwnHost(ctx context.Context, id string) error {
	if id == "" {
		return nil
	}
	h, err := p.hostByID(ctx, id)
	if errors.Is(err, providers.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if metadata(h.Tags)[providers.MetaProvider] != p.cfg.Name || metadata(h.Tags)[providers.MetaNode] == "" {
		return nil // the operator's
	}
	return p.giveHostBack(ctx, id)
}

// giveHostBack releases a host now or, by the search for leaks, later.
func (p *Provider) giveHostBack(ctx context.Context, id string) error {
	err := p.releaseHost(ctx, id)
	if errors.Is(err, errNotYet) {
		return nil
	}
	return err
}

// releaseHost releases a host. One that Amazon has to keep for a while (those of Apple's
// machines for 24 hours) is released by the search for leaks, later.
//
// Errors: errNotYet.
func (p *Provider) releaseHost(ctx context.Context, id string) error {
	done, err := p.account.ec2.ReleaseHosts(ctx, &ec2.ReleaseHostsInput{HostIds: []string{id}})
	if err != nil && !missing(err) {
		return p.named(ctx, "release host "+id, err)
	}
	if done != nil {
		for _, u := range done.Unsuccessful {
			if u.Error != nil && !isMissing(strings.TrimPrefix(sdk.ToString(u.Error.Code), "Client.")) {
				p.log.Info("A host cannot be released yet, it is tried again later", "provider", p.cfg.Name, "id", id, "error", said(sdk.ToString(u.Error.Message)))
				return errNotYet
			}
		}
	}
	p.fresh.gone(id)
	return nil
}

// leakedHosts are those that were allocated for nodes, and have had no instance for a while.
func (p *Provider) leakedHosts(ctx context.Context) ([]found, error) {
	var list []found
	pages := ec2.NewDescribeHostsPaginator(p.account.ec2, &ec2.DescribeHostsInput{Filter: p.mine()})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list hosts", err)
		}
		for i := range page.Hosts {
			h := &page.Hosts[i]
			if h.State != types.AllocationStateAvailable || len(h.Instances) > 0 || clock.Now(ctx).Sub(sdk.ToTime(h.AllocationTime)) < p.fresh.settle {
				continue
			}
			list = append(list, found{sdk.ToString(h.HostId), metadata(h.Tags)})
		}
	}
	return list, nil
}
