package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// WithCanaries has the Store read how builds come into service, too: where the
// configuration has a canary. Without, no read is made for it.
func (st *Store) WithCanaries(there bool) *Store {
	one := *st
	one.canaries = there
	return &one
}

// BeginCanaries writes how builds of an image come into service in a provider for the
// first time. One that is there already stays.
func (st *Store) BeginCanaries(ctx context.Context, c *Canary) error {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write %s: %w", CanaryPath(c.Provider, c.Image), err)
	}
	full := CanaryPath(c.Provider, c.Image)
	for { // the folder may go at any time, as the last record does
		if err = st.session.EnsurePath(ctx, path.Dir(full)); err == nil {
			_, err = st.session.Create(ctx, full, data, recipe.Persistent)
		}
		if !errors.Is(err, recipe.ErrNoNode) {
			break
		}
	}
	if err != nil && !errors.Is(err, recipe.ErrNodeExists) {
		return fmt.Errorf("write %s: %w", full, err)
	}
	return nil
}

// ChangeCanary writes a changed record, if nobody else has changed it, in one transaction
// with its event and with the removal of counts of earlier canaries.
//
// Errors: recipe.ErrVersion, recipe.ErrNoNode when it has changed since it was read.
func (st *Store) ChangeCanary(ctx context.Context, c *Canary) error {
	op, err := c.SetOp()
	if err != nil {
		return err
	}
	ops := []recipe.Op{op}
	for host, counts := range c.Counts {
		if c.Trial == nil || !counts.Of(c.Trial) {
			ops = append(ops, recipe.OpDelete(CanaryCountPath(c.Provider, c.Image, host), counts.Version))
		}
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		_, err := st.session.Multi(ctx, slices.Concat(ops, also)...)
		return err
	}, c)
	if err != nil {
		return fmt.Errorf("write %s: %w", CanaryPath(c.Provider, c.Image), err)
	}
	return nil
}

// ForgetCanaries removes how builds of an image come into service in a provider, and the
// folders that are empty then; behind the fence of lead, unless that is nil.
func (st *Store) ForgetCanaries(ctx context.Context, lead *recipe.Held, provider, image string) error {
	removeAll, remove := st.session.DeleteTree, st.session.Delete
	if lead != nil {
		removeAll, remove = func(ctx context.Context, path string) error { return lead.DeleteTree(ctx, path) }, lead.Delete
	}
	full := CanaryPath(provider, image)
	err := removeAll(ctx, full)
	for _, folder := range []string{path.Dir(full), CanariesRoot} {
		if err == nil || errors.Is(err, recipe.ErrNoNode) {
			err = remove(ctx, folder, recipe.AnyVersion)
		}
	}
	if err != nil && !errors.Is(err, recipe.ErrNotEmpty) && !errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("forget canaries of image %s in provider %s: %w", image, provider, err)
	}
	return nil
}

// Canary reads how builds of an image come into service in a provider, without counts; nil
// when there is nothing.
func (st *Store) Canary(ctx context.Context, provider, image string) (*Canary, error) {
	data, stat, err := st.session.Get(ctx, CanaryPath(provider, image))
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", CanaryPath(provider, image), err)
	}
	c := DecodeCanary(provider, image, data, stat)
	return c, c.Broken
}

// CanaryCounts reads what the launchers of one host counted; false when that is nothing.
func (st *Store) CanaryCounts(ctx context.Context, provider, image, host string) (CanaryCounts, bool, error) {
	data, stat, err := st.session.Get(ctx, CanaryCountPath(provider, image, host))
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return CanaryCounts{}, false, nil
	case err != nil:
		return CanaryCounts{}, false, fmt.Errorf("read %s: %w", CanaryCountPath(provider, image, host), err)
	}
	return DecodeCanaryCounts(data, stat), true, nil
}

// CanaryCountsOp is the write of what the launchers of one host counted: of a record that is
// there, or a new one.
func CanaryCountsOp(provider, image, host string, c CanaryCounts, there bool) (recipe.Op, error) {
	data, err := json.Marshal(c)
	full := CanaryCountPath(provider, image, host)
	switch {
	case err != nil:
		return recipe.Op{}, fmt.Errorf("write %s: %w", full, err)
	case there:
		return recipe.OpSet(full, data, c.Version), nil
	}
	return recipe.OpCreate(full, data, recipe.Persistent), nil
}

// readCanaries reads how builds of images come into service.
func (st *Store) readCanaries(ctx context.Context, images ...*Image) error {
	if !st.canaries {
		return nil
	}
	providers, err := st.children(ctx, CanariesRoot)
	if err != nil {
		return err
	}
	for _, image := range images {
		for _, provider := range providers {
			c, err := st.Canary(ctx, provider, image.Name)
			if err != nil && (c == nil || c.Broken == nil) {
				return err
			}
			if c == nil {
				continue
			}
			hosts, err := st.children(ctx, CanaryPath(provider, image.Name))
			if err != nil {
				return err
			}
			c.Counts = map[string]CanaryCounts{}
			for _, host := range hosts {
				counts, there, err := st.CanaryCounts(ctx, provider, image.Name, host)
				if err != nil {
					return err
				}
				if there {
					c.Counts[host] = counts
				}
			}
			image.Canaries = append(image.Canaries, c)
		}
	}
	return nil
}

// canariesOf is how builds of an image come into service, by provider.
func (m *Mirror) canariesOf(image string) (list []*Canary, err error) {
	if !m.FollowsCanaries() {
		return nil, nil
	}
	m.canaries.tree.View(func(v recipe.View) {
		err = v.Unread(CanariesRoot)
		for _, provider := range v.Children(CanariesRoot) {
			full := CanaryPath(provider, image)
			entry, there := v.Get(full)
			if !there {
				continue
			}
			c := DecodeCanary(provider, image, entry.Data, entry.Stat)
			c.Broken = broken(entry, c.Broken)
			c.Counts = map[string]CanaryCounts{}
			for _, host := range v.Children(full) {
				if e, ok := v.Get(path.Join(full, host)); ok {
					c.Counts[host] = DecodeCanaryCounts(e.Data, e.Stat)
				}
			}
			list = append(list, c)
		}
	})
	return list, err
}

// Canaries are how builds of an image come into service, by provider, as far as it can be read.
func (m *Mirror) Canaries(image string) []*Canary {
	list, _ := m.canariesOf(image)
	return list
}

// CanaryImages reads the providers and images with canaries that stand in the tree.
func (st *Store) CanaryImages(ctx context.Context) (list [][2]string, err error) {
	providers, err := st.children(ctx, CanariesRoot)
	if err != nil {
		return nil, fmt.Errorf("list canaries: %w", err)
	}
	for _, provider := range providers {
		images, err := st.children(ctx, path.Join(CanariesRoot, provider))
		if err != nil {
			return nil, fmt.Errorf("list canaries: %w", err)
		}
		for _, image := range images {
			list = append(list, [2]string{provider, image})
		}
	}
	return list, nil
}

// CanaryImages are the providers and images with canaries that stand in the tree, as far as they
// are followed.
func (m *Mirror) CanaryImages() [][2]string {
	if !m.FollowsCanaries() {
		return nil
	}
	var list [][2]string
	m.canaries.tree.View(func(v recipe.View) {
		for _, provider := range v.Children(CanariesRoot) {
			for _, image := range v.Children(path.Join(CanariesRoot, provider)) {
				list = append(list, [2]string{provider, image})
			}
		}
	})
	return list
}
