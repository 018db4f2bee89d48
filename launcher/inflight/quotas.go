package inflight

import "context"

// Quotas are the quota locks of the providers that we serve, by provider. Tenants with a
// limit are counted over all providers: one lock stands under every name then.
type Quotas map[string]*QuotaLock

// NewQuotas makes the locks, of which nobody has one yet. acquire waits for the lock of a
// provider, or of all for the name AllProviders, where tenants are limited; barrier
// returns when all is seen that was written before.
func NewQuotas(providers []string, tenants bool, acquire func(name string) func(context.Context) (Held, error), barrier func(context.Context) error, jobs *Jobs) Quotas {
	quotas := make(Quotas, len(providers))
	var all *QuotaLock
	for _, name := range providers {
		switch {
		case !tenants:
			quotas[name] = NewQuotaLock(acquire(name), barrier, jobs)
		case all == nil:
			all = NewQuotaLock(acquire(AllProviders), barrier, jobs)
			fallthrough
		default:
			quotas[name] = all
		}
	}
	return quotas
}

// AllProviders names the one lock of sites that limit tenants; no provider can be called
// so.
const AllProviders = "*"

// Use begins a round of decisions, and reports of which providers we have the lock in it.
func (q Quotas) Use() map[string]bool {
	ours := make(map[string]bool, len(q))
	for name, lock := range q {
		ours[name] = lock.Use()
	}
	return ours
}

// EndRound gives locks to the launchers that stand in line for them, and stands in line for those
// that are wanted.
func (q Quotas) EndRound(ctx context.Context, wanted map[string]bool) {
	for name, lock := range q {
		lock.Yield(ctx)
		if wanted[name] {
			lock.Want(ctx)
		}
	}
}

// End gives all locks back.
func (q Quotas) End(ctx context.Context) {
	for _, lock := range q {
		lock.End(ctx)
	}
}
