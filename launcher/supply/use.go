package supply

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

// ErrNotOpen says that a provider is not configured, or could not be opened yet.
var ErrNotOpen = errors.New("provider is not available")

// Machines is what a launcher does with a provider. Deleting is not part of it: it
// takes a proof, see Provider.Remove.
type Machines interface {
	CreateNode(ctx context.Context, node providers.NodeSpec) (string, error)
	WaitNode(ctx context.Context, externalID string) (providers.Instance, error)
	ListNodes(ctx context.Context) ([]providers.NodeInfo, error)
	ConsoleLog(ctx context.Context, externalID string, max int) ([]byte, error)
	Limits(ctx context.Context, ours providers.Ours) (providers.Resources, error)
	NodeResources(ctx context.Context, pool, label string) (providers.Resources, error)
}

// Remove deletes a machine of a node. The proof is that of the node's record: it is
// not there, or was read under its lock.
func (c *Provider) Remove(ctx context.Context, proof zkmodel.Proof, node, externalID string) error {
	if err := proof.Of(zkmodel.NodePath(node)); err != nil {
		return err
	}
	p, err := c.opening()
	if err != nil {
		return err
	}
	return p.DeleteNode(ctx, externalID)
}

// Use is the provider, or ErrNotOpen while it is not open.
func (c *Provider) Use() (Machines, error) { return c.opening() }

func (c *Provider) opening() (providers.Provider, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.provider == nil {
		return nil, fmt.Errorf("use provider %s: %w", c.cfg.Name, ErrNotOpen)
	}
	return c.provider, nil
}

// View is what a provider looks like at one moment.
type View struct {
	Zones       []string
	Limits      providers.Resources
	NoLimits    string // why the limits cannot be read, so that pools that honor them launch nothing; "" if they can
	Needs       map[string]map[string]schedule.Offer
	Unavailable string // why nothing can be launched, "" when it can
	Broken      bool   // it never worked yet, for a reason that it told
	// Trouble is why it, or some of it, cannot be used at the moment, "" when it can.
	Trouble      string
	TroubleSince zkmodel.Epoch
	// Failing are the labels whose launches fail, by pool; Slow is the call that is answered
	// slowly, or the zero value.
	Failing map[string]map[string]zkmodel.Failing
	Slow    zkmodel.Slow
	Held    bool // nothing is launched for that
	// Paused says who has paused it, and why; "" when nobody has. It is no Trouble.
	Paused string
	Taught Taught
	Mute   bool // it did not answer the last creation
	Static bool // its machines exist already; false while it is not open
}

// View tells what is known.
func (c *Provider) View() View {
	v := c.seen()
	if v.Paused != "" {
		v.Held, v.Unavailable = true, v.Paused
	}
	return v
}

// faulty reports whether a label names something that the cloud lacks.
func (v View) faulty() bool {
	for _, labels := range v.Needs {
		for _, offer := range labels {
			if offer.Fault != "" {
				return true
			}
		}
	}
	return false
}

// seen is View, whether anybody has paused it or not.
func (c *Provider) seen() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := View{Zones: c.zones, Limits: c.limits, NoLimits: c.noLimits, Needs: c.needs, Taught: c.taught, Mute: c.mute, Static: c.static, Paused: c.paused}
	v.Trouble = cmp.Or(c.failing, c.trouble)
	c.fails(&v)
	v.Held = v.Trouble != "" && (!c.known || !c.answered)
	v.Broken = v.Held && !c.known
	if v.Held {
		v.Unavailable = v.Trouble
	}
	if v.Unavailable == "" && !c.known {
		v.Unavailable = fmt.Sprintf("provider %s is not open yet", c.cfg.Name)
	}
	return v
}

// Usable reports whether it could be used, with no trouble that it told of; one that a
// person has paused can.
func (c *Provider) Usable() bool {
	v := c.seen()
	return v.Unavailable == "" && v.Trouble == ""
}

// Pause notes that a person has paused it, with who and why, or with "" that it goes on.
func (c *Provider) Pause(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = why
}

// Heard notes whether the cloud has answered a creation.
func (c *Provider) Heard(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mute = !answered
}
