package builder

import (
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/registry"
)

// lender lends providers to actions.
type lender struct{ *registry.Registry }

func newLender(open registry.Opener, told func(provider string, trouble error)) lender {
	return lender{registry.New(open, registry.Events{Opened: told, Told: told})}
}

// use opens a provider, or returns the one that is open. The caller calls done
// when it has no more calls to make.
func (l lender) use(cfg *configs.Config, name string) (p providers.Provider, done func(), err error) {
	section, ok := cfg.Provider(name)
	if !ok {
		return nil, nil, fmt.Errorf("open provider %s: %w", name, errNoProvider)
	}
	lease, err := l.Use(*section)
	if err != nil {
		return nil, nil, fmt.Errorf("open provider %s: %w", name, err)
	}
	return lease.Provider, func() { _ = lease.Done() }, nil // what cannot be closed is of no use either
}
