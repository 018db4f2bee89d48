package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// OffersRoot remembers what pools offered, of whatever launcher, so that one that
// is away for a moment is waited for.
const OffersRoot = OwnRoot + "/offers"

// OfferElectionPath elects the launcher that keeps what is below OffersRoot.
const OfferElectionPath = OwnRoot + "/elections/offers"

// ClockPath is the empty node that is written to see ZooKeeper's clock.
const ClockPath = OwnRoot + "/clock"

// Offer is what a pool of a launcher offered when it was last registered. A launcher
// has other ids after each start, so its host stands for it.
type Offer struct {
	Hostname string  `json:"hostname"`
	Provider string  `json:"provider"`
	Pool     string  `json:"pool"`
	Labels   Strings `json:"labels"`
	// Left says that the pool is registered no more, since the record's Mtime at
	// the latest.
	Left bool `json:"left"`

	Stat recipe.Stat `json:"-"`
}

// Path is the record's path.
func (o Offer) Path() string {
	return OffersRoot + "/" + url.PathEscape(o.Hostname) + "," + url.PathEscape(o.Provider) + "," + url.PathEscape(o.Pool)
}

// Same reports whether two records say the same.
func (o Offer) Same(other Offer) bool {
	return o.Path() == other.Path() && o.Left == other.Left && slices.Equal(o.Labels, other.Labels)
}

// DecodeOffer reads a record; false when it cannot be read.
func DecodeOffer(data []byte, stat recipe.Stat) (Offer, bool) {
	o := Offer{}
	err := json.Unmarshal(data, &o)
	o.Stat = stat
	return o, err == nil && o.Provider != ""
}

// SaveOffer writes an offer, and moves its Mtime to now. A record is made with its data in
// one step: a launcher that dies while it writes leaves none that says nothing.
func (st *Store) SaveOffer(ctx context.Context, o Offer) error {
	data, err := json.Marshal(o)
	if err == nil {
		err = st.put(ctx, o.Path(), data)
	}
	if err != nil {
		return fmt.Errorf("save the offer of pool %s of %s: %w", o.Pool, o.Provider, err)
	}
	return nil
}

// put writes a node, whether it is there or not; others may make and delete it meanwhile.
func (st *Store) put(ctx context.Context, full string, data []byte) error {
	for {
		_, err := st.session.Set(ctx, full, data, recipe.AnyVersion)
		if !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
		if err := st.session.EnsurePath(ctx, path.Dir(full)); err != nil {
			return err
		}
		_, err = st.session.Create(ctx, full, data, recipe.Persistent)
		if !errors.Is(err, recipe.ErrNodeExists) && !errors.Is(err, recipe.ErrNoNode) {
			return err
		}
	}
}

// ForgetOffer removes an offer that has not changed since it was read.
func (st *Store) ForgetOffer(ctx context.Context, o Offer) error {
	err := st.session.Delete(ctx, o.Path(), o.Stat.Version)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) && !errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("forget the offer of pool %s of %s: %w", o.Pool, o.Provider, err)
	}
	return nil
}

// Ahead is how far ZooKeeper's clock is ahead of this host's, which records and
// timers go by; negative when it is behind.
func (st *Store) Ahead(ctx context.Context) (time.Duration, error) {
	ahead, _, err := recipe.Ahead(ctx, st.session, ClockPath, st.now)
	if err != nil {
		return 0, fmt.Errorf("read ZooKeeper's clock: %w", err)
	}
	return ahead, nil
}
