package zkmodel

import (
	"time"

	"poolkeeper/zkmodel/recipe"
)

// NoLater is when a record got its state, as its writer says, but no later than the
// record was last written by ZooKeeper's clock: a writer whose clock is years ahead
// would else be believed until then. That is it, too, where the record does not say: what
// has no time is as young as it can be, not as old as 1970.
func NoLater(state Epoch, written recipe.Stat) time.Time {
	told := state.Time()
	if !written.Mtime.IsZero() && written.Mtime.UnixMilli() != 0 && (state.Silent() || told.After(written.Mtime)) {
		return written.Mtime
	}
	return told
}
