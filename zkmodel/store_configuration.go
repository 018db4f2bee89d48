package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

const (
	// ConfigurationsRoot remembers which configuration was in effect, per kind of
	// daemon and host: names and limits, to judge the next one by.
	ConfigurationsRoot = OwnRoot + "/configurations"
	// AcceptedRoot holds what operators have accepted of configurations.
	AcceptedRoot = OwnRoot + "/accepted-configurations"
)

// acceptedFor is how long what was accepted counts for hosts that come late. Longer,
// and what is configured anew could be lost by accident without a word.
const acceptedFor = 7 * 24 * time.Hour

// ConfigurationKey names what is remembered of one daemon's configuration. File tells
// daemons of one kind apart that run on one host.
type ConfigurationKey struct{ Kind, Host, File string }

// Path is the record's path.
func (k ConfigurationKey) Path() string {
	return ConfigurationsRoot + "/" + url.PathEscape(k.Kind) + "/" + url.PathEscape(k.Host) + "," + url.PathEscape(k.File)
}

// Configuration is what is remembered of one daemon's configuration. The data is the
// daemons' own.
type Configuration struct {
	ConfigurationKey
	Data []byte
	Err  error // why it cannot be read; nil when it was
}

// Configuration reads what is remembered of a daemon's configuration; nil when that is
// nothing.
func (st *Store) Configuration(ctx context.Context, key ConfigurationKey) ([]byte, error) {
	data, _, err := st.session.Get(ctx, key.Path())
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the configuration of %s on %s: %w", key.Kind, key.Host, err)
	}
	return data, nil
}

// SaveConfiguration remembers what is to be remembered of a daemon's configuration, and
// tells what has changed of it.
func (st *Store) SaveConfiguration(ctx context.Context, key ConfigurationKey, data []byte, changes ...string) error {
	err := st.session.EnsurePath(ctx, key.Path())
	var news []teller
	if len(changes) > 0 {
		news = append(news, gone{event.Configuration, "configuration/" + key.Kind + "/" + key.Host, event.Data{"file": key.File, "changes": changes}})
	}
	if err == nil {
		err = st.telling(ctx, func(also []recipe.Op) error {
			_, err := st.session.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpSet(key.Path(), data, recipe.AnyVersion)}, also)...)
			return err
		}, news...)
	}
	if err != nil {
		return fmt.Errorf("save the configuration of %s on %s: %w", key.Kind, key.Host, err)
	}
	return nil
}

// Configurations lists what is remembered of all daemons' configurations. One that
// cannot be read hides no other.
func (st *Store) Configurations(ctx context.Context) ([]Configuration, error) {
	kinds, err := st.below(ctx, ConfigurationsRoot)
	if err != nil {
		return nil, fmt.Errorf("list configurations: %w", err)
	}
	var list []Configuration
	for _, kind := range kinds {
		names, err := st.below(ctx, ConfigurationsRoot+"/"+kind)
		if err != nil {
			return nil, fmt.Errorf("list configurations: %w", err)
		}
		for _, name := range names {
			key, ok := configurationKey(kind, name)
			if !ok {
				continue
			}
			data, err := st.Configuration(ctx, key)
			if err != nil && !recipe.Unreadable(err) {
				return nil, err
			}
			list = append(list, Configuration{key, data, err})
		}
	}
	return list, nil
}

// configurationKey is the inverse of ConfigurationKey.Path.
func configurationKey(kind, name string) (ConfigurationKey, bool) {
	host, file, ok := strings.Cut(name, ",")
	var key ConfigurationKey
	var errs [3]error
	key.Kind, errs[0] = url.PathUnescape(kind)
	key.Host, errs[1] = url.PathUnescape(host)
	key.File, errs[2] = url.PathUnescape(file)
	return key, ok && errors.Join(errs[:]...) == nil
}

// Accept writes down what an operator has accepted, under a name of its own, and
// forgets what nobody needs any more.
func (st *Store) Accept(ctx context.Context, name string, data []byte) error {
	path := AcceptedRoot + "/" + url.PathEscape(name)
	err := st.session.EnsurePath(ctx, path)
	if err == nil {
		_, err = st.session.Set(ctx, path, data, recipe.AnyVersion)
	}
	if err != nil {
		return fmt.Errorf("accept a configuration: %w", err)
	}
	_, err = st.accepted(ctx, true)
	return err
}

// Accepted lists what operators have accepted within the last week, by ZooKeeper's
// clock.
func (st *Store) Accepted(ctx context.Context) ([][]byte, error) { return st.accepted(ctx, false) }

func (st *Store) accepted(ctx context.Context, forget bool) (list [][]byte, err error) {
	fail := func(err error) ([][]byte, error) { return nil, fmt.Errorf("list accepted configurations: %w", err) }
	names, err := st.below(ctx, AcceptedRoot)
	if err != nil {
		return fail(err)
	}
	if len(names) == 0 {
		return nil, nil
	}
	ahead, err := st.Ahead(ctx)
	if err != nil {
		return fail(err)
	}
	for _, name := range names {
		path := AcceptedRoot + "/" + name
		data, stat, err := st.session.Get(ctx, path)
		old := st.now().Add(ahead).Sub(stat.Mtime) > acceptedFor
		switch {
		case errors.Is(err, recipe.ErrNoNode):
		case err != nil:
			return fail(err)
		case !old:
			list = append(list, data)
		case forget:
			if err := st.session.Delete(ctx, path, stat.Version); err != nil && !errors.Is(err, recipe.ErrNoNode) {
				return fail(err)
			}
		}
	}
	return list, nil
}

// below lists the names below a path, none where it is not there.
func (st *Store) below(ctx context.Context, path string) ([]string, error) {
	names, err := st.session.Children(ctx, path)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil
	}
	return names, err
}
