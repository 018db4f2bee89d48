package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// CreateNode implements providers.Nodes. Each request has a token made of the launch and the
// place, so that repeating it, here or in another launcher, makes no second instance.
func (p *Provider) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	o, err := p.offer(spec.Pool, spec.Label)
	if err != nil {
		return "", fmt.Errorf("create node %s: %w", spec.NodeID, err)
	}
	done, err := p.turns.Enter(ctx, spec.NodeID)
	if err != nil {
		return "", err
	}
	defer done()
	id, err := p.findOrCreate(ctx, o, spec)
	if err != nil {
		return "", p.named(ctx, "create node "+spec.NodeID, err)
	}
	return id, nil
}

func (p *Provider) findOrCreate(ctx context.Context, o offer, spec providers.NodeSpec) (string, error) {
	all, err := p.roster.since(ctx, clock.Now(ctx))
	if err != nil {
		return "", err
	}
	found, ended := p.find(all, spec)
	if found != "" {
		return found, nil
	}
	image, err := p.image(ctx, o, spec.ImageID)
	if err != nil {
		return "", err
	}
	m := &making{p: p, offer: o, spec: spec, image: &image, round: ended}
	m.anew = p.spent.of(m.launch())
	return m.make(ctx)
}

// find looks for a node's instance. Should there be two, the older one is the node; the other
// has no record and is collected as a leak. It tells how many of the launch have ended, too.
func (p *Provider) find(all map[string]types.Instance, spec providers.NodeSpec) (id string, ended int) {
	var found *types.Instance
	for _, i := range all {
		switch {
		case !p.of(&i, spec):
		case isLeaving(&i):
			ended++
		case found == nil || cmp.Or(sdk.ToTime(i.LaunchTime).Compare(sdk.ToTime(found.LaunchTime)), strings.Compare(*i.InstanceId, *found.InstanceId)) < 0:
			found = &i
		}
	}
	if found == nil {
		return "", ended
	}
	return sdk.ToString(found.InstanceId), ended
}

// making is one creation of a node.
type making struct {
	p     *Provider
	offer offer
	spec  providers.NodeSpec
	image *types.Image
	round int    // how many instances of the launch have ended: their tokens are used up
	anew  string // makes tokens others, once one may not be used again
}

// make tries the places in turn; where the label allows that, first for a spot instance, then
// on demand. That a zone has none is nobody's fault.
func (m *making) make(ctx context.Context) (string, error) {
	id, err := m.anywhere(ctx, m.offer.own.UseSpot)
	if m.offer.own.UseSpot && m.offer.own.SpotFallback == configs.SpotOnDemand && (noCapacity(err) || codeOf(err) == "MaxSpotInstanceCountExceeded") {
		m.p.log.Info("No spot instance is to be had, one is made on demand", "provider", m.p.cfg.Name, "node", m.spec.NodeID, "error", err)
		return m.anywhere(ctx, false)
	}
	return id, err
}

func (m *making) anywhere(ctx context.Context, spot bool) (string, error) {
	list, err := m.p.places(ctx, m.offer, m.spec.AZ)
	if err != nil {
		return "", err
	}
	if m.offer.own.Fleet != nil {
		return m.fleet(ctx, list, spot)
	}
	kind := m.offer.own.InstanceType + " " + strconv.FormatBool(spot)
	var lack error
	for chosen := false; ; chosen = true {
		for _, at := range m.p.lacking.last(kind, list, clock.Now(ctx)) {
			id, err := m.at(ctx, at, spot)
			if !noCapacity(err) {
				return id, err
			}
			m.p.lacking.note(kind, at, clock.Now(ctx))
			lack = errors.Join(lack, fmt.Errorf("in %s: %w", cmp.Or(at.zone, at.subnet, "the zone that Amazon chose"), err))
		}
		if !chosen && len(list) == 1 && list[0] == (place{}) {
			list, err = m.p.otherZones(ctx)
			if ctx.Err() != nil {
				return "", errors.Join(lack, err)
			}
			if err != nil && !m.p.zoneless.Swap(true) {
				m.p.log.Warn("Failed to list availability zones, nodes are created without a zone", "error", err)
			}
			if err == nil {
				m.p.zoneless.Store(false)
			}
			if len(list) > 0 {
				continue
			}
		}
		return "", &refusal{kind: providers.ErrQuota, code: codeOf(lack), text: lack.Error()}
	}
}

// at makes the instance at one place.
func (m *making) at(ctx context.Context, at place, spot bool) (string, error) {
	in := m.p.order(m.offer, m.spec, m.image)
	in.NetworkInterfaces = network(m.offer, at)
	if at.subnet == "" && at.zone != "" {
		in.Placement = &types.Placement{AvailabilityZone: text(at.zone)}
	}
	if spot {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{
			SpotInstanceType: types.SpotInstanceTypeOneTime, InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		}}
	}
	if !m.offer.own.DedicatedHost {
		return m.run(ctx, in, at, spot)
	}
	host, err := m.host(ctx, at)
	if err != nil {
		return "", err
	}
	in.Placement = &types.Placement{AvailabilityZone: text(at.zone), HostId: text(host), Tenancy: types.TenancyHost}
	id, err := m.onHost(ctx, in, at)
	if err != nil && !errors.Is(err, providers.ErrUnanswered) && ctx.Err() == nil {
		err = errors.Join(err, m.p.giveHostBack(ctx, host))
	}
	return id, err
}

// run asks for the instance. A token that was used gives the instance of then, which may have
// ended long ago, and be shown no more: then another token is taken.
func (m *making) run(ctx context.Context, in *ec2.RunInstancesInput, at place, spot bool) (string, error) {
	for range 10 {
		in.ClientToken = sdk.String(m.token("run", at.zone, at.subnet, strconv.FormatBool(spot), sdk.ToString(m.image.ImageId)))
		if err := m.ask(ctx); err != nil {
			return "", err
		}
		asked := clock.Now(ctx)
		made, err := m.p.account.ec2.RunInstances(ctx, in)
		if m.isSpent(err) {
			continue
		}
		if err != nil {
			return "", m.refused(ctx, err)
		}
		if len(made.Instances) != 1 {
			return "", fmt.Errorf("%w: %d instances were made, one was asked for", providers.ErrTransient, len(made.Instances))
		}
		one := made.Instances[0]
		if answered, ok := awsmiddleware.GetServerTime(made.ResultMetadata); ok { // ours may be minutes off
			asked = answered.Add(asked.Sub(clock.Now(ctx)))
		}
		past, err := m.p.isPast(ctx, &one, asked)
		if err != nil {
			return "", err
		}
		if !past {
			if len(one.Tags) == 0 {
				one.Tags = m.p.nodeTags(m.offer, m.spec)
			}
			m.p.fresh.add(one, clock.Now(ctx))
			return sdk.ToString(one.InstanceId), nil
		}
		m.round++
	}
	return "", fmt.Errorf("%w: each token of the launch is used up", providers.ErrTransient)
}

// isPast reports whether an instance that was answered is one of an earlier request, and has
// ended. The time of asking is by Amazon's clock.
func (p *Provider) isPast(ctx context.Context, i *types.Instance, asked time.Time) (bool, error) {
	if isLeaving(i) {
		return true, nil
	}
	if !sdk.ToTime(i.LaunchTime).Before(asked.Add(-time.Minute)) {
		if p.fresh.isGone(sdk.ToString(i.InstanceId)) {
			return true, nil
		}
		return false, nil
	}
	now, err := p.one(ctx, sdk.ToString(i.InstanceId))
	if errors.Is(err, providers.ErrNotFound) {
		return true, nil
	}
	return err == nil && isLeaving(&now), err
}

func (m *making) token(parts ...string) string {
	meta := m.spec.Metadata
	return token(append([]string{
		m.p.cfg.Name, m.spec.NodeID, meta[providers.MetaSite], meta[providers.MetaLaunch], m.spec.Pool, m.spec.Label, strconv.Itoa(m.round), m.anew,
	}, parts...)...)
}

// launch names what all requests of a launch are for.
func (m *making) launch() string { return m.spec.NodeID + " " + m.spec.Metadata[providers.MetaLaunch] }

// isSpent reports whether a token was used for a request that asked for something else: before the configuration
// was changed, or the program renewed. What that one made is found by its tags.
func (m *making) isSpent(err error) bool {
	if codeOf(err) != "IdempotentParameterMismatch" {
		return false
	}
	m.spend()
	return true
}

// spend has the next requests of the launch have other tokens, also those of a later try.
func (m *making) spend() { m.anew = m.p.spent.add(m.launch()) }

// ask tells the caller that the service is about to be asked.
func (m *making) ask(ctx context.Context) error {
	if m.spec.Asking == nil {
		return nil
	}
	return m.spec.Asking(ctx)
}

// refused judges why nothing was made. What is missing is the image, or a mistake of the
// configuration; without an answer the instance may come yet.
func (m *making) refused(ctx context.Context, err error) error {
	if unanswered(err) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", providers.ErrUnanswered, err)
	}
	err = failure(err)
	if strings.HasPrefix(codeOf(err), "InvalidAMIID") {
		return err
	}
	if err = configured(err); errors.Is(err, providers.ErrInvalid) {
		return fmt.Errorf("pool %s, label %s: %w", m.offer.pool.Name, m.offer.label.Name, err)
	}
	return err
}
