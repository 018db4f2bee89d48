package builder

import (
	"errors"

	"poolkeeper/builder/control"
	"poolkeeper/builder/presence"
)

// What Ready and Run return.
var (
	// ErrWithdrawn says that nothing can be built on this host, whatever the image.
	ErrWithdrawn = control.ErrWithdrawn
	// ErrSameID says that another builder works under our builder id.
	ErrSameID = presence.ErrSameID
)

// errNoProvider says that a provider left the configuration meanwhile.
var errNoProvider = errors.New("not in the configuration")
