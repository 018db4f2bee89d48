package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/zkmodel/recipe"
)

// Member is what a daemon tells of the version that it runs.
type Member struct {
	Kind string `json:"kind"` // builder or launcher
	Host string `json:"host"`
	// Number and ID are those of the version that runs; 0 while there is none.
	Number uint64 `json:"number"`
	ID     string `json:"id"`
	// Since is when it began to run it, in seconds since 1970.
	Since int64 `json:"since"`
	// Refused is the version that it does not take, and Reason why; 0 and "" when it takes
	// what there is. A version that cannot be read has no number.
	Refused uint64 `json:"refused,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Name is that of its node, and Err why that cannot be read.
	Name string `json:"-"`
	Err  error  `json:"-"`
}

// Presence tells others what a daemon runs.
type Presence struct{ registration *recipe.Registration }

// NewPresence makes a Presence; nothing is written before Run.
func NewPresence(c *recipe.Client, m Member) *Presence {
	data, _ := json.Marshal(m) // it has nothing that JSON cannot have
	return &Presence{recipe.NewRegistration(c, MembersPath, m.Kind+"-"+m.Host+"-", data)}
}

// Set changes what is told.
func (p *Presence) Set(m Member) {
	data, _ := json.Marshal(m) // as above
	p.registration.Set(data)
}

// Run tells it until ctx ends.
func (p *Presence) Run(ctx context.Context) error { return p.registration.Run(ctx) }

// Members lists the daemons that follow the fleet's configuration, by host and kind. What
// they tell anybody may write: it is for people.
func (st *Store) Members(ctx context.Context) ([]Member, error) {
	nodes, err := recipe.Members(ctx, st.session, MembersPath)
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	list := make([]Member, 0, len(nodes))
	for _, n := range nodes {
		m := Member{Err: n.Err}
		if m.Err == nil {
			if err := json.Unmarshal(n.Data, &m); err != nil {
				m = Member{Err: errors.New("the record cannot be decoded")}
			}
		}
		m.Name = n.Name
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Runs reports whether the daemon runs the version.
func (m Member) Runs(v *Version) bool { return m.Err == nil && m.Number == v.Number && m.ID == v.ID() }

// Past reports whether the daemon runs the version, or has run it before a later one.
func (m Member) Past(v *Version) bool { return m.Runs(v) || m.Err == nil && m.Number > v.Number }
