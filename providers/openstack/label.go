package openstack

import (
	"fmt"

	"poolkeeper/configs"
	"poolkeeper/providers"
)

// offer is one label of one pool.
type offer struct {
	provider string
	pool     *configs.Pool
	label    *configs.PoolLabel
}

// offer finds a label.
//
// Errors: providers.ErrInvalid when it is not configured.
func (p *Provider) offer(pool, label string) (offer, error) {
	o := offer{provider: p.cfg.Name}
	var ok bool
	if o.pool, ok = p.cfg.Pool(pool); !ok {
		return o, fmt.Errorf("provider %s: %w: there is no pool %q", p.cfg.Name, providers.ErrInvalid, pool)
	}
	if o.label, ok = o.pool.Label(label); !ok {
		return o, fmt.Errorf("provider %s, pool %s: %w: there is no label %q", p.cfg.Name, pool, providers.ErrInvalid, label)
	}
	return o, nil
}

// String names the label as operators find it in the configuration.
func (o offer) String() string {
	return fmt.Sprintf("provider %s: pool %s, label %s", o.provider, o.pool.Name, o.label.Name)
}

// invalid is the error of a key that cannot work.
func (o offer) invalid(key, format string, args ...any) error {
	return &keyError{offer: o.String(), key: key, message: fmt.Sprintf(format, args...)}
}

// keyError says that a key of a label cannot work.
type keyError struct{ offer, key, message string }

// Error names label and key.
func (e *keyError) Error() string {
	return fmt.Sprintf("%s: %s: %s: %s", e.offer, providers.ErrInvalid, e.key, e.message)
}

// Unwrap makes it providers.ErrInvalid.
func (*keyError) Unwrap() error { return providers.ErrInvalid }

// configDrive is what the label's image says about it; nil leaves it to Nova.
func (o offer) configDrive(cfg *configs.Provider) *bool {
	if image, ok := cfg.Image(o.label.DiskImage); ok {
		return image.ConfigDrive
	}
	if image, ok := cfg.CloudImage(o.label.CloudImage); ok {
		return image.ConfigDrive
	}
	return nil
}
