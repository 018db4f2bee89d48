package schedule

import (
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// tenantUsage counts what the nodes of each tenant take, in all providers. Machines
// that exist already take nothing, as with Nodepool.
func tenantUsage(s *Snapshot) map[string]providers.Resources {
	used := map[string]providers.Resources{}
	if len(s.Tenants) == 0 {
		return used
	}
	for _, n := range s.Nodes {
		if n.Broken == nil && n.TenantName != "" && n.Launcher != StaticLauncher {
			used[n.TenantName] = Plus(used[n.TenantName], NodeResources(n, nil))
		}
	}
	return used
}

// tenantFull says which limit of its tenant a request would exceed now, and whether it
// would.
func (a *assignment) tenantFull(r *zkmodel.Request, needs providers.Resources) (why string, full bool) {
	limits, limited := a.Tenants[r.TenantName]
	if !limited || len(needs) == 0 {
		return "", false
	}
	if s, lacks := short(a.tenants[r.TenantName], needs, limits); lacks {
		return "tenant " + r.TenantName + " is at its limit: " + s, true
	}
	if first := a.closed(a.patient[r.TenantName]); first != nil {
		return "tenant " + r.TenantName + " is at its limit, and request " + first.ID + " comes first", true
	}
	return "", false
}

// tenantNever says which limit of its tenant is smaller than what a request takes, and
// whether one is.
func (a *assignment) tenantNever(r *zkmodel.Request, needs providers.Resources) (why string, exceeds bool) {
	if s, exceeds := short(nil, needs, a.Tenants[r.TenantName]); exceeds {
		return "exceeds the limits of tenant " + r.TenantName + ": " + s, true
	}
	return "", false
}
