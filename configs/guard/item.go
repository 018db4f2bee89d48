package guard

import (
	"fmt"
	"math"
	"time"

	"poolkeeper/configs"
)

// The kinds of items: those of configs.Frozen, and limits.
const (
	KindImage         = "image"
	KindLabel         = "label"
	KindProvider      = "provider"
	KindProviderImage = "provider image"
	KindPool          = "pool"
	KindPoolLabel     = "pool label"
	KindLimit         = "limit"
	KindTenantLimit   = "tenant limit"
)

// Item is one thing that a configuration would change, and that is kept as it was
// until an operator accepts it: a limit stays, anything else is frozen.
type Item struct {
	Kind     string `json:"kind"`
	Provider string `json:"provider,omitempty"`
	Pool     string `json:"pool,omitempty"`
	// Name is the place of a limit in the file, the resource of a tenant's.
	Name   string `json:"name"`
	Tenant string `json:"tenant,omitempty"`
	Was    int    `json:"was,omitempty"` // of a limit: what it stays at
	Is     int    `json:"is,omitempty"`  // and what the file says; configs.Unlimited for no limit
	Why    string `json:"why,omitempty"`
	// Line is where the file changes the item, 0 if the file does not have its section. Since is when the daemon
	// began to guard it, in seconds since 1970.
	Line  int   `json:"line,omitempty"`
	Since int64 `json:"since,omitempty"`
}

// Key returns the key of the item in a configuration file.
func (i Item) Key() string {
	switch i.Kind {
	case KindImage:
		return configs.Item("diskimages", i.Name)
	case KindLabel:
		return configs.Item("labels", i.Name)
	case KindProvider:
		return configs.ProviderSection(i.Name)
	case KindProviderImage:
		return configs.ProviderSection(i.Provider) + "." + configs.Item("diskimages", i.Name)
	case KindPool:
		return configs.PoolSection(i.Provider, i.Name)
	case KindPoolLabel:
		return configs.PoolSection(i.Provider, i.Pool) + "." + configs.Item("labels", i.Name)
	case KindTenantLimit:
		return configs.TenantSection(i.Tenant) + "." + i.Name
	}
	return i.Name
}

// Place returns where and since when a file changes the item: FILE:LINE, since TIME.
func (i Item) Place(file string) string {
	if i.Line > 0 {
		file = fmt.Sprintf("%s:%d", file, i.Line)
	}
	return file + ", since " + time.Unix(i.Since, 0).UTC().Format(time.RFC3339)
}

// Same tells whether two items would change the same in the same way.
func (i Item) Same(other Item) bool { return i.thing() == other.thing() && i.Is == other.Is }

// Covers tells whether to accept i is to accept other: the same thing, and no higher
// a limit.
func (i Item) Covers(other Item) bool { return i.thing() == other.thing() && i.Is >= other.Is }

// Limits tells whether the item is a limit, and nothing that is gone.
func (i Item) Limits() bool { return i.Kind == KindLimit || i.Kind == KindTenantLimit }

func (i Item) thing() Item {
	i.Was, i.Is, i.Why, i.Line, i.Since = 0, 0, "", 0, 0
	return i
}

// String names the item, what is done about it, and why.
func (i Item) String() string {
	is := "has no limit"
	if i.Is < math.MaxInt32 {
		is = fmt.Sprintf("says %d", i.Is)
	}
	switch i.Kind {
	case KindLimit:
		return fmt.Sprintf("%s stays %d, where the file %s: %s", i.Name, i.Was, is, i.Why)
	case KindTenantLimit:
		return fmt.Sprintf("%s of tenant %s stays %d, where the file %s: %s", i.Name, i.Tenant, i.Was, is, i.Why)
	}
	frozen := configs.Frozen{Kind: i.Kind, Provider: i.Provider, Pool: i.Pool, Name: i.Name, Why: i.Why}
	return "removed, and frozen: " + frozen.String()
}
