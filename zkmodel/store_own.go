package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// What only Poolkeeper knows, below OwnRoot.
const (
	// SitePath holds the name of the installation; see SiteID.
	SitePath = OwnRoot + "/site"
	// CancelRoot is the parent of requests to cancel builds, by image.
	CancelRoot = OwnRoot + "/cancel-build"
	// BuildLimitPath and UploadLimitPath are semaphores of all builders.
	BuildLimitPath  = OwnRoot + "/limits/builds"
	UploadLimitPath = OwnRoot + "/limits/uploads"
	// LtimePath is the empty node of logical times; see Ltime.
	LtimePath = OwnRoot + "/ltime"
	// TidyElectionPath elects the launcher that clears up behind all of them.
	TidyElectionPath = OwnRoot + "/elections/tidy"
	// LeaksPath holds a lock for each provider in which a launcher looks for leaks.
	LeaksPath = OwnRoot + "/leaks"
)

// CancelPath is the request to cancel an image's build; its data is the
// build's id.
func CancelPath(image string) string { return CancelRoot + "/" + image }

// LeakLockPath is held by who looks for leaked images in a provider.
func LeakLockPath(provider string) string { return LeaksPath + "/" + provider }

// SiteID is the name of this installation, which what we make in clouds carries:
// two installations may share a cloud, and must not take each other's things
// for their own. It is made when it is missing, and never changes.
func (st *Store) SiteID(ctx context.Context) (string, error) {
	for {
		data, _, err := st.session.Get(ctx, SitePath)
		if err == nil && len(data) > 0 {
			return string(data), nil
		}
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return "", fmt.Errorf("read site id: %w", err)
		}
		if err := st.session.EnsurePath(ctx, OwnRoot); err != nil {
			return "", fmt.Errorf("make site id: %w", err)
		}
		_, err = st.session.Create(ctx, SitePath, []byte(newToken()), recipe.Persistent)
		if err != nil && !isExists(err) && !errors.Is(err, recipe.ErrConnectionLost) {
			return "", fmt.Errorf("make site id: %w", err)
		}
	}
}

// Ltime is a logical time: a Mirror that has waited for it shows all that was
// written before.
func (st *Store) Ltime(ctx context.Context) (int64, error) {
	ltime, err := recipe.Ltime(ctx, st.session, LtimePath)
	if err != nil {
		return 0, fmt.Errorf("take the logical time: %w", err)
	}
	return ltime, nil
}

// CancelBuild asks the builder that builds an image to give it up, and returns
// the build's id. An image that is not being built fails with ErrNotFound.
func (st *Store) CancelBuild(ctx context.Context, image string) (string, error) {
	i, err := st.Image(ctx, image)
	if err != nil {
		return "", err
	}
	id := i.underWay()
	if id == "" && i.Unread != nil {
		return "", fmt.Errorf("cancel build of %s: nobody can tell whether it is being built: %w", image, i.Unread)
	}
	if id == "" {
		return "", fmt.Errorf("cancel build of %s: %w: it is not being built", image, ErrNotFound)
	}
	return id, st.CancelBuildOf(ctx, image, id)
}

// CancelBuildOf is CancelBuild of one build, and no other: one that has ended is left alone.
func (st *Store) CancelBuildOf(ctx context.Context, image, id string) error {
	if err := st.session.EnsurePath(ctx, CancelRoot); err != nil {
		return fmt.Errorf("cancel build of %s: %w", image, err)
	}
	_, err := st.session.Create(ctx, CancelPath(image), []byte(id), recipe.Persistent)
	if isExists(err) {
		_, err = st.session.Set(ctx, CancelPath(image), []byte(id), recipe.AnyVersion)
	}
	if err != nil {
		return fmt.Errorf("cancel build of %s: %w", image, err)
	}
	return nil
}

// ClearCancel removes a request to cancel, once the build has ended.
func (st *Store) ClearCancel(ctx context.Context, image string) error {
	err := st.session.Delete(ctx, CancelPath(image), recipe.AnyVersion)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("clear cancelling of %s: %w", image, err)
	}
	return nil
}

// QuotaLockPath is held by who launches nodes in a provider.
func QuotaLockPath(provider string) string { return OwnRoot + "/quota/" + provider }

// DutiesPath is the partition of what one launcher does for all.
const DutiesPath = OwnRoot + "/duties"

// ProviderDutyPath is the share of what one launcher of a provider does for
// all, LabelDutyPath that of a label.
func ProviderDutyPath(provider string) string { return DutiesPath + "/providers/" + provider }

// LabelDutyPath is like ProviderDutyPath, for a label.
func LabelDutyPath(label string) string { return DutiesPath + "/labels/" + label }

// LimitsRoot holds what providers said of their limits, by provider: one launcher
// asks, and all read.
const LimitsRoot = OwnRoot + "/provider-limits"

// LimitsPath is what one provider said.
func LimitsPath(provider string) string { return LimitsRoot + "/" + provider }

// SaveLimits writes what a provider said of its limits, as a JSON object of
// amounts by resource.
func (st *Store) SaveLimits(ctx context.Context, provider string, data []byte) error {
	if err := st.change(ctx, LimitsPath(provider), func([]byte) ([]byte, []event.Event, error) { return data, nil, nil }); err != nil {
		return fmt.Errorf("save limits of %s: %w", provider, err)
	}
	return nil
}

// Limits reads what providers said of their limits, by provider and resource. What cannot
// be decoded is left out, as it is as good as none.
func (st *Store) Limits(ctx context.Context) (map[string]map[string]int, error) {
	providers, err := st.children(ctx, LimitsRoot)
	if err != nil {
		return nil, fmt.Errorf("list limits: %w", err)
	}
	all := map[string]map[string]int{}
	for _, provider := range providers {
		data, _, err := st.session.Get(ctx, LimitsPath(provider))
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read limits of %s: %w", provider, err)
		}
		var limits map[string]int
		if json.Unmarshal(data, &limits) == nil {
			all[provider] = limits
		}
	}
	return all, nil
}

// ForgetLimits has a provider asked again. What is gone already is no error.
func (st *Store) ForgetLimits(ctx context.Context, provider string) error {
	err := st.session.Delete(ctx, LimitsPath(provider), recipe.AnyVersion)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("forget limits of %s: %w", provider, err)
	}
	return nil
}
