package configs

import "slices"

// May is what is allowed to who asks for something from a page.
type May string

// What is allowed. Each has what those before it allow.
const (
	MayRead    May = "read"    // to see what only this host sees else
	MayOperate May = "operate" // to build, cancel, pause and hold
	MayDestroy May = "destroy" // to delete, and to decide what serves
)

// mays are in their order.
var mays = []May{MayRead, MayOperate, MayDestroy}

// Covers reports whether m allows what n is needed for. "" allows nothing, and is never needed.
func (m May) Covers(n May) bool { return n != "" && slices.Index(mays, m) >= slices.Index(mays, n) }
