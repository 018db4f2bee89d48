package schedule

import (
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel"
)

// Absence is a pool that was registered a moment ago.
type Absence struct {
	Launcher       string // its host
	Provider, Pool string
	Labels         []string
	// Until is when it is no longer waited for; zero while nobody has written down
	// that it left.
	Until time.Time
}

// Absences are the pools that left and may come back. ahead is how far ZooKeeper's
// clock is ahead of ours.
func Absences(known map[string]zkmodel.Offer, registered []*zkmodel.Component, grace time.Duration, now time.Time, ahead time.Duration) []Absence {
	if grace == 0 {
		return nil
	}
	here := make(map[string]bool, len(registered))
	for _, c := range registered {
		here[zkmodel.Offer{Hostname: c.Hostname, Provider: c.ProviderName, Pool: c.PoolName}.Path()] = true
	}
	var away []string // few, of many that are known
	for path := range known {
		if !here[path] {
			away = append(away, path)
		}
	}
	slices.Sort(away)
	var list []Absence
	for _, path := range away {
		o := known[path]
		a := Absence{Launcher: o.Hostname, Provider: o.Provider, Pool: o.Pool, Labels: o.Labels}
		if o.Left {
			a.Until = o.Stat.Mtime.Add(grace - ahead)
		}
		if a.Until.IsZero() || a.Until.After(now) {
			list = append(list, a)
		}
	}
	return list
}

// Awaited is the pool that left last, of those that could serve a request and may
// come back; nil when there is none, or another launcher serves the pool.
func Awaited(away []Absence, registered []*zkmodel.Component, r *zkmodel.Request) *Absence {
	var best *Absence
	for i, a := range away {
		lacks := func(label string) bool { return !slices.Contains(a.Labels, label) }
		served := func(c *zkmodel.Component) bool {
			return c.Broken == nil && c.ProviderName == a.Provider && c.PoolName == a.Pool && supports(c, r.NodeTypes)
		}
		if len(r.NodeTypes) == 0 || slices.ContainsFunc(r.NodeTypes, lacks) || slices.ContainsFunc(registered, served) {
			continue
		}
		if best == nil || !best.Until.IsZero() && (a.Until.IsZero() || a.Until.After(best.Until)) {
			best = &away[i]
		}
	}
	return best
}

// Why says that a request waits for an absent pool.
func (a *Absence) Why() string {
	text := fmt.Sprintf("waits for launcher %s, which had its labels in pool %s of %s and has left", a.Launcher, a.Pool, a.Provider)
	if a.Until.IsZero() {
		return text
	}
	return text + "; it may come back until " + a.Until.UTC().Format("15:04:05 MST")
}
