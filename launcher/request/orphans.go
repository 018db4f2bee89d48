package request

import (
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"poolkeeper/zkmodel"
)

// asked is how many requests are asked about at once.
const asked = 256

// Orphans are the pending requests that nobody has locked: their launcher has died, or
// could not bring them to an end. The zero value knows of none.
type Orphans struct {
	mu  sync.Mutex
	all map[string]bool
}

// Mark notes a request of our own that could not be brought to an end.
func (o *Orphans) Mark(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = map[string]bool{}
	}
	o.all[id] = true
}

// Forget takes a request off, as it is taken over.
func (o *Orphans) Forget(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, id)
}

// All are those found or marked.
func (o *Orphans) All() map[string]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.all)
}

// Find asks of the pending ones among some requests whether they are locked. Those in
// our hands and those that others take up are left out. What was marked before stays
// where nothing better is known: of those in our hands, of those that do not show as
// pending yet, and of those about which the answer failed.
func (o *Orphans) Find(requests []*zkmodel.Request, ours, theirs map[string]bool, locked func(*zkmodel.Request) (bool, error)) {
	kept := map[string]bool{}
	maps.Copy(kept, ours)
	found := map[string]bool{}
	for _, r := range requests {
		if r.State == zkmodel.RequestRequested {
			kept[r.ID] = true // it may be pending already, where our own write was lost from sight
		}
	}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(asked)
	for _, r := range requests {
		if r.Broken != nil || r.State != zkmodel.RequestPending || ours[r.ID] || theirs[r.ID] {
			continue
		}
		group.Go(func() error {
			has, err := locked(r)
			mu.Lock()
			defer mu.Unlock()
			kept[r.ID] = err != nil
			if err == nil && !has {
				found[r.ID] = true
			}
			return nil
		})
	}
	_ = group.Wait() // never an error
	o.mu.Lock()
	defer o.mu.Unlock()
	for id := range o.all {
		if kept[id] {
			found[id] = true
		}
	}
	o.all = found
}
