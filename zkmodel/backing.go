package zkmodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"poolkeeper/zkmodel/recipe"
)

// BackingRoot holds, by provider, what is known of backing nodes: those of which other nodes
// are slots (docs/wire.md §8).
const BackingRoot = OwnRoot + "/backing"

// BackingFolder is what is known of one provider's.
func BackingFolder(provider string) string { return BackingRoot + "/" + provider }

// backingMark is the key of requestor_data that tells which of our backing nodes a request is
// for. One of Nodepool's launcher has the same requestor, and no such key.
const backingMark = "poolkeeper-backing"

// backingOwner begins the names of those who have backing nodes; Nodepool's word.
const backingOwner = "NodePool:metastatic:"

// BackingOwner is who asks for the backing nodes of a provider, and who has their locks.
func BackingOwner(provider string) string { return backingOwner + provider }

// Backing is a node that has slots for nodes of a provider, or stands for one that is asked
// for. It is made before its request, and goes with its node.
type Backing struct {
	ID       string      `json:"-"`
	Provider string      `json:"-"`
	Stat     recipe.Stat `json:"-"`

	Label    string        `json:"label"`            // of the provider
	Wants    string        `json:"backing_label"`    // that is asked for
	Node     string        `json:"node,omitempty"`   // once there is one
	Launched Epoch         `json:"launched"`         // when it was asked for
	Used     Epoch         `json:"used"`             // when a slot became free last
	Failed   string        `json:"failed,omitempty"` // why it takes no new nodes
	Slots    []BackingSlot `json:"slots"`            // by number
}

// BackingSlot is who uses a slot; nobody where Node is "".
type BackingSlot struct {
	ExternalID string            `json:"external_id,omitempty"`
	Node       string            `json:"node,omitempty"`
	Name       string            `json:"name,omitempty"`
	Metadata   map[string]string `json:"metadata,omitempty"`
}

// Path is the record's path.
func (b *Backing) Path() string { return BackingFolder(b.Provider) + "/" + b.ID }

// Idle reports whether nobody uses a slot.
func (b *Backing) Idle() bool {
	return !slices.ContainsFunc(b.Slots, func(s BackingSlot) bool { return s.Node != "" })
}

// DecodeBacking reads a record.
func DecodeBacking(provider, id string, data []byte, stat recipe.Stat) (*Backing, error) {
	b := &Backing{}
	if err := json.Unmarshal(data, b); err != nil || b.Label == "" {
		return nil, fmt.Errorf("read %s/%s: %w", BackingFolder(provider), id, errors.Join(ErrUndecodable, err))
	}
	b.Provider, b.ID, b.Stat = provider, id, stat
	return b, nil
}

// Backing reads a record.
//
// Errors: ErrNotFound, ErrUndecodable.
func (st *Store) Backing(ctx context.Context, provider, id string) (*Backing, error) {
	data, stat, err := st.session.Get(ctx, (&Backing{Provider: provider, ID: id}).Path())
	if err != nil {
		return nil, fmt.Errorf("read backing node %s of %s: %w", id, provider, notFound(err))
	}
	return DecodeBacking(provider, id, data, stat)
}

// BackingData is what the record of a backing node says in user_data: JSON in a string, as
// Nodepool's launcher writes and reads it.
type BackingData struct {
	Owner    string  `json:"owner"`
	Label    string  `json:"label"`
	Slots    int     `json:"slots"`
	Failed   bool    `json:"failed"`
	Launched float64 `json:"launched"`
}

// Data is what the record of its node says.
func (b *Backing) Data() BackingData {
	return BackingData{BackingOwner(b.Provider), b.Label, len(b.Slots), b.Failed != "", float64(b.Launched)}
}

// Value is the user_data of a node.
func (d BackingData) Value() Value {
	text, err := json.Marshal(d)
	if err != nil { // of what can be marshalled only
		return Value{}
	}
	return TextValue(string(text))
}

// Backs reads what the record of a backing node says; false for any other node.
func (n *Node) Backs() (BackingData, bool) {
	var d BackingData
	text := n.UserData.Text()
	if n.Broken != nil || !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &d) != nil {
		return BackingData{}, false
	}
	return d, strings.HasPrefix(d.Owner, backingOwner)
}

// BacksFor is the provider whose nodes are slots on a node that says so; "" for any other.
func (n *Node) BacksFor() string {
	d, backs := n.Backs()
	if !backs {
		return ""
	}
	return strings.TrimPrefix(d.Owner, backingOwner)
}

// SlotData is the driver_data of a node that is a slot.
type SlotData struct {
	Metadata map[string]string `json:"metadata"`
	Backing  string            `json:"backing_node"`
	Slot     int               `json:"slot"`
	Node     string            `json:"node"`
}

// Value is the driver_data of a node.
func (d SlotData) Value() Value {
	text, err := json.Marshal(d)
	if err != nil { // of what can be marshalled only
		return Value{}
	}
	return JSONValue(text)
}

// MostSlots is how many slots a backing node may have, whoever says so: what people or another
// launcher wrote must not have us make a list of any length.
const MostSlots = 1000

// OnSlot reads on which backing node a node is; false for any other node.
func (n *Node) OnSlot() (SlotData, bool) {
	var d SlotData
	text, err := n.DriverData.MarshalJSON()
	if err != nil || n.DriverData.IsNull() || json.Unmarshal(text, &d) != nil {
		return SlotData{}, false
	}
	return d, d.Backing != "" && d.Slot < MostSlots
}

// BackingMarkOf is the requestor_data of a request for the node of a record.
func BackingMarkOf(id string) Value { return ObjectValue(map[string]any{backingMark: id}) }

// BackingOf is the record that a request is for; "" for any other.
func BackingOf(r *Request) string {
	var mark map[string]string
	text, err := r.RequestorData.MarshalJSON()
	if err != nil || r.RequestorData.IsNull() || json.Unmarshal(text, &mark) != nil {
		return ""
	}
	return mark[backingMark]
}

// BackingRequestor is the provider for which we have made a request for a backing node; "" for
// any other request.
func BackingRequestor(r *Request) string {
	provider, of := strings.CutPrefix(r.Requestor, backingOwner)
	if r.Broken != nil || !of || BackingOf(r) == "" {
		return ""
	}
	return provider
}

// CreateBacking makes a record, whose ID is given, if none was made for the provider since
// version of its folder.
//
// Errors: recipe.ErrVersion when one was.
func (st *Store) CreateBacking(ctx context.Context, b *Backing, version int32) error {
	data, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("make backing node: %w", err)
	}
	if err := st.session.EnsurePath(ctx, BackingFolder(b.Provider)); err != nil {
		return fmt.Errorf("make backing node of %s: %w", b.Provider, err)
	}
	_, err = st.session.Multi(ctx,
		recipe.OpSet(BackingFolder(b.Provider), nil, version), recipe.OpCreate(b.Path(), data, recipe.Persistent))
	if err != nil {
		return fmt.Errorf("make backing node of %s: %w", b.Provider, err)
	}
	return nil
}

// SaveBackings writes changed records, all or none.
//
// Errors: those of SaveBacking.
func (st *Store) SaveBackings(ctx context.Context, list []*Backing) error {
	if len(list) == 1 {
		return st.SaveBacking(ctx, list[0])
	}
	ops := make([]recipe.Op, 0, len(list))
	for _, b := range list {
		data, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("save %s: %w", b.Path(), err)
		}
		ops = append(ops, recipe.OpSet(b.Path(), data, b.Stat.Version))
	}
	if err := st.apply(ctx, ops, nil); err != nil {
		return fmt.Errorf("save %d backing nodes: %w", len(list), notFound(err))
	}
	return nil
}

// SaveBacking writes a changed record.
//
// Errors: recipe.ErrVersion, ErrNotFound.
func (st *Store) SaveBacking(ctx context.Context, b *Backing) error {
	data, err := json.Marshal(b)
	if err == nil {
		_, err = st.session.Set(ctx, b.Path(), data, b.Stat.Version)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", b.Path(), notFound(err))
	}
	return nil
}

// DropBacking removes a record, and with it the contender that has the lock of its node for the
// provider, where it is named.
func (st *Store) DropBacking(ctx context.Context, b *Backing, contender string) error {
	ops := []recipe.Op{recipe.OpDelete(b.Path(), b.Stat.Version)}
	if contender != "" {
		ops = append(ops, recipe.OpDelete(path.Join(LockPath(NodePath(b.Node)), contender), recipe.AnyVersion))
	}
	if err := st.apply(ctx, ops, nil); err != nil {
		return fmt.Errorf("forget %s: %w", b.Path(), notFound(err))
	}
	return nil
}

// TakeBacking takes over the node that a request was given, in one transaction: the node is
// in use and says by whom, its lock is had by a contender that outlives us, the request is
// gone, and the record knows its node. The node is as it was read, ready and not locked.
//
// Errors: ErrBusy while the node is locked; recipe.ErrVersion when a record has changed.
func (st *Store) TakeBacking(ctx context.Context, b *Backing, n *Node, request string) error {
	names, err := st.session.Children(ctx, LockPath(n.Path()))
	free, err2 := recipe.LockedBy(names, err)
	switch {
	case err2 != nil:
		return fmt.Errorf("take backing node %s: %w", n.ID, err2)
	case free:
		return fmt.Errorf("take backing node %s: %w", n.ID, ErrBusy)
	}
	b.Node = n.ID
	n.UserData = b.Data().Value()
	if err := Move(n, NodeInUse, ByRequestor, EpochOf(st.now())); err != nil {
		return err
	}
	save, err2 := SaveOp(n)
	if err2 != nil {
		return err2
	}
	data, err2 := json.Marshal(b)
	if err2 != nil {
		return fmt.Errorf("take backing node %s: %w", n.ID, err2)
	}
	ops := []recipe.Op{save, recipe.OpSet(b.Path(), data, b.Stat.Version)}
	if errors.Is(err, recipe.ErrNoNode) {
		ops = append(ops, recipe.OpCreate(LockPath(n.Path()), nil, recipe.Persistent))
	}
	ops = append(ops, recipe.OpCreate(recipe.LastingContender(LockPath(n.Path())), []byte(BackingOwner(b.Provider)), recipe.Sequential))
	if request != "" {
		ops = append(ops, recipe.OpDelete(RequestPath(request), recipe.AnyVersion))
	}
	if err := st.telling(ctx, func(also []recipe.Op) error { return st.apply(ctx, ops, also) }, n); err != nil {
		return fmt.Errorf("take backing node %s: %w", n.ID, notFound(err))
	}
	return nil
}

// apply applies ops and also as one transaction.
func (st *Store) apply(ctx context.Context, ops, also []recipe.Op) error {
	_, err := st.session.Multi(ctx, slices.Concat(ops, also)...)
	return err
}

// BackingLock is the contender with which a provider has a node; "" when it does not have it.
func (st *Store) BackingLock(ctx context.Context, provider, node string) (string, error) {
	line, err := recipe.Contenders(ctx, st.session, LockPath(NodePath(node)))
	if err != nil {
		return "", fmt.Errorf("read who has node %s: %w", node, err)
	}
	if len(line) == 0 || line[0].Identifier != BackingOwner(provider) || line[0].Session != 0 {
		return "", nil
	}
	return line[0].Name, nil
}

// GiveBacking gives a backing node back, in one transaction: it is used and free, and its
// record is gone. The node is as it was read.
//
// Errors: ErrNotFound when the lock is had no more; recipe.ErrVersion when a record has
// changed.
func (st *Store) GiveBacking(ctx context.Context, b *Backing, n *Node, contender string) error {
	return st.giveBacking(ctx, n, contender, recipe.OpDelete(b.Path(), b.Stat.Version))
}

func (st *Store) giveBacking(ctx context.Context, n *Node, contender string, with ...recipe.Op) error {
	if err := Move(n, NodeUsed, ByRequestor, EpochOf(st.now())); err != nil {
		return err
	}
	save, err := SaveOp(n)
	if err != nil {
		return err
	}
	ops := append([]recipe.Op{save, recipe.OpDelete(path.Join(LockPath(n.Path()), contender), recipe.AnyVersion)}, with...)
	if err := st.telling(ctx, func(also []recipe.Op) error { return st.apply(ctx, ops, also) }, n); err != nil {
		return fmt.Errorf("give backing node %s back: %w", n.ID, notFound(err))
	}
	return nil
}

// UnlockBacking ends a lock of the provider's on a node, which is as it was read.
//
// Errors: recipe.ErrVersion when the node has changed.
func (st *Store) UnlockBacking(ctx context.Context, n *Node, contender string) error {
	ops := []recipe.Op{
		recipe.OpCheck(n.Path(), n.Stat.Version), recipe.OpDelete(path.Join(LockPath(n.Path()), contender), recipe.AnyVersion),
	}
	if err := st.apply(ctx, ops, nil); err != nil {
		return fmt.Errorf("unlock node %s: %w", n.ID, notFound(err))
	}
	return nil
}

// MarkBacking has the record of a backing node say what is known of it, while we have it.
func (st *Store) MarkBacking(ctx context.Context, b *Backing, n *Node, contender string) error {
	n.UserData = b.Data().Value()
	save, err := SaveOp(n)
	if err != nil {
		return err
	}
	ops := []recipe.Op{recipe.OpCheck(path.Join(LockPath(n.Path()), contender), recipe.AnyVersion), save}
	if err := st.apply(ctx, ops, nil); err != nil {
		return fmt.Errorf("mark backing node %s: %w", n.ID, notFound(err))
	}
	return nil
}

// giveBack gives back what is kept for slots of the provider, and forgets what is known of it.
func (e *erasure) giveBack(ctx context.Context, nodes []*Node) error {
	for _, n := range nodes {
		contender, err := e.BackingLock(ctx, e.provider, n.ID)
		if err != nil {
			return err
		}
		now, err := e.Node(ctx, n.ID)
		switch {
		case errors.Is(err, ErrNotFound) || contender == "":
			continue
		case err != nil:
			return err
		case now.State != NodeInUse || now.BacksFor() != e.provider:
			continue
		}
		if err := e.giveBacking(ctx, now, contender); err != nil {
			return err
		}
	}
	err := e.session.DeleteTree(ctx, BackingFolder(e.provider))
	if errors.Is(err, recipe.ErrNoNode) {
		return nil
	}
	return err
}
