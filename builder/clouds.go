package builder

import (
	"errors"
	"fmt"
	"sync"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// clouds opens providers when they are needed first.
type clouds struct {
	open func(configs.Provider) (providers.Provider, error)

	mu     sync.Mutex
	opened map[string]*cloud
}

type cloud struct {
	mu       sync.Mutex // held while it is opened
	cfg      configs.Provider
	provider providers.Provider
}

func newClouds(open func(configs.Provider) (providers.Provider, error)) *clouds {
	return &clouds{open: open, opened: map[string]*cloud{}}
}

// get opens a provider, or returns the one that is open. One that is slow to
// open holds up nobody else.
func (c *clouds) get(cfg *configs.Config, name string) (providers.Provider, error) {
	section, ok := cfg.Provider(name)
	if !ok {
		return nil, fmt.Errorf("open provider %s: %w", name, errRemoved)
	}
	c.mu.Lock()
	known := c.opened[name]
	if known == nil {
		known = &cloud{}
		c.opened[name] = known
	}
	c.mu.Unlock()

	known.mu.Lock()
	defer known.mu.Unlock()
	if known.provider != nil && known.cfg.Equal(section) {
		return known.provider, nil
	}
	provider, err := c.open(*section)
	if err != nil {
		return nil, fmt.Errorf("open provider %s: %w", name, err)
	}
	if known.provider != nil {
		// Calls under way on the old one fail, and are made again on the new.
		err = known.provider.Close()
	}
	known.cfg, known.provider = *section, provider
	return provider, err
}

// close closes all.
func (c *clouds) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, known := range c.opened {
		if known.provider != nil {
			err = errors.Join(err, known.provider.Close())
		}
	}
	c.opened = map[string]*cloud{}
	return err
}
