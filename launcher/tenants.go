package launcher

import (
	"poolkeeper/configs"
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
		if n.Broken == nil && n.TenantName != "" && n.Launcher != staticLauncher {
			used[n.TenantName] = plus(used[n.TenantName], nodeResources(n, nil))
		}
	}
	return used
}

// tenantFull says which limit of its tenant a request would exceed, or "".
func (a *assignment) tenantFull(r *zkmodel.Request, needs providers.Resources) string {
	limits, limited := a.Tenants[r.TenantName]
	if !limited || len(needs) == 0 {
		return ""
	}
	if s := short(a.tenants[r.TenantName], needs, limits); s != "" {
		return "tenant " + r.TenantName + " is at its limit: " + s
	}
	if first := a.patient[r.TenantName]; first != nil {
		if yes, _ := a.drains(first); yes {
			return "tenant " + r.TenantName + " is at its limit, and request " + first.ID + " comes first"
		}
	}
	return ""
}

// tenantNever says which limit of its tenant is smaller than what a request
// takes, or "".
func (a *assignment) tenantNever(r *zkmodel.Request, needs providers.Resources) string {
	if s := short(nil, needs, a.Tenants[r.TenantName]); s != "" {
		return "exceeds the limits of tenant " + r.TenantName + ": " + s
	}
	return ""
}

// tenantLimits are the limits of the configuration, by tenant.
func tenantLimits(cfg *configs.Config) map[string]providers.Resources {
	limits := make(map[string]providers.Resources, len(cfg.TenantLimits))
	for _, t := range cfg.TenantLimits {
		limits[t.Tenant] = t.Limits
	}
	return limits
}
