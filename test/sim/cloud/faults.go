package cloud

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"poolkeeper/providers"
)

// Fault is a way in which a cloud goes wrong.
type Fault string

// The faults that a call may meet.
const (
	Error     Fault = "error"     // nothing is done
	Refused   Fault = "refused"   // as Error, for want of room
	Slow      Fault = "slow"      // an answer takes up to a hundred times as long
	Hung      Fault = "hung"      // no answer comes before the caller gives up
	Lost      Fault = "lost"      // it is done, and no answer comes
	Late      Fault = "late"      // no answer comes, and the machine is made later
	Fails     Fault = "fails"     // the machine never runs
	Stale     Fault = "stale"     // lists are late to show it, or to forget it
	Duplicate Fault = "duplicate" // it is made twice
	More      Fault = "more"      // more room is told than there is
	Less      Fault = "less"      // and less
)

// The faults that happen by themselves.
const (
	Vanished Fault = "vanished"
	Planted  Fault = "planted" // by another installation
)

// faults are those that calls of a kind may meet, in the order in which they are drawn.
var faults = map[string][]Fault{
	OpUpload:      {Error, Refused, Slow, Hung, Lost, Stale, Duplicate},
	OpDeleteImage: {Error, Slow, Hung, Lost, Stale},
	OpListImages:  {Error, Slow, Hung},
	OpCreate:      {Error, Refused, Slow, Hung, Lost, Late, Fails, Stale, Duplicate},
	OpWait:        {Error, Slow, Hung},
	OpDeleteNode:  {Error, Slow, Hung, Lost, Stale},
	OpListNodes:   {Error, Slow, Hung},
	OpLimits:      {Error, Slow, Hung, More, Less},
}

// Kinds are all "op/fault" that calls can meet, sorted.
func Kinds() (all []string) {
	for op, list := range faults {
		for _, f := range list {
			all = append(all, op+"/"+string(f))
		}
	}
	slices.Sort(all)
	return all
}

// Set has that share of the calls to a cloud, from 0 to 1, meet a fault from now on, as far as
// it is one for what they ask for. Of several faults a call meets one.
func (c *Cloud) Set(provider string, f Fault, share float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place(provider).shares[f] = share
}

// Heal ends the faults of a cloud. What hangs there fails now.
func (c *Cloud) Heal(provider string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.place(provider)
	clear(p.shares)
	close(p.quiet)
	p.quiet = make(chan struct{})
}

// Room changes how many machines a cloud has room for.
func (c *Cloud) Room(provider string, instances int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place(provider).room = instances
}

// Met is how often calls have met each fault, "op/fault" to number.
func (c *Cloud) Met() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.met)
}

// Calls is how many there were, by what they asked for.
func (c *Cloud) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// meet draws the fault of a call; all that can be drawn is, so that what one fault is set to
// does not change when others come.
func (c *Cloud) meet(p *place, op string, rng *rand.Rand) (met Fault) {
	c.calls[op]++
	for _, f := range faults[op] {
		if rng.Float64() < p.shares[f] && met == "" {
			met = f
		}
	}
	if met != "" {
		c.met[op+"/"+string(met)]++
	}
	return met
}

// VanishImage has an image of an installation go that nobody has deleted. It reports whether
// there was one.
func (c *Cloud) VanishImage(provider, site string, rng *rand.Rand) bool {
	for _, i := range shuffled(c.Images(provider), rng) {
		if i.Metadata[providers.MetaSite] == site {
			c.mu.Lock()
			defer c.mu.Unlock()
			p := c.place(provider)
			c.dropImage("", p, i.ExternalID, 0, Vanished)
			return true
		}
	}
	return false
}

// VanishNode is VanishImage for a machine.
func (c *Cloud) VanishNode(provider, site string, rng *rand.Rand) bool {
	for _, n := range shuffled(c.Nodes(provider), rng) {
		if n.Metadata[providers.MetaSite] == site {
			c.mu.Lock()
			defer c.mu.Unlock()
			p := c.place(provider)
			c.dropNode("", p, n.ExternalID, 0, Vanished)
			return true
		}
	}
	return false
}

func shuffled[T any](list []T, rng *rand.Rand) []T {
	rng.Shuffle(len(list), func(a, b int) { list[a], list[b] = list[b], list[a] })
	return list
}

// PlantImage puts an image into a cloud that another installation, or a person, has made.
func (c *Cloud) PlantImage(provider, name string, metadata map[string]string) (externalID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.place(provider)
	id := c.newID(p, "image")
	i := &image{Image: providers.Image{ExternalID: id, Name: name, Format: "qcow2", Size: 1, Metadata: maps.Clone(metadata)}, active: true}
	c.putImage("", p, i, Planted)
	return id
}

// PlantNode is PlantImage for a machine; it takes room.
func (c *Cloud) PlantNode(provider, name string, metadata map[string]string) (externalID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.place(provider)
	id := c.newID(p, "node")
	m := &machine{
		NodeInfo: providers.NodeInfo{ExternalID: id, Name: name, Metadata: maps.Clone(metadata)},
		number:   c.ids, ready: time.Now(), gone: make(chan struct{}),
	}
	c.putNode("", p, m, Planted)
	return id
}
