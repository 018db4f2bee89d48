package aws

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// quota is one of the account's: resources are called by its code, as Nodepool does.
type quota struct {
	name  string
	value float64
}

// families are the codes of the quotas of vCPUs, on demand and spot, by what types begin with.
// Of several that fit the longest counts.
var families = []struct{ prefixes, onDemand, spot string }{
	{"a c d h i im is m r t z", "L-1216C47A", "L-34B43A08"},
	{"dl", "L-6E869C2A", "L-85EED4F7"},
	{"f", "L-74FC7D96", "L-88CF9481"},
	{"g gr vt", "L-DB2E81BA", "L-3819A6DF"},
	{"hpc", "L-F7808C92", ""},
	{"inf", "L-1945791B", "L-B5D1601B"},
	{"p", "L-417A185B", "L-7212CCBC"},
	{"p5", "L-417A185B", "L-C4BD4855"},
	{"trn", "L-2C3B7624", "L-6B0D517C"},
	{"u- u7", "L-43DA4232", ""},
	{"x", "L-7295265B", "L-E3A00192"},
}

// storage are the codes of the quotas of volumes, in GiB, by type.
var storage = map[string]string{
	"gp2": "L-D18FCD1D", "gp3": "L-7A658B76", "io1": "L-FD252861", "io2": "L-09BD8365", "sc1": "L-17AF77E8", "st1": "L-82ACEF56", "standard": "L-9CF3C2EB",
}

// dedicated is the name of a quota of hosts: there is one for each family.
var dedicated = regexp.MustCompile(`^Running Dedicated (\S+) Hosts$`)

// vCPUCode is the code of the quota that a type counts against; "" is none that we know.
func vCPUCode(kind string, spot bool) string {
	best, code := "", ""
	for _, f := range families {
		for prefix := range strings.FieldsSeq(f.prefixes) {
			rest, fits := strings.CutPrefix(kind, prefix)
			if !fits || len(prefix) <= len(best) || rest == "" || len(prefix) < 2 && (rest[0] < '0' || rest[0] > '9') {
				continue
			}
			if best, code = prefix, f.onDemand; spot {
				code = f.spot
			}
		}
	}
	return code
}

// size is how large a type of instances is.
func (p *Provider) size(ctx context.Context, kind string) (types.InstanceTypeInfo, error) {
	return p.sizes.get(ctx, kind, typeAge, func(ctx context.Context) (types.InstanceTypeInfo, error) {
		found, err := p.account.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(kind)}})
		if err != nil {
			return types.InstanceTypeInfo{}, configured(p.named(ctx, "look up instance type "+kind, err))
		}
		if found.InstanceTypes == nil {
			return types.InstanceTypeInfo{}, p.named(ctx, "look up instance type "+kind, errNoList)
		}
		for i := range found.InstanceTypes {
			if string(found.InstanceTypes[i].InstanceType) == kind {
				return found.InstanceTypes[i], nil
			}
		}
		return types.InstanceTypeInfo{}, p.named(ctx, "look up instance type "+kind, fmt.Errorf("%w: %s has none", providers.ErrInvalid, p.cfg.Region))
	})
}

// NodeResources implements providers.Nodes. A fleet's node may be of any of its types; the
// largest counts.
func (p *Provider) NodeResources(ctx context.Context, pool, label string) (providers.Resources, error) {
	o, err := p.offer(pool, label)
	if err != nil {
		return nil, fmt.Errorf("size node: %w", err)
	}
	takes := providers.Resources{providers.Instances: 1}
	for _, kind := range o.types() {
		one, err := p.takes(ctx, kind, o.own.UseSpot, o.own.DedicatedHost)
		if err != nil {
			return nil, err
		}
		for name, n := range one {
			takes[name] = max(takes[name], n)
		}
	}
	if code := storage[o.own.VolumeType]; code != "" && o.own.VolumeSize > 0 {
		takes[code] = o.own.VolumeSize
	}
	return takes, nil
}

// takes is what an instance of a type takes.
func (p *Provider) takes(ctx context.Context, kind string, spot, host bool) (providers.Resources, error) {
	info, err := p.size(ctx, kind)
	if err != nil {
		return nil, err
	}
	takes := providers.Resources{providers.Instances: 1}
	if info.VCpuInfo != nil {
		takes[providers.Cores] = max(0, int(sdk.ToInt32(info.VCpuInfo.DefaultVCpus)))
	}
	if info.MemoryInfo != nil {
		takes[providers.RAM] = int(min(max(0, sdk.ToInt64(info.MemoryInfo.SizeInMiB)), mostAmount))
	}
	if host {
		code, err := p.hostCode(ctx, kind)
		if err == nil && code != "" {
			takes[code] = 1
		}
		return takes, err
	}
	if code := vCPUCode(kind, spot); code != "" {
		takes[code] = takes[providers.Cores]
	}
	return takes, nil
}

// hostCode is the code of the quota of dedicated hosts for a type.
func (p *Provider) hostCode(ctx context.Context, kind string) (string, error) {
	family, _, _ := strings.Cut(kind, ".")
	all, err := p.allQuotas(ctx)
	if isDenied(err) {
		return "", nil // Limits reports it
	}
	for code, q := range all {
		if m := dedicated.FindStringSubmatch(q.name); m != nil && strings.EqualFold(m[1], family) {
			return code, nil
		}
	}
	return "", err
}

// allQuotas are those of instances and of volumes.
func (p *Provider) allQuotas(ctx context.Context) (map[string]quota, error) {
	return p.quotas.get(ctx, "", quotaAge, func(ctx context.Context) (map[string]quota, error) {
		all := map[string]quota{}
		for _, service := range []string{"ec2", "ebs"} {
			pages := servicequotas.NewListServiceQuotasPaginator(p.account.quotas, &servicequotas.ListServiceQuotasInput{ServiceCode: sdk.String(service)})
			for page, err := range pagesOf(ctx, pages) {
				if err != nil {
					return nil, p.named(ctx, "list quotas", err)
				}
				for _, q := range page.Quotas {
					if q.Value == nil || math.IsNaN(*q.Value) {
						continue // it says nothing
					}
					one := quota{sdk.ToString(q.QuotaName), min(max(0, *q.Value), mostAmount)}
					if code := sdk.ToString(q.QuotaCode); isStorage(code) {
						one.value *= 1024 // it is told in TiB
						all[code] = one
					} else {
						all[code] = one
					}
				}
			}
		}
		return all, nil
	})
}

// isDenied reports whether a user may not ask for something.
func isDenied(err error) bool {
	return slices.Contains([]string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"}, codeOf(err))
}

// mostAmount is more than anybody has of anything, and can be counted with.
const mostAmount = 1 << 40

func isStorage(code string) bool { return slices.Contains(slices.Collect(maps.Values(storage)), code) }

// Limits implements providers.Nodes: the quotas that the labels count against, less what others
// use of them, and the limits of the configuration, which are for our nodes.
func (p *Provider) Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	all, err := p.allQuotas(ctx)
	if isDenied(err) {
		if slices.ContainsFunc(p.cfg.Pools, func(pool configs.Pool) bool { return !pool.IgnoreProviderQuota }) {
			return nil, fmt.Errorf("limits: %w: the account does not allow this user to list its quotas; ignore-provider-quota: true in all pools launches without them: %w",
				providers.ErrNoLimits, err)
		}
		err = nil // the limits of the configuration remain
	}
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	used, err := p.usedByOthers(ctx, ours)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	limits := providers.Resources{}
	for i := range p.cfg.Pools {
		for j := range p.cfg.Pools[i].Labels {
			takes, err := p.NodeResources(ctx, p.cfg.Pools[i].Name, p.cfg.Pools[i].Labels[j].Name)
			if errors.Is(err, providers.ErrInvalid) {
				continue // one label that is wrong hurts itself
			}
			if err != nil {
				return nil, fmt.Errorf("limits: %w", err)
			}
			for code := range takes {
				if q, ok := all[code]; ok {
					limits[code] = max(0, int(q.value)-used[code])
				}
			}
		}
	}
	for name, n := range map[string]int{providers.Instances: p.own.MaxServers, providers.Cores: p.own.MaxCores, providers.RAM: p.own.MaxRAM} {
		if n >= 0 {
			limits[name] = n
		}
	}
	for name, n := range p.own.MaxResources {
		if have, ok := limits[name]; !ok || n < have {
			limits[name] = n
		}
	}
	return limits, nil
}

// usedByOthers is what instances and hosts take that are not ours. A type that Amazon does not
// tell of any more counts as nothing.
func (p *Provider) usedByOthers(ctx context.Context, ours providers.Ours) (providers.Resources, error) {
	if ours == nil {
		ours = func(m providers.NodeInfo) bool { return m.Metadata[providers.MetaProvider] == p.cfg.Name }
	}
	used := providers.Resources{}
	pages := ec2.NewDescribeInstancesPaginator(p.account.ec2, &ec2.DescribeInstancesInput{Filters: []types.Filter{
		{Name: sdk.String("instance-state-name"), Values: []string{"pending", "running", "stopping", "shutting-down"}},
	}})
	for page, err := range pagesOf(ctx, pages) {
		if err != nil {
			return nil, p.named(ctx, "list instances", err)
		}
		for _, r := range page.Reservations {
			for i := range r.Instances {
				if err := p.countOther(ctx, used, &r.Instances[i], ours); err != nil {
					return nil, err
				}
			}
		}
	}
	return used, nil
}

func (p *Provider) countOther(ctx context.Context, used providers.Resources, i *types.Instance, ours providers.Ours) error {
	meta := metadata(i.Tags)
	if ours(providers.NodeInfo{ExternalID: sdk.ToString(i.InstanceId), Name: meta[nameTag], Metadata: meta}) {
		return nil
	}
	host := i.Placement != nil && i.Placement.Tenancy == types.TenancyHost
	takes, err := p.takes(ctx, string(i.InstanceType), i.InstanceLifecycle == types.InstanceLifecycleTypeSpot, host)
	if errors.Is(err, providers.ErrInvalid) {
		return nil
	}
	for name, n := range takes {
		used[name] += n
	}
	return err
}

// mine finds what carries the provider's name.
func (p *Provider) mine() []types.Filter {
	return []types.Filter{{Name: sdk.String("tag:" + providers.MetaProvider), Values: []string{p.cfg.Name}}}
}

// volumeType is what a built image's volume is.
func volumeType(own *configs.AWSImage) types.VolumeType { return types.VolumeType(own.VolumeType) }
