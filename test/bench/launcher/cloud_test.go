package launcher_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/providers/fake"
)

// ports is a resource that a cloud limits and that no limits tell of.
const ports = "ports"

// How long a cloud takes to make a machine, or to refuse one, and how much longer
// its refusals may take.
const (
	createTime = 100 * time.Millisecond
	lateTime   = 150 * time.Millisecond
)

// cloud is a pretended cloud that holds what its room says, whatever the
// configuration says. Its refusals come in three ways, drawn at random: at once,
// late, and as faults of servers that it has made. It counts what it is asked.
type cloud struct {
	*fake.Provider
	tells    bool   // its limits are its room
	resource string // what is short

	mu      sync.Mutex
	random  *rand.Rand
	room    int             // nodes
	held    map[string]bool // machines that take room
	faulty  map[string]bool // machines that could not be made
	created int             // creations asked for
	refused int
	freed   time.Time // when a machine last left
}

func newCloud(cfg configs.Provider, room int, seed uint64) (*cloud, error) {
	cfg.Settings = &configs.FakeDriver{MaxInstances: 1 << 20, BootDelay: time.Nanosecond}
	p, err := fake.New(cfg, hclog.NewNullLogger())
	return &cloud{
		Provider: p, room: room, resource: providers.Instances, random: rand.New(rand.NewPCG(seed, uint64(room))), //nolint:gosec // drawn again with its seed
		held: map[string]bool{}, faulty: map[string]bool{},
	}, err
}

// Close keeps the cloud: it outlives the launchers that open it.
func (*cloud) Close() error { return nil }

// CreateNode implements providers.Nodes.
func (c *cloud) CreateNode(ctx context.Context, spec providers.NodeSpec) (string, error) {
	c.mu.Lock()
	c.created++
	late := time.Duration(c.random.Int64N(int64(lateTime)))
	way := c.random.IntN(3)
	c.mu.Unlock()
	sleep(ctx, createTime)
	id, err := c.Provider.CreateNode(ctx, spec)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	full := !c.held[id] && len(c.held) >= c.room
	if full {
		c.refused++
		c.faulty[id] = way == 2
	} else {
		c.held[id] = true
	}
	c.mu.Unlock()
	if !full || way == 2 {
		return id, nil
	}
	if err := c.Provider.DeleteNode(ctx, id); err != nil {
		return "", err
	}
	if way == 1 {
		sleep(ctx, late)
	}
	return "", c.refusal()
}

func (c *cloud) refusal() error {
	return fmt.Errorf("%w: Quota exceeded for %s: all are used", providers.ErrQuota, c.resource)
}

// WaitNode implements providers.Nodes.
func (c *cloud) WaitNode(ctx context.Context, id string) (providers.Instance, error) {
	c.mu.Lock()
	faulty := c.faulty[id]
	c.mu.Unlock()
	if faulty {
		return providers.Instance{}, c.refusal()
	}
	return c.Provider.WaitNode(ctx, id)
}

// DeleteNode implements providers.Nodes.
func (c *cloud) DeleteNode(ctx context.Context, id string) error {
	err := c.Provider.DeleteNode(ctx, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.held[id] {
		delete(c.held, id)
		c.freed = time.Now()
	}
	delete(c.faulty, id)
	return err
}

// Limits implements providers.Nodes.
func (c *cloud) Limits(ctx context.Context, _ providers.Ours) (providers.Resources, error) {
	one, err := c.NodeResources(ctx, "main", "small")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	room := c.room
	if !c.tells {
		room = 1000
	}
	limits := providers.Resources{}
	for name, n := range one {
		limits[name] = 1000 * n
		if name == c.resource || c.resource == ports {
			limits[name] = room * n
		}
	}
	return limits, nil
}

// NodeResources implements providers.Nodes.
func (c *cloud) NodeResources(ctx context.Context, pool, label string) (providers.Resources, error) {
	one, err := c.Provider.NodeResources(ctx, pool, label)
	if err == nil && c.resource == providers.Volumes {
		one[providers.Volumes] = 1
	}
	return one, err
}

// figures are what the cloud has counted.
func (c *cloud) figures() (created, refused, held int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.created, c.refused, len(c.held)
}

// resize changes the room, and tells nobody.
func (c *cloud) resize(room int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room = room
}

// lastFreed is when a machine last left.
func (c *cloud) lastFreed() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.freed
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
