package builder

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"poolkeeper/builder/plan"
	"poolkeeper/zkmodel"
)

// look gathers all that a decision about an image depends on.
func (b *Builder) look(image string) plan.Input {
	free, err := b.images.Free()
	if err != nil {
		free = -1
	}
	now := b.deps.Now()
	others := plan.Others{Alive: b.alive()}
	others.Seen, others.Since = b.roster.update(others.Alive, now)
	return plan.Input{
		Config: b.config.Load(),
		Image:  b.mirror.Image(image),
		Local:  b.images.Builds(image),
		Host:   plan.Host{Name: b.deps.FQDN, ID: b.id, Arch: b.deps.Arch, Free: free},
		Others: others,
		Doing:  b.doing.of(image),
		Now:    now,
		Policy: b.deps.Policy,
	}
}

// alive lists the builders that are registered.
func (b *Builder) alive() map[string]bool {
	hosts := map[string]bool{}
	for _, c := range b.mirror.Components(zkmodel.KindBuilder) {
		hosts[c.Hostname] = true
	}
	return hosts
}

// everything names all images of which there may be something to do.
func (b *Builder) everything() []string {
	names := map[string]bool{}
	for _, image := range b.config.Load().DiskImages {
		names[image.Name] = true
	}
	for _, name := range b.mirror.ImageNames() {
		names[name] = true
	}
	for _, name := range b.images.Names() {
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// confirm asks again whether an action is wanted, now that its lock is held and
// nobody else can change what it is about. The tree is seen as it is by now.
func (b *Builder) confirm(ctx context.Context, a plan.Action, change func(*plan.Doing)) (plan.Action, plan.Input, error) {
	if err := b.mirror.Barrier(ctx); err != nil {
		return a, plan.Input{}, err
	}
	in := b.look(a.Image)
	change(&in.Doing)
	now, ok := plan.Decide(in).Find(a.Key())
	if !ok {
		return a, in, fmt.Errorf("%s: %w", a.Key(), errStale)
	}
	return now, in, nil
}
