package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// Findings are the images or machines in a provider's cloud that no record names, by their
// ids there, and when each was found first, by ZooKeeper's clock.
type Findings = map[string]time.Time

// FindingsPath holds what the searches of a provider for leaked images have
// found, so that a second search counts whichever builder makes it.
func FindingsPath(provider string) string { return OwnRoot + "/leaked-images/" + provider }

// LeakedMachinesPath is that for machines: a second search counts whichever launcher makes it.
func LeakedMachinesPath(provider string) string { return OwnRoot + "/leaked-machines/" + provider }

// Findings reads what was found in a provider, and ZooKeeper's time; there is
// none when nobody found anything. The lock is that of LeakLockPath. Findings
// that cannot be read are none: the next search finds them again.
func (st *Store) Findings(ctx context.Context, lock *recipe.Held, provider string) (Findings, time.Time, error) {
	path := FindingsPath(provider)
	if err := st.session.EnsurePath(ctx, path); err != nil {
		return nil, time.Time{}, fmt.Errorf("read leaked images of %s: %w", provider, err)
	}
	data, _, err := st.session.Get(ctx, path)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read leaked images of %s: %w", provider, err)
	}
	stat, err := lock.Set(ctx, path, data, recipe.AnyVersion) // the server stamps it with its time
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read leaked images of %s: %w", provider, err)
	}
	return decodeFindings(data), stat.Mtime, nil
}

// decodeFindings takes what cannot be decoded for none.
func decodeFindings(data []byte) (found Findings) {
	if json.Unmarshal(data, &found) != nil {
		return nil
	}
	return found
}

// LeakedMachines reads what was found in a provider. Without a word there is none, and nothing
// is written.
func (st *Store) LeakedMachines(ctx context.Context, provider string) (Findings, error) {
	data, _, err := st.session.Get(ctx, LeakedMachinesPath(provider))
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return nil, fmt.Errorf("read leaked machines of %s: %w", provider, err)
	}
	return decodeFindings(data), nil
}

// SaveLeakedMachines is SaveFindings for machines; the lock is that of the provider's duty.
func (st *Store) SaveLeakedMachines(ctx context.Context, lock *recipe.Held, provider string, found Findings) error {
	path := LeakedMachinesPath(provider)
	if len(found) > 0 {
		if err := st.session.EnsurePath(ctx, path); err != nil {
			return fmt.Errorf("save leaked machines of %s: %w", provider, err)
		}
	}
	return st.saveFindings(ctx, lock, path, "leaked machines of "+provider, found)
}

// SaveFindings writes what was found in a provider; nothing leaves nothing in the
// tree.
func (st *Store) SaveFindings(ctx context.Context, lock *recipe.Held, provider string, found Findings) error {
	return st.saveFindings(ctx, lock, FindingsPath(provider), "leaked images of "+provider, found)
}

func (st *Store) saveFindings(ctx context.Context, lock *recipe.Held, path, what string, found Findings) error {
	if len(found) == 0 {
		_, there, err := st.session.Exists(ctx, path)
		if err == nil && there {
			err = lock.Delete(ctx, path, recipe.AnyVersion)
		}
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return fmt.Errorf("forget %s: %w", what, err)
		}
		return nil
	}
	data, err := json.Marshal(found)
	if err == nil {
		_, err = lock.Set(ctx, path, data, recipe.AnyVersion)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", what, err)
	}
	return nil
}
