package cloud

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"poolkeeper/providers"
)

// Options say what the clouds are like.
type Options struct {
	// Seed decides every delay and every fault.
	Seed uint64
	// Answer is how long a usual answer takes; 0 is 200 ms. Machines boot, and images are
	// sent, some hundred times as long.
	Answer time.Duration
	// Stale is for how long a list may show the past, while Stale is on; 0 is 20 s.
	Stale time.Duration
	// Instances is how many machines each cloud has room for; 0 is 20.
	Instances int
	// Told is called with each change, in their order; it must not call the Cloud.
	Told func(Event)
}

// Cloud is all clouds of a simulation, by the names of their providers. Its methods are safe
// for use by several goroutines. Nothing runs for it but timers.
type Cloud struct {
	opts Options

	mu     sync.Mutex // never held while waiting
	places map[string]*place
	agents map[string]uint64 // how many handles each has opened
	met    map[string]int    // faults that calls have met, "op/fault"
	calls  map[string]int    // calls, by op
	ids    int
}

// place is one cloud.
type place struct {
	name   string
	room   int
	images map[string]*image
	nodes  map[string]*machine
	shares map[Fault]float64
	quiet  chan struct{} // closed when faults are switched off: what hangs fails then
}

// listed is when lists begin to show a thing, and, once it is gone, when they end to.
type listed struct {
	from, until time.Time // until is zero while it is there
}

func (l *listed) at(now time.Time) bool {
	return !l.from.After(now) && (l.until.IsZero() || l.until.After(now))
}

func (l *listed) there() bool { return l.until.IsZero() }

type image struct {
	providers.Image
	listed
	active bool // false while its bytes are on their way
}

type machine struct {
	providers.NodeInfo
	listed
	spec   providers.NodeSpec
	zone   string
	number int
	ready  time.Time
	fails  bool
	gone   chan struct{}
}

// New makes clouds that have nothing.
func New(o Options) *Cloud {
	o.Answer = cmp.Or(o.Answer, 200*time.Millisecond)
	o.Stale = cmp.Or(o.Stale, 20*time.Second)
	o.Instances = cmp.Or(o.Instances, 20)
	if o.Told == nil {
		o.Told = func(Event) {}
	}
	return &Cloud{opts: o, places: map[string]*place{}, agents: map[string]uint64{}, met: map[string]int{}, calls: map[string]int{}}
}

// Event is a change of a cloud.
type Event struct {
	At       time.Time
	Agent    string // who has asked for it; "" is the cloud itself
	Provider string
	Op       string
	ID       string // the external id
	Metadata map[string]string
	Fault    Fault // that has made it; "" is none
}

// What calls ask for, and what events tell.
const (
	OpUpload      = "upload" // an image is there; its bytes are on their way
	OpDeleteImage = "delete-image"
	OpListImages  = "list-images"
	OpCreate      = "create"
	OpWait        = "wait"
	OpDeleteNode  = "delete-node"
	OpListNodes   = "list-nodes"
	OpLimits      = "limits"
	OpReady       = "ready" // an image's bytes have arrived; told only
)

// place finds a cloud, and makes it the first time.
func (c *Cloud) place(name string) *place {
	p, ok := c.places[name]
	if !ok {
		p = &place{
			name: name, room: c.opts.Instances, images: map[string]*image{}, nodes: map[string]*machine{},
			shares: map[Fault]float64{}, quiet: make(chan struct{}),
		}
		c.places[name] = p
	}
	return p
}

// tell is called with the mutex held.
func (c *Cloud) tell(agent string, p *place, op, id string, metadata map[string]string, by Fault) {
	c.opts.Told(Event{At: time.Now(), Agent: agent, Provider: p.name, Op: op, ID: id, Metadata: maps.Clone(metadata), Fault: by})
}

func (c *Cloud) newID(p *place, kind string) string {
	c.ids++
	return fmt.Sprintf("%s-%s-%04d", p.name, kind, c.ids)
}

// lag is how much later lists tell of a change.
func (c *Cloud) lag(stale bool, rng *rand.Rand) time.Duration {
	if !stale {
		return 0
	}
	return time.Duration(rng.Int64N(int64(c.opts.Stale)))
}

// Images are the images that are in a cloud, whatever its lists show.
func (c *Cloud) Images(provider string) (list []providers.Image) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range c.place(provider).images {
		if i.there() {
			list = append(list, i.clone())
		}
	}
	slices.SortFunc(list, func(a, b providers.Image) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list
}

// Nodes are the machines that are in a cloud, whatever its lists show.
func (c *Cloud) Nodes(provider string) (list []providers.NodeInfo) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.place(provider).nodes {
		if m.there() {
			list = append(list, m.clone())
		}
	}
	slices.SortFunc(list, func(a, b providers.NodeInfo) int { return strings.Compare(a.ExternalID, b.ExternalID) })
	return list
}

func (i *image) clone() providers.Image {
	copied := i.Image
	copied.Metadata = maps.Clone(i.Metadata)
	return copied
}

func (m *machine) clone() providers.NodeInfo {
	copied := m.NodeInfo
	copied.Metadata = maps.Clone(m.Metadata)
	return copied
}
