package aws

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// addressTime is how long an instance that runs may be without the public address that it is
// to have.
const addressTime = time.Minute

// one asks for one instance.
//
// Errors: providers.ErrNotFound, also for one that was made a moment ago and is not shown yet.
func (p *Provider) one(ctx context.Context, id string) (types.Instance, error) {
	found, err := p.account.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return types.Instance{}, p.named(ctx, "look at instance "+id, err)
	}
	if found.Reservations == nil {
		return types.Instance{}, p.named(ctx, "look at instance "+id, errNoList)
	}
	for _, r := range found.Reservations {
		for _, i := range r.Instances {
			if sdk.ToString(i.InstanceId) == id {
				return i, nil
			}
		}
	}
	return types.Instance{}, fmt.Errorf("look at instance %s: %w", id, providers.ErrNotFound)
}

// look finds an instance in the shared list, which is read at t or later. One that the list does
// not have is asked for by itself; nil is one that may be shown yet.
func (p *Provider) look(ctx context.Context, id string, t time.Time) (*types.Instance, error) {
	all, err := p.roster.since(ctx, t)
	if err != nil {
		return nil, err
	}
	if i, ok := all[id]; ok {
		return &i, nil
	}
	i, err := p.one(ctx, id)
	if errors.Is(err, providers.ErrNotFound) && p.fresh.has(id, clock.Now(ctx)) {
		return nil, nil //nolint:nilnil // it is not shown yet
	}
	return &i, err
}

// WaitNode implements providers.Nodes.
func (p *Provider) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	op := "wait for instance " + id
	if err := ctx.Err(); err != nil {
		return providers.Instance{}, p.named(ctx, op, err)
	}
	if !instanceID.MatchString(id) {
		return providers.Instance{}, p.named(ctx, op, providers.ErrNotFound)
	}
	instance, err := p.wait(ctx, id)
	if err != nil {
		return providers.Instance{}, p.named(ctx, op, err)
	}
	return instance, nil
}

func (p *Provider) wait(ctx context.Context, id string) (providers.Instance, error) {
	var ran time.Time
	for start := clock.Now(ctx); ; {
		now := clock.Now(ctx)
		i, err := p.look(ctx, id, now.Add(-p.poll/2))
		switch {
		case errors.Is(err, providers.ErrTransient) && ctx.Err() == nil && now.Sub(start) < defaultSettle:
		case err != nil:
			return providers.Instance{}, err
		case i == nil:
		case i.State != nil && i.State.Name != types.InstanceStateNamePending && i.State.Name != types.InstanceStateNameRunning:
			return providers.Instance{}, why(i)
		case stateOf(i) == types.InstanceStateNameRunning:
			if ran.IsZero() {
				ran = now
			}
			if described, ok := p.describe(i); ok || now.Sub(ran) > addressTime && described.InterfaceIP != "" {
				p.fresh.forget(id)
				return described, nil
			} else if now.Sub(ran) > addressTime {
				return providers.Instance{}, fmt.Errorf("%w: it runs, and has no address", providers.ErrNodeFailed)
			}
		}
		if err := p.sleep(ctx, now.Sub(start)); err != nil {
			return providers.Instance{}, err
		}
	}
}

// describe tells what is known of an instance that runs; false as long as an address is to come.
func (p *Provider) describe(i *types.Instance) (providers.Instance, bool) {
	place := &configs.AWSPool{}
	if pool, ok := p.cfg.Pool(metadata(i.Tags)[providers.MetaPool]); ok {
		if own, ok := pool.Settings.(*configs.AWSPool); ok {
			place = own
		}
	}
	in := providers.Instance{
		ExternalID: sdk.ToString(i.InstanceId), Cloud: p.own.Profile, Region: p.cfg.Region,
		PublicIPv4: sdk.ToString(i.PublicIpAddress), PublicIPv6: sdk.ToString(i.Ipv6Address), PrivateIPv4: sdk.ToString(i.PrivateIpAddress),
	}
	if i.Placement != nil {
		in.AZ, in.HostID = sdk.ToString(i.Placement.AvailabilityZone), sdk.ToString(i.Placement.HostId)
	}
	for _, n := range i.NetworkInterfaces {
		for _, a := range n.Ipv6Addresses {
			in.PublicIPv6 = cmp.Or(in.PublicIPv6, sdk.ToString(a.Ipv6Address))
		}
	}
	if in.InterfaceIP = cmp.Or(in.PublicIPv4, in.PublicIPv6, in.PrivateIPv4); place.UseInternalIP {
		in.InterfaceIP = cmp.Or(in.PrivateIPv4, in.PublicIPv6)
	}
	there := in.InterfaceIP != "" && (!place.PublicIPv4 || in.PublicIPv4 != "") && (!place.PublicIPv6 || in.PublicIPv6 != "")
	return in, there
}

// why tells for what an instance has ended, and what that means. That Amazon took it back, or
// had none, says nothing of the image.
func why(i *types.Instance) error {
	code, message := "", sdk.ToString(i.StateTransitionReason)
	if i.StateReason != nil {
		code, message = sdk.ToString(i.StateReason.Code), cmp.Or(sdk.ToString(i.StateReason.Message), message)
	}
	message = cmp.Or(providers.Words(message), providers.Words(code), "Amazon does not say why")
	switch {
	case strings.HasPrefix(code, "Server.SpotInstance"):
		return fmt.Errorf("%w: spot interruption: Amazon has taken the instance back: %s", providers.ErrNotFound, message)
	case strings.HasPrefix(code, "Client.UserInitiated"), code == "":
		return fmt.Errorf("%w: it is %s: %s", providers.ErrNotFound, stateOf(i), message)
	case strings.Contains(code, "InsufficientInstanceCapacity"), strings.Contains(code, "LimitExceeded"):
		return fmt.Errorf("%w: %s", providers.ErrQuota, message)
	case strings.HasPrefix(code, "Server."):
		return fmt.Errorf("%w: Amazon gave up on it: %s", providers.ErrTransient, message)
	}
	return fmt.Errorf("%w: %s", providers.ErrNodeFailed, message)
}

// WatchNode implements providers.Watcher: a spot instance may be taken back while it boots, and
// one that ends boots no more.
func (p *Provider) WatchNode(ctx context.Context, id string) error {
	for start := clock.Now(ctx); ; {
		if p.sleep(ctx, clock.Now(ctx).Sub(start)) != nil {
			return nil //nolint:nilerr // the watch was called off
		}
		i, err := p.look(ctx, id, clock.Now(ctx).Add(-p.poll/2))
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the watch was called off
		case errors.Is(err, providers.ErrNotFound):
			return p.named(ctx, "watch instance "+id, err)
		case err == nil && i != nil && isLeaving(i):
			return p.named(ctx, "watch instance "+id, why(i))
		}
	}
}

// DeleteNode implements providers.Nodes.
func (p *Provider) DeleteNode(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if !instanceID.MatchString(id) {
		return nil // no account has it
	}
	return p.named(ctx, "delete instance "+id, p.remove(ctx, id))
}

func (p *Provider) remove(ctx context.Context, id string) error {
	start := clock.Now(ctx)
	host := ""
	for asked := false; ; {
		if !asked {
			_, err := p.account.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
			switch {
			case err == nil:
				asked = true
			case missing(err) && p.fresh.has(id, clock.Now(ctx)): // the service does not know it yet
			case missing(err):
				return nil
			default:
				return err
			}
		}
		i, err := p.look(ctx, id, clock.Now(ctx).Add(-p.poll/4))
		switch {
		case errors.Is(err, providers.ErrNotFound):
			p.fresh.gone(id)
			return nil
		case err != nil && !errors.Is(err, providers.ErrTransient):
			return err
		case err == nil && i != nil:
			if i.Placement != nil {
				host = cmp.Or(sdk.ToString(i.Placement.HostId), host)
			}
			if hasEnded(i) {
				p.fresh.gone(id)
				return p.releaseOwnHost(ctx, host)
			}
		}
		if err := p.sleep(ctx, clock.Now(ctx).Sub(start)); err != nil {
			return err
		}
	}
}

// ListNodes implements providers.Nodes.
func (p *Provider) ListNodes(ctx context.Context) ([]providers.NodeInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	all, err := p.roster.since(ctx, clock.Now(ctx))
	if err != nil {
		return nil, err
	}
	var list []providers.NodeInfo
	for id, i := range all {
		if hasEnded(&i) {
			continue
		}
		meta := metadata(i.Tags)
		if meta[providers.MetaProvider] != p.cfg.Name {
			continue // the service need not heed the filter
		}
		list = append(list, providers.NodeInfo{ExternalID: id, Name: meta[nameTag], Metadata: meta, Down: down(&i)})
	}
	return list, nil
}

// ConsoleLog implements providers.Nodes. Amazon shows it some minutes after the boot.
func (p *Provider) ConsoleLog(ctx context.Context, id string, most int) ([]byte, error) {
	if !instanceID.MatchString(id) {
		return nil, p.named(ctx, "read console", providers.ErrNotFound)
	}
	found, err := p.account.ec2.GetConsoleOutput(ctx, &ec2.GetConsoleOutputInput{InstanceId: sdk.String(id)})
	if err != nil {
		return nil, p.named(ctx, "read console of instance "+id, err)
	}
	text, err := base64.StdEncoding.DecodeString(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return -1
		}
		return r
	}, sdk.ToString(found.Output)))
	if err != nil {
		return nil, p.named(ctx, "read console of instance "+id, fmt.Errorf("%w: %w", providers.ErrTransient, err))
	}
	return text[max(0, len(text)-most):], nil
}
