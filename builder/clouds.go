package builder

import (
	"errors"
	"fmt"
	"sync"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// clouds opens providers when they are needed first, and closes those that are
// needed no more: their section of the configuration has changed or is gone,
// and nobody uses them.
type clouds struct {
	open func(configs.Provider) (providers.Provider, error)

	mu     sync.Mutex
	opened map[string]*cloud // the current one of each name
}

// cloud is one opened provider.
type cloud struct {
	cfg      configs.Provider
	once     sync.Once // opens it; one that is slow holds up nobody else
	provider providers.Provider
	err      error

	users   int  // under the mutex of clouds
	retired bool // close it when the last user is gone
}

func newClouds(open func(configs.Provider) (providers.Provider, error)) *clouds {
	return &clouds{open: open, opened: map[string]*cloud{}}
}

// use opens a provider, or returns the one that is open. The caller calls done
// when it has no more calls to make.
func (c *clouds) use(cfg *configs.Config, name string) (p providers.Provider, done func(), err error) {
	section, ok := cfg.Provider(name)
	if !ok {
		return nil, nil, fmt.Errorf("open provider %s: %w", name, errRemoved)
	}
	one := c.enter(section)
	one.once.Do(func() { one.provider, one.err = c.open(*section) })
	if one.err != nil {
		c.mu.Lock()
		if c.opened[name] == one {
			delete(c.opened, name) // the next try opens it again
		}
		c.mu.Unlock()
		return nil, nil, fmt.Errorf("open provider %s: %w", name, errors.Join(one.err, c.leave(one)))
	}
	return one.provider, func() { _ = c.leave(one) }, nil // what cannot be closed is of no use either
}

// enter finds or makes the cloud of a section and counts a user.
func (c *clouds) enter(section *configs.Provider) *cloud {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.opened[section.Name]
	if one == nil || !one.cfg.Equal(section) {
		if one != nil {
			_ = one.retire()
		}
		one = &cloud{cfg: *section}
		c.opened[section.Name] = one
	}
	one.users++
	return one
}

// leave counts a user out.
func (c *clouds) leave(one *cloud) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.users--
	if one.retired && one.users == 0 {
		return one.close()
	}
	return nil
}

// keep retires the providers that a configuration no longer has, or has
// otherwise.
func (c *clouds) keep(cfg *configs.Config) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for name, one := range c.opened {
		if section, ok := cfg.Provider(name); !ok || !one.cfg.Equal(section) {
			err = errors.Join(err, one.retire())
			delete(c.opened, name)
		}
	}
	return err
}

// close retires all.
func (c *clouds) close() error { return c.keep(&configs.Config{}) }

// retire closes a cloud, as soon as nobody uses it.
func (c *cloud) retire() error {
	c.retired = true
	if c.users > 0 {
		return nil
	}
	return c.close()
}

func (c *cloud) close() error {
	if c.provider == nil {
		return nil
	}
	return c.provider.Close()
}
