package providers

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// callBounds are the bounds by which calls are counted, in seconds.
var callBounds = []float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// CallCounter counts how long answers took, for a provider that is an Asker. The zero value is
// ready.
type CallCounter struct {
	mu    sync.Mutex
	kinds map[string]*Calls
}

// Answered notes that a call of a kind was answered. There have to be few kinds: ids make none.
func (c *CallCounter) Answered(operation string, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.kinds[operation]
	if one == nil {
		one = &Calls{Operation: operation, Within: map[float64]uint64{}}
		for _, bound := range callBounds {
			one.Within[bound] = 0
		}
		if c.kinds == nil {
			c.kinds = map[string]*Calls{}
		}
		c.kinds[operation] = one
	}
	one.Count++
	one.Seconds += took.Seconds()
	for _, bound := range callBounds {
		if took.Seconds() <= bound {
			one.Within[bound]++
		}
	}
}

// Calls are those that were answered until now, as Asker tells them.
func (c *CallCounter) Calls() []Calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Calls
	for _, operation := range slices.Sorted(maps.Keys(c.kinds)) {
		one := *c.kinds[operation]
		one.Within = maps.Clone(one.Within)
		all = append(all, one)
	}
	return all
}
