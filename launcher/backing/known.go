package backing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/kit"
	"poolkeeper/launcher/step"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Folder follows what the tree has of the backing nodes of one provider.
type Folder struct {
	*recipe.Tree

	provider string
}

// NewFolder makes a Folder. It follows while Run runs.
func NewFolder(client *recipe.Client, provider string, log hclog.Logger) *Folder {
	return &Folder{provider: provider, Tree: recipe.NewTree(client, zkmodel.BackingFolder(provider), recipe.TreeOptions{Logger: log.Named("backing")})}
}

// version is that of the folder, which each record adds to; 0 while there is none.
//
// Errors: those of a folder that cannot be read at present.
func (f *Folder) version() (int32, error) {
	e, there := f.Get(zkmodel.BackingFolder(f.provider))
	if !there {
		return 0, nil
	}
	return e.Stat.Version, e.Err
}

// list is complete as of a version of the folder: what is added after that may be in it or
// not, and has another version. A Tree learns of the folder's version and of its children one
// after the other, so that the version beside a list may be newer than the list.
func (f *Folder) list(ctx context.Context) (records []*zkmodel.Backing, version int32, broken, err error) {
	if version, err = f.version(); err == nil {
		err = f.Barrier(ctx)
	}
	for err == nil {
		before := version
		records, broken, err = f.records()
		if err == nil {
			version, err = f.version()
		}
		if err == nil && version == before {
			return records, version, broken, nil
		}
		if err == nil {
			err = f.Barrier(ctx)
		}
	}
	return nil, 0, nil, err
}

// records are those of the tree. broken tells of those that nobody can decode: their nodes
// take no new ones, and the rest serves.
//
// Errors: those of a record that cannot be read at present.
func (f *Folder) records() (records []*zkmodel.Backing, broken, err error) {
	root := zkmodel.BackingFolder(f.provider)
	f.View(func(v recipe.View) {
		v.Each(root, func(c recipe.Child) {
			e := c.Entry()
			b, bad := zkmodel.DecodeBacking(f.provider, c.Name(), e.Data, e.Stat)
			switch {
			case e.Err != nil:
				err = errors.Join(err, e.Err)
			case bad != nil:
				broken = errors.Join(broken, bad)
			default:
				records = append(records, b)
			}
		})
	})
	return records, broken, err
}

// Counts are how many backing nodes there are, with those that are asked for, and how many
// of their slots are used.
func (f *Folder) Counts() (there, wanted, slots, used int) {
	records, _, err := f.records()
	if err != nil {
		return 0, 0, 0, 0
	}
	for _, b := range records {
		if b.Node == "" {
			wanted++
			continue
		}
		there++
		slots += len(b.Slots)
		for _, s := range b.Slots {
			if s.Node != "" {
				used++
			}
		}
	}
	return there, wanted, slots, used
}

// Nodes are the nodes of the tree; a zkmodel.Mirror.
type Nodes interface {
	Nodes() []*zkmodel.Node
	Requests() []*zkmodel.Request
	Barrier(ctx context.Context) error
	Unread(path string) error
}

// Known is what is known of the backing nodes of one provider, within a session.
type Known struct {
	Provider string
	Folder   *Folder
	Tree     Nodes
	Store    *zkmodel.Store
	// Leaving says of a provider why nodes are to leave it; "" when they may stay.
	Leaving func(provider string) string
	// Interrupted says why the cloud has taken a node's machine back; "" when it has not, as far as
	// is known here. nil knows of none.
	Interrupted func(n *zkmodel.Node) string
	Step        func(step.Step)
}

var _ providers.Backing = (*Known)(nil)

// seen is a look at all of them.
type seen struct {
	records  []*zkmodel.Backing
	version  int32                    // of their folder, as of which they are all
	broken   error                    // records that nobody can decode
	nodes    map[string]*zkmodel.Node // of the whole tree
	pending  map[string]bool          // all requests that are being served
	requests map[string]*zkmodel.Request
	surplus  []*zkmodel.Request // whose answer was lost when they were made, so that others were
}

// look reads all that was written before. Nodes are no older than the records that name them:
// one that was just taken over would else seem to be lost.
func (k *Known) look(ctx context.Context) (*seen, error) {
	s := &seen{nodes: map[string]*zkmodel.Node{}, requests: map[string]*zkmodel.Request{}, pending: map[string]bool{}}
	var err error
	s.records, s.version, s.broken, err = k.Folder.list(ctx)
	if err == nil {
		err = k.Tree.Barrier(ctx)
	}
	if err == nil {
		err = k.Tree.Unread(zkmodel.NodesRoot)
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	} else if err != nil {
		err = fmt.Errorf("%w: %w", providers.ErrTransient, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read the backing nodes of %s: %w", k.Provider, err)
	}
	for _, n := range k.Tree.Nodes() {
		s.nodes[n.ID] = n
	}
	for _, r := range k.Tree.Requests() {
		s.pending[r.ID] = r.Broken == nil && r.State == zkmodel.RequestPending
		id := wantedBy(r, k.Provider)
		switch first := s.requests[id]; {
		case id == "":
		case first == nil || r.ID < first.ID:
			if s.requests[id] = r; first != nil {
				s.surplus = append(s.surplus, first)
			}
		default:
			s.surplus = append(s.surplus, r)
		}
	}
	return s, nil
}

// List implements providers.Backing.
func (k *Known) List(ctx context.Context) (nodes []providers.BackingNode, listed any, err error) {
	s, err := k.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	list := make([]providers.BackingNode, 0, len(s.records))
	for _, b := range s.records {
		list = append(list, k.node(s, b))
	}
	return list, revision{folder: s.version}, nil
}

// node is a record as the provider sees it.
func (k *Known) node(s *seen, b *zkmodel.Backing) providers.BackingNode {
	n := providers.BackingNode{
		ID: b.ID, Revision: revision{record: b.Stat, slots: len(b.Slots)}, Label: b.Label, Wants: b.Wants, Node: b.Node, Failed: b.Failed,
		Launched: b.Launched.Time(), Used: b.Used.Time(), Leaving: k.Leaving(k.Provider),
	}
	for _, slot := range b.Slots {
		use := providers.SlotUse{ExternalID: slot.ExternalID, Node: slot.Node, Name: slot.Name, Metadata: slot.Metadata}
		use.For, use.Over = s.launchedFor(slot.Node)
		n.Slots = append(n.Slots, use)
	}
	if b.Node == "" {
		r := s.requests[b.ID]
		n.Unheard = r == nil || r.State == zkmodel.RequestRequested
		return n
	}
	record := s.nodes[b.Node]
	if why := lost(b, record); why != "" {
		n.Failed = why
		return n
	}
	if said, backs := record.Backs(); backs && said.Failed && n.Failed == "" { // noted by a launcher of Nodepool's
		n.Failed = "its record says that it has failed"
	}
	if n.Failed == "" && k.Interrupted != nil {
		n.Failed = k.Interrupted(record)
	}
	n.Like = like(record)
	if n.Leaving == "" {
		n.Leaving = k.Leaving(record.Provider)
	}
	k.addRecorded(s, &n)
	return n
}

// launchedFor is the request that a node is launched for, and whether that has ended in vain;
// "" for one that is not under way.
func (s *seen) launchedFor(node string) (request string, over bool) {
	n := s.nodes[node]
	if n == nil || n.Broken != nil || !s.pending[n.AllocatedTo] {
		return "", false
	}
	switch n.State {
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeReady:
		return n.AllocatedTo, false
	case zkmodel.NodeAborted, zkmodel.NodeFailed:
		if n.Locked { // else it is of a launch before: its launcher has it until the others end, too
			return n.AllocatedTo, true
		}
	case zkmodel.NodeTesting, zkmodel.NodeInUse, zkmodel.NodeUsed, zkmodel.NodeHold, zkmodel.NodeDeleting, zkmodel.NodeDeleted:
	}
	return "", false
}

// addRecorded adds who uses a slot by their record alone.
func (k *Known) addRecorded(s *seen, n *providers.BackingNode) {
	for id, user := range s.nodes {
		if user.Provider != k.Provider || !uses(user) {
			continue
		}
		on, is := user.OnSlot()
		if !is || on.Backing != n.Node || on.Slot < 0 || slices.ContainsFunc(n.Slots, func(u providers.SlotUse) bool { return u.Node == id }) {
			continue
		}
		for len(n.Slots) <= on.Slot { // it had more slots once
			n.Slots = append(n.Slots, providers.SlotUse{Node: "-", Recorded: true})
		}
		if n.Slots[on.Slot].Free() || n.Slots[on.Slot].Node == "-" {
			n.Slots[on.Slot] = providers.SlotUse{ExternalID: user.ExternalID.Text(), Node: id, Name: "np" + id, Metadata: on.Metadata, Recorded: true}
		}
	}
}

// uses reports whether a node that says so uses its slot: while it is made it is the record of
// the backing node that tells. One that goes has it until its record is gone: Nodepool's launcher
// does not start where two records say that they have one slot.
func uses(n *zkmodel.Node) bool {
	switch n.State {
	case zkmodel.NodeReady, zkmodel.NodeInUse, zkmodel.NodeUsed, zkmodel.NodeHold, zkmodel.NodeTesting, zkmodel.NodeFailed, zkmodel.NodeDeleting:
		return n.Broken == nil
	case zkmodel.NodeInit, zkmodel.NodeBuilding, zkmodel.NodeAborted, zkmodel.NodeDeleted:
	}
	return false
}

// lost says why the node of a record backs nothing any more; "" when it does.
func lost(b *zkmodel.Backing, n *zkmodel.Node) string {
	switch {
	case n == nil:
		return "its node " + b.Node + " is gone"
	case n.Broken != nil:
		return "" // nobody can tell
	case n.State != zkmodel.NodeInUse:
		return "its node " + b.Node + " is " + string(n.State)
	case n.BacksFor() != b.Provider:
		return "its node " + b.Node + " is another's"
	}
	return ""
}

// like is what nodes on a backing node have from its record.
func like(n *zkmodel.Node) providers.Instance {
	i := providers.Instance{
		Cloud: n.Cloud, Region: n.Region, AZ: n.AZ, HostID: n.HostID, InterfaceIP: n.InterfaceIP, PublicIPv4: n.PublicIPv4,
		PublicIPv6: n.PublicIPv6, PrivateIPv4: n.PrivateIPv4, Username: n.Username, PythonPath: n.PythonPath, ShellType: n.ShellType,
		Slot: &providers.OnSlot{ConnectionType: n.ConnectionType, Keys: n.HostKeys},
	}
	_, port := n.ConnectionPort.Int()
	i.SkipHostScan = !port || n.InterfaceIP == "" || n.InterfaceIP == fakeAddress // a namespace, a pod, and what tests have
	i.Slot.ConnectionPort, i.Slot.Attributes = verbatim(n.ConnectionPort), verbatim(n.Attributes)
	return i
}

// fakeAddress is one at which nothing listens; Nodepool's word.
const fakeAddress = "fake"

func verbatim(v zkmodel.Value) providers.Verbatim {
	if text, err := v.MarshalJSON(); err == nil && !v.IsNull() {
		return providers.NewVerbatim(text)
	}
	return providers.Verbatim{}
}

// revision is what whoever saves hands back: what was listed.
type revision struct {
	record recipe.Stat // of one record
	slots  int         // that it had itself, without those of nodes that only say so
	folder int32       // of the list: the folder's version
}

// Save implements providers.Backing.
func (k *Known) Save(ctx context.Context, changes ...providers.BackingNode) error {
	if len(changes) == 1 && changes[0].ID == "" {
		b, was, err := k.record(changes[0])
		if err != nil {
			return err
		}
		return changed(k.create(ctx, b, was.folder))
	}
	list := make([]*zkmodel.Backing, 0, len(changes))
	for _, n := range changes {
		b, was, err := k.record(n)
		if err != nil {
			return err
		}
		b.Stat, b.Slots = was.record, b.Slots[:min(len(b.Slots), was.slots)]
		list = append(list, b)
	}
	return changed(k.Store.SaveBackings(ctx, list))
}

// record is what is to be written, and what it was when it was listed.
//
// Errors: providers.ErrInvalid when it was not.
func (k *Known) record(n providers.BackingNode) (*zkmodel.Backing, revision, error) {
	b := &zkmodel.Backing{
		ID: n.ID, Provider: k.Provider, Label: n.Label, Wants: n.Wants, Node: n.Node, Failed: n.Failed,
		Launched: zkmodel.EpochOf(n.Launched), Used: zkmodel.EpochOf(n.Used),
	}
	for _, use := range n.Slots {
		slot := zkmodel.BackingSlot{}
		if !use.Recorded {
			slot = zkmodel.BackingSlot{ExternalID: use.ExternalID, Node: use.Node, Name: use.Name, Metadata: maps.Clone(use.Metadata)}
		}
		b.Slots = append(b.Slots, slot)
	}
	was, listed := n.Revision.(revision)
	if !listed {
		return nil, revision{}, fmt.Errorf("save a backing node of %s: %w: it was not listed", k.Provider, providers.ErrInvalid)
	}
	return b, was, nil
}

// create adds a record, if none was added since the folder had the version.
func (k *Known) create(ctx context.Context, b *zkmodel.Backing, version int32) error {
	b.ID = kit.RandomHex(8)
	if err := k.Store.CreateBacking(ctx, b, version); err != nil {
		return err
	}
	k.Step(step.BackingNoted)
	return nil
}

// outdated reports whether a write was refused because another had changed what it was to
// change: that is seen, and has the keeper look again.
func outdated(err error) bool {
	return errors.Is(err, recipe.ErrVersion) || errors.Is(err, zkmodel.ErrNotFound) || errors.Is(err, recipe.ErrNodeExists)
}

// changed makes of what another has changed an error that the provider knows. After a lost
// connection it has to list again, too: what it wrote may be there.
func changed(err error) error {
	if outdated(err) || errors.Is(err, recipe.ErrConnectionLost) {
		return fmt.Errorf("%w: %w", providers.ErrChanged, err)
	}
	return err
}

// Watch implements providers.Backing.
func (k *Known) Watch() (changed <-chan struct{}, stop func()) {
	s := k.Folder.Subscribe(func(string) string { return k.Provider })
	return s.C(), s.Close
}

// wantedBy is the record that a request is for, "" for a request that is not of our making.
func wantedBy(r *zkmodel.Request, provider string) string {
	if r.Broken != nil || r.Requestor != zkmodel.BackingOwner(provider) {
		return ""
	}
	return zkmodel.BackingOf(r)
}
