package schedule

import (
	"cmp"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/rendezvous"
)

// boundless is the size of a pool that has no limit.
const boundless = 1 << 20

// best is the answer of the pool with the smallest priority number; among equals the
// one that reuses most; then the order of pools counts: the one that is least in use,
// or the one configured first. Nil when there is no answer.
func best[T answer](a *assignment, r *zkmodel.Request, list []T) *T {
	var best *T
	for i := range list {
		if best == nil || a.before(r, list[i].from(), list[i].launches(), (*best).from(), (*best).launches()) {
			best = &list[i]
		}
	}
	return best
}

// before reports whether the answer of a pool, with so many launches, is better than that of one configured
// earlier. Answers are not passed as interfaces, each of which would be an allocation.
func (a *assignment) before(r *zkmodel.Request, pool *Pool, launches int, other *Pool, otherLaunches int) bool {
	order := cmp.Or(cmp.Compare(pool.Priority, other.Priority), cmp.Compare(launches, otherLaunches))
	if order != 0 || a.Order == configs.OrderFill {
		return order < 0
	}
	used, size := a.share(pool)
	usedThan, sizeThan := a.share(other)
	if order = cmp.Compare(used*sizeThan, usedThan*size); order != 0 {
		return order < 0
	}
	mine, its := pool.Provider+"/"+pool.Name, other.Provider+"/"+other.Name
	return rendezvous.Owner([]string{its, mine}, r.ID) == mine
}

// share is how much of a pool is in use: instances of how many.
func (a *assignment) share(p *Pool) (used, size int) {
	size, limited := p.Limits[providers.Instances]
	if !limited {
		size, limited = p.Cloud[providers.Instances]
	}
	if !limited {
		size = boundless
	}
	return a.used.pools[PoolKey{p.Provider, p.Name}][providers.Instances], max(size, 1)
}
