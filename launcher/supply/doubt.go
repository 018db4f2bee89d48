package supply

import (
	"maps"

	"poolkeeper/launcher/schedule"
	"poolkeeper/providers"
)

// Doubts are the machines that are given to no request, by external id: those that the last complete
// list showed down or lacked, and those that the cloud has taken back. It asks nobody.
func (c *Provider) Doubts() map[string]schedule.Doubt {
	c.mu.Lock()
	doubts, p := maps.Clone(c.doubts), c.provider
	c.mu.Unlock()
	i, ok := p.(providers.Interrupter)
	if !ok {
		return doubts
	}
	for id, why := range i.Interruptions() {
		if doubts == nil {
			doubts = map[string]schedule.Doubt{}
		}
		doubts[id] = schedule.Doubt{Why: why}
	}
	return doubts
}

// Doubt replaces what the last complete list said of idle machines.
func (c *Provider) Doubt(doubts map[string]schedule.Doubt) {
	c.mu.Lock()
	changed := len(doubts)+len(c.doubts) > 0
	c.doubts = doubts
	c.mu.Unlock()
	if changed {
		c.notify()
	}
}

// Found notes that a machine exists which the last list lacked.
func (c *Provider) Found(externalID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.doubts = maps.Clone(c.doubts)
	delete(c.doubts, externalID)
}
