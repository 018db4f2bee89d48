package wave

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize"

	"poolkeeper/zkmodel/recipe"
)

// HostsPath is the parent of what builders tell of themselves while there are waves that
// are not over, each in an ephemeral node.
const HostsPath = Root + "/builders"

// Host is what a builder tells of itself to those who drive waves.
type Host struct {
	Name    string   `json:"host"`    // full name, as in build records
	Images  []string `json:"images"`  // that it builds, sorted
	Workers int      `json:"workers"` // builds at a time
	Free    int64    `json:"free"`    // bytes of images-dir; negative when nobody knows
	Reserve int64    `json:"reserve"` // bytes of those that builds must leave: build-disk-reserve
	Factor  float64  `json:"factor"`  // what a build needs on disk, as a multiple of its last result
}

// Encode is the record as it goes into the znode.
func (h Host) Encode() []byte {
	data, _ := json.Marshal(h) // strings and numbers always encode
	return data
}

func (h Host) builds(image string) bool {
	_, there := slices.BinarySearch(h.Images, image)
	return there
}

// Hosts lists what builders tell of themselves. One that cannot be read, or decoded, is left
// out: nobody knows about that builder then.
func (st *Store) Hosts(ctx context.Context) ([]Host, error) {
	members, err := recipe.Members(ctx, st.session, HostsPath)
	if err != nil {
		return nil, fmt.Errorf("list builders that work at waves: %w", err)
	}
	var list []Host
	for _, m := range members {
		var h Host
		if json.Unmarshal(m.Data, &h) == nil && h.Name != "" {
			list = append(list, h)
		}
	}
	return list, nil
}

// Ledger is the space of builders, less what is asked for already.
type Ledger struct {
	hosts []Host
	free  []int64
}

// NewLedger opens one.
func NewLedger(hosts []Host) *Ledger {
	l := &Ledger{hosts: hosts, free: make([]int64, len(hosts))}
	for i, h := range hosts {
		l.free[i] = h.Free - h.Reserve
	}
	return l
}

// Take notes that a build of an image is asked for, which will take so many bytes when it
// is done: it is put down to the builder that has the most space of those that build it.
func (l *Ledger) Take(image string, bytes int64) {
	if at := l.roomiest(image); at >= 0 {
		l.free[at] -= bytes
	}
}

// Full says why no builder has the space for an image whose last build took so many bytes;
// "" when one has, or does not tell.
func (l *Ledger) Full(image string, bytes int64) string {
	most := l.roomiest(image)
	if most < 0 {
		return ""
	}
	for i, h := range l.hosts {
		if h.builds(image) && (h.Free < 0 || l.free[i] >= int64(h.Factor*float64(bytes))) {
			return ""
		}
	}
	h := l.hosts[most]
	return fmt.Sprintf("the disk is full on all builders: %s has the most, %s, of which %s are spoken for; about %s are needed", h.Name,
		humanize.IBytes(uint64(h.Free)), humanize.IBytes(uint64(h.Free-l.free[most])), humanize.IBytes(uint64(h.Factor*float64(bytes))))
}

// roomiest is the builder of an image with the most space; -1 when there is none.
func (l *Ledger) roomiest(image string) int {
	at := -1
	for i, h := range l.hosts {
		if h.builds(image) && (at < 0 || l.free[i] > l.free[at]) {
			at = i
		}
	}
	return at
}
