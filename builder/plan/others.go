package plan

import (
	"strings"
	"time"
)

// IsAlive looks for a builder among those registered, which may use the short
// names of their hosts.
func (o Others) IsAlive(builder string) bool {
	short, _, _ := strings.Cut(builder, ".")
	return o.Alive[builder] || o.Alive[short]
}

// lastSeen is when a builder was registered last, as far as we can know.
func (o Others) lastSeen(builder string) time.Time {
	short, _, _ := strings.Cut(builder, ".")
	for _, name := range []string{builder, short} {
		if seen, ok := o.Seen[name]; ok {
			return seen
		}
	}
	return o.Since
}
