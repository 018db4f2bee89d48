package openstack

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"poolkeeper/providers"
)

// resources are the words of paths by which calls are told apart; all else is "other", so that
// ids make no kinds.
var resources = []string{
	"servers", "flavors", "os-availability-zone", "limits", "os-quota-sets", "os-keypairs", "images", "networks", "subnets", "ports",
	"floatingips", "floatingip_pools", "quotas", "security-groups", "volumes", "tokens", "application_credentials", "info",
}

// calls count how long answers took. The zero value is ready.
type calls struct{ providers.CallCounter }

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
func (c *calls) answered(req *http.Request, took time.Duration) { c.Answered(kind(req), took) }

// Calls implements providers.Asker. Image data, which takes as long as it is large, is not
// counted: uploads have figures of their own.
func (p *Provider) Calls() []providers.Calls { return p.calls.Calls() }
