package attention

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/listing"
)

// cloud is what daemons report of one provider.
type cloud struct {
	hosts    map[string][]string // that cannot use it, by kind of daemon
	trouble  string              // why
	failed   int                 // launches
	labels   []string            // whose launches fail
	last     zkmodel.Failing     // the newest failure
	slow     *zkmodel.Slow
	since    zkmodel.Epoch // of what began first; 0 when it is not known
	launcher string        // a host whose launches fail
}

func (c *cloud) from(since zkmodel.Epoch) {
	if c.since == 0 || since != 0 && since < c.since {
		c.since = since
	}
}

// providerTroubles returns one item per provider that daemons cannot use, whose launches fail or
// whose cloud answers slowly.
func (s *Site) providerTroubles() []Item {
	clouds := map[string]*cloud{}
	of := func(provider string) *cloud {
		if clouds[provider] == nil {
			clouds[provider] = &cloud{hosts: map[string][]string{}}
		}
		return clouds[provider]
	}
	for _, p := range s.Pools {
		if p.Broken == nil {
			notePool(of, p)
		}
	}
	for _, d := range s.Daemons {
		for provider, why := range d.Troubles {
			of(provider).unusable(d.Kind, d.Hostname, why)
		}
	}
	list := make([]Item, 0, len(clouds))
	for provider, c := range clouds {
		list = append(list, c.item(provider))
	}
	slices.SortFunc(list, func(a, b Item) int { return cmp.Compare(a.Provider, b.Provider) })
	return list
}

// notePool notes what a pool reports of its provider.
func notePool(of func(provider string) *cloud, p *zkmodel.Component) {
	if p.Trouble != "" {
		c := of(p.ProviderName)
		c.unusable(zkmodel.KindLauncher, p.Hostname, p.Trouble)
		c.from(p.TroubleSince)
	}
	for label, f := range p.Failing {
		c := of(p.ProviderName)
		c.failed += f.Failed
		c.labels, c.launcher = with(c.labels, label), p.Hostname
		c.from(f.Since)
		if f.Last > c.last.Last {
			c.last = f
		}
	}
	if p.Slow != nil {
		c := of(p.ProviderName)
		c.from(p.Slow.Since)
		if c.slow == nil || p.Slow.Since < c.slow.Since {
			c.slow = p.Slow
		}
	}
}

func (c *cloud) unusable(kind, host, why string) {
	c.hosts[kind] = with(c.hosts[kind], host)
	c.trouble = cmp.Or(c.trouble, why)
}

// item is the attention item of a provider.
func (c *cloud) item(provider string) Item {
	i := Item{Kind: ProviderFails, Provider: provider, Since: timeOf(c.since), Why: cmp.Or(c.trouble, c.last.Error), Name: c.launcher}
	var parts []string
	var by, hosts []string
	for _, kind := range []string{zkmodel.KindBuilder, zkmodel.KindLauncher} {
		if on := c.hosts[kind]; len(on) > 0 {
			by = append(by, fmt.Sprintf("the %s on %s", kind, strings.Join(on, ", ")))
			hosts = append(hosts, on...)
		}
	}
	if len(by) > 0 {
		i.Kind, i.Name = ProviderDown, strings.Join(slices.Compact(hosts), ", ")
		parts = append(parts, "cannot be used by "+strings.Join(by, " and "))
	}
	if c.failed > 0 {
		parts = append(parts, fmt.Sprintf("%s failed (label %s)", count(c.failed, "launch", "launches"), Names(c.labels, 3)))
	}
	if c.slow != nil {
		parts = append(parts, fmt.Sprintf("answers slowly (%s)", c.slow.Call))
		i.Why = cmp.Or(i.Why, fmt.Sprintf("the call %q takes longer than 30 s", c.slow.Call))
	}
	i.What = "Provider " + provider + separator(parts[0]) + strings.Join(parts, "; ")
	return i
}

// separator is what follows the provider's name: a sentence goes on, a number begins one.
func separator(part string) string {
	if part[0] >= '0' && part[0] <= '9' {
		return ": "
	}
	return " "
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func timeOf(e zkmodel.Epoch) time.Time {
	if e == 0 {
		return time.Time{}
	}
	return e.Time()
}

// stuckUploads returns an item per upload of an image whose deletion is stuck.
func (s *Site) stuckUploads(image *zkmodel.Image) (list []Item) {
	for _, b := range image.Builds {
		for _, u := range b.Uploads {
			if u.Stuck(s.Now) {
				list = append(list, Item{
					What: fmt.Sprintf("Upload %s of %s-%s in %s is not deleted", u.ID, u.Image, u.Build, u.Provider),
					Why:  cmp.Or(u.DeleteError, u.Reason), Since: listing.Changed(u.StateTime, u.Stat.Mtime),
					Kind: UploadStuck, Image: u.Image, Build: u.Build, Provider: u.Provider,
				})
			}
		}
	}
	return list
}
