package registry

import (
	"sync"

	"poolkeeper/providers"
)

// Lease is an open provider in the hands of one user.
type Lease struct {
	// Provider is open until Done or Retire. The user does not close it.
	Provider providers.Provider

	registry *Registry
	entry    *entry
	once     sync.Once
}

// Done says that the user makes no more calls. Only the first call of Done or Retire
// counts.
//
// Errors: the provider's, if that was its last user and it is wanted no more.
func (l *Lease) Done() error { return l.end(false) }

// Retire is Done, and has the provider closed when no other user is left.
func (l *Lease) Retire() error { return l.end(true) }

func (l *Lease) end(retire bool) (err error) {
	l.once.Do(func() { err = l.registry.leave(l.entry, retire) })
	return err
}
