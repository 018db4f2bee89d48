package singleton

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"poolkeeper/configs"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// staticSite is a provider of machines that exist already, and the tree.
type staticSite struct {
	tree
	slots    []providers.Slot
	slotsErr error
	saveErr  error
	log      *book

	mu   sync.Mutex
	down map[string]bool // machines that do not answer
	did  []string
}

func (s *staticSite) Slots() ([]providers.Slot, error) { return s.slots, s.slotsErr }

func (s *staticSite) Alive(_ context.Context, n configs.StaticNode) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did = append(s.did, "contact "+n.Name)
	if s.down[n.Name] {
		return nil, errDown
	}
	return []string{"key of " + n.Name}, nil
}

func (s *staticSite) Address(context.Context, string) (v4, v6 string) { return "192.0.2.1", "" }

func (s *staticSite) CreateReady(_ context.Context, n *zkmodel.Node) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saveErr != nil {
		return s.saveErr
	}
	n.ID, n.State = n.Hostname, zkmodel.NodeReady
	s.nodes = append(s.nodes, n)
	s.did = append(s.did, "register "+n.Hostname)
	return nil
}

func (s *staticSite) Retire(_ context.Context, id, _ string) error {
	s.did = append(s.did, "retire "+id)
	return nil
}

func (s *staticSite) LaunchOf(_ context.Context, n *zkmodel.Node) (string, error) {
	if n.ID == "launched" {
		return "launch", nil
	}
	return "", nil
}

func (s *staticSite) static() *Static {
	book, log := newBook()
	s.log = book
	provider := configs.Provider{Name: "iron", Driver: configs.DriverStatic, Pools: []configs.Pool{{Name: "main", NodeAttributes: map[string]any{"zone": "a"}}}}
	return NewStatic(&configs.Config{}, provider, s, s, s, s, log)
}

// done is what was done since the last call, in order of names.
func (s *staticSite) done() string {
	did := s.did
	s.did = nil
	slices.Sort(did)
	return strings.Join(did, ", ")
}

func slot(name string) providers.Slot {
	return providers.Slot{Pool: "main", Node: configs.StaticNode{Name: name, Labels: []string{"iron"}, Username: "root", ConnectionPort: 22, ConnectionType: "ssh"}}
}

// Catches a slot that is registered twice, or never; and one whose machine is down that
// holds up others, is contacted in each pass, or never again.
func TestStaticRegistersWhatLives(t *testing.T) {
	s := &staticSite{slots: []providers.Slot{slot("a"), slot("b")}, down: map[string]bool{"b": true}}
	st := s.static()
	if err := st.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "static node b") {
		t.Errorf("%v, want that machine b is down", err)
	}
	if got := s.done(); got != "contact a, contact b, register a" {
		t.Errorf("first pass: %q", got)
	}
	s.down = nil
	wantNone(t, st.pass(t.Context()))
	if got := s.done(); got != "" {
		t.Errorf("second pass: %q, before the tick", got)
	}
	clear(st.dead)
	wantNone(t, st.pass(t.Context()))
	if got := s.done(); got != "contact b, register b" {
		t.Errorf("after the tick: %q", got)
	}
	wantNone(t, st.pass(t.Context()))
	if got := s.done(); got != "" {
		t.Errorf("all registered: %q", got)
	}
}

// Catches a free node that outlives its slot's configuration, and one in use that is
// taken from its job; also when no slot is configured any more.
func TestStaticRetiresWhatHasChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		slots  []providers.Slot
		change func(n *zkmodel.Node)
		want   string
	}{
		"as configured":        {[]providers.Slot{slot("a")}, func(*zkmodel.Node) {}, ""},
		"other labels":         {[]providers.Slot{slot("a")}, func(n *zkmodel.Node) { n.Type = []string{"steel"} }, "retire a"},
		"other attributes":     {[]providers.Slot{slot("a")}, func(n *zkmodel.Node) { n.Attributes = zkmodel.Value{} }, "retire a"},
		"no slot is left":      {nil, func(*zkmodel.Node) {}, "retire a"},
		"in use":               {nil, func(n *zkmodel.Node) { n.State = zkmodel.NodeInUse }, ""},
		"allocated":            {nil, func(n *zkmodel.Node) { n.AllocatedTo = "r" }, ""},
		"locked":               {nil, func(n *zkmodel.Node) { n.Locked = true }, ""},
		"another provider's":   {nil, func(n *zkmodel.Node) { n.Provider = "steel" }, ""},
		"attributes respelled": {[]providers.Slot{slot("a")}, func(n *zkmodel.Node) { n.Attributes = zkmodel.JSONValue([]byte(`{ "zone":"a" }`)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := &staticSite{slots: []providers.Slot{slot("a")}}
			st := s.static()
			wantNone(t, st.pass(t.Context()))
			s.done()
			tc.change(s.nodes[0])
			s.slots = tc.slots
			wantNone(t, st.pass(t.Context()))
			if got := s.done(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// Catches a slot that is registered although it may be registered already, in a record
// that cannot be read, or in a list that cannot be.
func TestStaticRegistersNothingOnWhatItCannotRead(t *testing.T) {
	for name, tc := range map[string]tree{
		"a node cannot be read": {nodes: []*zkmodel.Node{{ID: "9", Broken: errDown}}},
		"nor the list":          {unread: errDown},
	} {
		t.Run(name, func(t *testing.T) {
			s := &staticSite{tree: tc, slots: []providers.Slot{slot("a")}}
			if err := s.static().pass(t.Context()); err == nil || s.done() != "" {
				t.Errorf("%v, did %q", err, s.did)
			}
		})
	}
}

// Catches the broken record of a machine in a cloud that keeps all slots from being
// registered; and one that nobody can date, which a launch of another time hides.
func TestStaticRegistersBesideABrokenRecordThatIsNoSlot(t *testing.T) {
	launched := &zkmodel.Node{ID: "launched", Broken: errDown, Stat: recipe.Stat{DataLength: 10}}
	s := &staticSite{tree: tree{nodes: []*zkmodel.Node{launched}}, slots: []providers.Slot{slot("a")}}
	if err := s.static().pass(t.Context()); err == nil || s.done() != "" {
		t.Errorf("undated: %v, did %q", err, s.did)
	}
	launched.Stat.Czxid = 1
	wantNone(t, s.static().pass(t.Context()))
	if got := s.done(); got != "contact a, register a" {
		t.Errorf("did %q", got)
	}
}

// Catches a log that says a node is ready whose record could not be written.
func TestStaticNodeIsReadyOnceItIsRecorded(t *testing.T) {
	s := &staticSite{slots: []providers.Slot{slot("a")}, saveErr: errDown}
	if err := s.static().pass(t.Context()); err == nil {
		t.Error("no error")
	}
	if got := s.log.String(); strings.Contains(got, "ready") {
		t.Errorf("the log says %q", got)
	}
	s.saveErr = nil
	wantNone(t, s.static().pass(t.Context()))
	if got := s.log.String(); !strings.Contains(got, "Static node is ready: node=a") {
		t.Errorf("the log says %q", got)
	}
}

// Catches an error of a provider that is taken for one without slots, whose nodes go.
func TestStaticHeedsTheProvider(t *testing.T) {
	for _, tc := range []struct {
		err  error
		fine bool
	}{{errDown, false}, {providers.ErrNotSupported, true}} {
		s := &staticSite{slotsErr: tc.err}
		s.nodes = []*zkmodel.Node{{ID: "a", Provider: "iron", State: zkmodel.NodeReady}}
		if err := s.static().pass(t.Context()); (err == nil) != tc.fine || s.done() != "" {
			t.Errorf("%v, did %q", err, s.did)
		}
	}
}
