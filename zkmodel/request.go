package zkmodel

import (
	"cmp"
	"slices"
	"strings"

	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// Request asks for nodes (docs/wire.md §3.4).
type Request struct {
	ID     string
	Stat   recipe.Stat
	Broken error // as in Build

	State            RequestState `wire:"state"`
	StateTime        Epoch        `wire:"state_time"`
	DeclinedBy       Strings      `wire:"declined_by"`
	NodeTypes        Strings      `wire:"node_types"`
	Nodes            Strings      `wire:"nodes"`
	Reuse            bool         `wire:"reuse"`
	Requestor        string       `wire:"requestor"`
	RequestorData    Value        `wire:"requestor_data"`
	Provider         string       `wire:"provider"`
	RelativePriority int          `wire:"relative_priority"`
	EventID          string       `wire:"event_id"`
	CreatedTime      Epoch        `wire:"created_time"`
	TenantName       string       `wire:"tenant_name"`

	// Poolkeeper's own: why it was declined or failed, and why each pool in DeclinedBy declined it.
	Reason   string            `wire:"reason,omitempty"`
	Declines map[string]string `wire:"declines,omitempty"`

	by   Actor // who moved it since it was read or written
	rest wire.Extra
}

// MinReadyRequestor is the requestor of what launchers ask for, for their stock; nobody
// waits for that.
const MinReadyRequestor = "NodePool:min-ready"

// Path is the record's path.
func (r *Request) Path() string { return RequestPath(r.ID) }

// Priority is the part of the id before the dash: 100 is high, 300 is low.
func (r *Request) Priority() string {
	priority, _, _ := strings.Cut(r.ID, "-")
	return priority
}

// sequence is the part of the id behind the dash.
func (r *Request) sequence() string {
	_, seq, _ := strings.Cut(r.ID, "-")
	return seq
}

// CompareRequests orders requests as they are served: by priority, relative
// priority, then age.
func CompareRequests(a, b *Request) int {
	return cmp.Or(
		cmp.Compare(a.Priority(), b.Priority()),
		cmp.Compare(a.RelativePriority, b.RelativePriority),
		cmp.Compare(a.sequence(), b.sequence()),
	)
}

// DeclinedByPool reports whether the pool with this launcher id has declined.
func (r *Request) DeclinedByPool(id string) bool { return slices.Contains(r.DeclinedBy, id) }

// DecodeRequest reads a node request; what cannot be read is Broken.
func DecodeRequest(id string, data []byte, stat recipe.Stat) *Request {
	r := &Request{Reuse: true}
	r.rest, r.Broken = wire.Decode(data, r)
	r.ID, r.Stat = id, stat
	return r
}

// Encode is the record as it goes into the znode.
func (r *Request) Encode() ([]byte, error) { return wire.Encode(r, r.rest) }
