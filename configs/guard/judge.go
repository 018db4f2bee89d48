package guard

import (
	"cmp"
	"slices"

	"poolkeeper/configs"
)

// Judge says what of a configuration is not to take effect until it is accepted,
// after what was in effect before, and by what there is in the tree:
//
//   - a limit that is dropped or raised where an unknown key appears in the same
//     section, so that it may be misspelt, or that cannot be read, or has lost more;
//   - a provider, pool or label that is gone and has nodes other than idle ready ones;
//   - an image that is gone, or no longer listed by a provider, and has ready uploads
//     that nothing replaces.
//
// What is emptied as Nodepool documents, by `diskimages: []` and `max-servers: 0`, is
// meant. Providers whose driver we lack are not gone.
func Judge(before Memory, next *configs.Config, lives Lives) []Item {
	j := &judgement{before: before, next: next, lives: lives, unknown: before.appeared(next.UnknownKeys())}
	for _, name := range before.Images {
		j.image(name)
	}
	for _, p := range before.Providers {
		j.provider(p)
	}
	for _, label := range before.Labels {
		if _, there := next.Label(label); !there {
			j.keep(Item{Kind: KindLabel, Name: label}, lives.nodes("", "", label))
		}
	}
	j.limits()
	j.tenants()
	return j.items
}

// judgement is the state of one Judge.
type judgement struct {
	before Memory
	next   *configs.Config
	lives  Lives
	// unknown are the unknown keys that were not there before, by their section.
	unknown map[string][]string
	items   []Item
}

// keep guards an item if there is a reason for it.
func (j *judgement) keep(i Item, why string) {
	if i.Why = why; why != "" {
		j.items = append(j.items, i)
	}
}

func (j *judgement) guarded(match func(Item) bool) bool { return slices.ContainsFunc(j.items, match) }

// image judges whether an image is gone.
func (j *judgement) image(name string) {
	if _, there := j.next.DiskImage(name); there || j.next.EmptiedImages("") {
		return
	}
	why := ""
	if j.lives.Unknown != "" {
		why = j.lives.Unknown
	}
	for _, u := range j.lives.Uploads {
		if u.Image == name && !j.next.EmptiedImages(u.Provider) && !j.replaced(u.Provider, name) {
			why = j.lives.ready(u.Provider, name)
		}
	}
	j.keep(Item{Kind: KindImage, Name: name}, why)
}

// provider judges whether a provider is gone, or something of it.
func (j *judgement) provider(p Provider) {
	now, there := j.next.Provider(p.Name)
	switch {
	case j.next.IsSkipped(p.Name):
		return
	case !there:
		j.keep(Item{Kind: KindProvider, Name: p.Name}, j.inUse(p))
		return
	}
	for _, image := range p.Images {
		_, listed := now.Image(image)
		whole := j.guarded(func(i Item) bool { return i.Kind == KindImage && i.Name == image })
		if !listed && !whole && !j.next.EmptiedImages(p.Name) && !j.next.EmptiedImages("") && !j.replaced(p.Name, image) {
			j.keep(Item{Kind: KindProviderImage, Provider: p.Name, Name: image}, j.lives.ready(p.Name, image))
		}
	}
	for _, pool := range p.Pools {
		j.pool(p.Name, pool, now)
	}
}

// inUse says what there is of a provider that is gone.
func (j *judgement) inUse(p Provider) (why string) {
	for _, pool := range p.Pools {
		if !j.emptied(p.Name, pool.Name) {
			why = cmp.Or(why, j.lives.nodes(p.Name, pool.Name, ""))
		}
	}
	for _, image := range p.Images {
		why = cmp.Or(why, j.lives.ready(p.Name, image))
	}
	return why
}

// emptied tells whether a pool had no place for nodes before it was removed.
func (j *judgement) emptied(provider, pool string) bool {
	most, limited := j.before.Limits[configs.PoolSection(provider, pool)+".max-servers"]
	return limited && most == 0
}

func (j *judgement) pool(provider string, pool Pool, p *configs.Provider) {
	now, there := p.Pool(pool.Name)
	if !there {
		if !j.emptied(provider, pool.Name) {
			j.keep(Item{Kind: KindPool, Provider: provider, Name: pool.Name}, j.lives.nodes(provider, pool.Name, ""))
		}
		return
	}
	for _, label := range pool.labelNames() {
		if !offers(now, label) {
			j.keep(Item{Kind: KindPoolLabel, Provider: provider, Pool: pool.Name, Name: label},
				j.lives.nodes(provider, pool.Name, label))
		}
	}
}

// offers tells whether a pool has a label.
func offers(p *configs.Pool, label string) bool {
	if _, has := p.Label(label); has {
		return true
	}
	return slices.ContainsFunc(p.Nodes, func(n configs.StaticNode) bool { return slices.Contains(n.Labels, label) })
}

// replaced tells whether all labels of a provider that booted from an image now boot
// from another one, which is there.
func (j *judgement) replaced(provider, image string) bool {
	was, count := j.before.provider(provider), 0
	now, there := j.next.Provider(provider)
	if was == nil || !there {
		return false
	}
	for _, pool := range was.Pools {
		for label, from := range pool.Labels {
			if from != image {
				continue
			}
			count++
			if !j.bootsElse(now, pool.Name, label, image) {
				return false
			}
		}
	}
	return count > 0
}

// bootsElse tells whether a label boots from another image than before.
func (j *judgement) bootsElse(p *configs.Provider, pool, label, image string) bool {
	section, there := p.Pool(pool)
	if !there {
		return false
	}
	l, there := section.Label(label)
	return there && (l.CloudImage != "" || l.DiskImage != image && j.lives.has(p.Name, l.DiskImage))
}
