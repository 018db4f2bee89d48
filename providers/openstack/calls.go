package openstack

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/providers"
)

// within are the bounds by which calls are counted, in seconds.
var within = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// resources are the words of paths by which calls are told apart; all else is "other", so that
// ids make no kinds.
var resources = []string{
	"servers", "flavors", "os-availability-zone", "limits", "os-quota-sets", "os-keypairs", "images", "networks", "subnets", "ports",
	"floatingips", "floatingip_pools", "quotas", "security-groups", "volumes", "tokens", "application_credentials", "info",
}

// calls count how long answers took. The zero value is ready.
type calls struct {
	mu    sync.Mutex
	kinds map[string]*providers.Calls
}

// kind is the method of a call and what it is about.
func kind(req *http.Request) string {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	for _, part := range parts {
		if slices.Contains(resources, part) {
			if last := parts[len(parts)-1]; last == "action" || last == "import" {
				part += "/" + last
			}
			return req.Method + " " + part
		}
	}
	return req.Method + " other"
}

// answered notes that a call was answered.
func (c *calls) answered(req *http.Request, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	operation := kind(req)
	one := c.kinds[operation]
	if one == nil {
		one = &providers.Calls{Operation: operation, Within: map[float64]uint64{}}
		for _, bound := range within {
			one.Within[bound] = 0
		}
		if c.kinds == nil {
			c.kinds = map[string]*providers.Calls{}
		}
		c.kinds[operation] = one
	}
	one.Count++
	one.Seconds += took.Seconds()
	for _, bound := range within {
		if took.Seconds() <= bound {
			one.Within[bound]++
		}
	}
}

// Calls implements providers.Asker. Image data, which takes as long as it is large, is not
// counted: uploads have figures of their own.
func (p *Provider) Calls() []providers.Calls {
	p.calls.mu.Lock()
	defer p.calls.mu.Unlock()
	var all []providers.Calls
	for _, operation := range slices.Sorted(maps.Keys(p.calls.kinds)) {
		one := *p.calls.kinds[operation]
		one.Within = maps.Clone(one.Within)
		all = append(all, one)
	}
	return all
}
