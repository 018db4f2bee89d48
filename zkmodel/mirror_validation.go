package zkmodel

import (
	"context"
	"path"
	"sync"

	"poolkeeper/zkmodel/recipe"
)

// onDemand follows a part of the tree from the moment on at which a daemon has something
// to do with it: where nothing of it is configured, not one read is made for it.
type onDemand struct {
	tree   *recipe.Tree
	once   sync.Once
	wanted chan struct{}
}

// validationInterest says what a Mirror follows below ValidationsRoot.
func validationInterest(p string) recipe.Interest {
	switch names := below(ValidationsRoot, p); {
	case len(names) < 2:
		return recipe.Children
	case names[len(names)-1] == lockName:
		return recipe.None
	case len(names) == 2:
		return recipe.Data | recipe.Children
	case len(names) == 3:
		return recipe.Data
	}
	return recipe.None
}

// FollowValidations follows the uploads under trial from now on, as long as Run runs.
// It may be called often, and never blocks.
func (m *Mirror) FollowValidations() {
	m.trials.want()
}

// FollowsValidations reports whether FollowValidations was called.
func (m *Mirror) FollowsValidations() bool { return m.trials.is() }

// FollowCanaries follows how builds come into service from now on, as FollowValidations does
// with uploads under trial.
func (m *Mirror) FollowCanaries() { m.canaries.want() }

// FollowsCanaries reports whether FollowCanaries was called.
func (m *Mirror) FollowsCanaries() bool { return m.canaries.is() }

// want has it followed.
func (t *onDemand) want() {
	if t != nil {
		t.once.Do(func() { close(t.wanted) })
	}
}

// is reports whether it is wanted.
func (t *onDemand) is() bool {
	if t == nil {
		return false
	}
	select {
	case <-t.wanted:
		return true
	default:
		return false
	}
}

// run follows it as soon as it is wanted.
func (t *onDemand) run(ctx context.Context) error {
	select {
	case <-t.wanted:
		return t.tree.Run(ctx)
	case <-ctx.Done():
		return nil
	}
}

// WaitValidations returns once the uploads under trial were read, after
// FollowValidations.
func (m *Mirror) WaitValidations(ctx context.Context) error { return m.trials.tree.WaitSynced(ctx) }

// SubscribeValidations reports the names of providers in which an upload under trial has
// changed, or Folder.
func (m *Mirror) SubscribeValidations() *recipe.Subscription {
	return subscribe(m.trials.tree, ValidationsRoot)
}

// Validations lists the uploads under trial in a provider, or in all for "", by provider
// and name. They are incomplete where err is not nil, and none without FollowValidations.
func (m *Mirror) Validations(provider string) (list []*Validation, err error) {
	if !m.FollowsValidations() {
		return nil, nil
	}
	m.trials.tree.View(func(v recipe.View) {
		root := ValidationsRoot
		if provider != "" {
			root = ValidationsPath(provider)
		}
		err = v.Unread(root)
		providers := []string{provider}
		if provider == "" {
			providers = v.Children(ValidationsRoot)
		}
		for _, name := range providers {
			for _, upload := range v.Children(ValidationsPath(name)) {
				if upload != lockName {
					list = append(list, viewValidation(v, path.Join(ValidationsPath(name), upload)))
				}
			}
		}
	})
	return list, err
}

// TrialsOf lists the trials of an image's uploads, as far as they can be read; none without
// FollowValidations.
func (m *Mirror) TrialsOf(i *Image) (list []*Validation) {
	if !m.FollowsValidations() {
		return nil
	}
	m.trials.tree.View(func(v recipe.View) {
		for _, b := range i.Builds {
			for _, u := range b.Uploads {
				at := ValidationPath(u.UploadKey)
				if _, there := v.Get(at); there && u.OnTrial() {
					list = append(list, viewValidation(v, at))
				}
			}
		}
	})
	return list
}

// viewValidation reads the record of a trial out of a view.
func viewValidation(v recipe.View, at string) *Validation {
	entry, _ := v.Get(at)
	trial := decodeValidation(at, entry.Data, entry.Stat)
	trial.Broken = broken(entry, trial.Broken)
	for _, name := range v.Children(at) {
		if part, ok := v.Get(path.Join(at, name)); ok && name != lockName {
			trial.decodePart(name, part.Data, part.Stat)
			trial.Broken = broken(part, trial.Broken)
		}
	}
	return trial
}
