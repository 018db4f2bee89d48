package site

import (
	"fmt"
	"path"
	"sync"
	"time"

	"poolkeeper/test/sim/stage"
	"poolkeeper/test/sim/zookeeper"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// judge sees every transaction before any client does, and every call that leaves a process for a
// cloud. It has no opinion of how things are done; it knows what must never be.
type judge struct {
	*stage.Timeline
	world *world

	mu         sync.Mutex
	tree       *tree
	alive      map[string]*process  // by client
	offline    bool                 // what is written now never was: the servers are about to be restored
	seen       int                  // transactions
	excused    map[string]time.Time // clients that lost locks before their time, and until when they may not know
	broken     map[string]time.Time // nodes whose record cannot be read, since when
	empty      map[string]bool      // nodes whose record was made with nothing in it
	spoiltAt   map[string]time.Time // nodes whose record was spoilt last, and when; an empty one is not in broken
	stock      map[string]bool      // requests that launchers made
	asked      map[string]int       // in which transaction requests were made
	unseen     map[string]time.Time // nodes as others than launchers wrote them, and until when those need not count them
	room       map[string]int       // the most that a cloud has said that it has
	launched   map[string]string    // machines, by their ids, and the launch that each was made in
	twice      map[string]int       // machines that a cloud made as it doubled them, by their launch
	lost       map[string]bool      // machines that nobody has deleted, by their ids
	there      map[string]bool      // machines in clouds, by their ids
	writes     map[string]int       // transactions since the last rest, by what they changed
	restless   stage.Restless
	alone      map[string]time.Time // requests under way that no launcher has, and since when
	maimed     map[string]bool      // nodes of which a person has changed whose machine they have, by path
	unlabelled map[string]bool      // nodes and requests of which a person has taken the labels out, by path
	edited     map[string]time.Time // records that a person has changed, by their paths, and when
	noted      map[string]bool      // records with a key that only a person knows
}

func newJudge(w *world) *judge {
	return &judge{
		Timeline: w.seed.Timeline, world: w, tree: newTree(), alive: map[string]*process{}, excused: map[string]time.Time{}, broken: map[string]time.Time{},
		edited: map[string]time.Time{}, maimed: map[string]bool{}, unlabelled: map[string]bool{}, noted: map[string]bool{},
		unseen: map[string]time.Time{}, spoiltAt: map[string]time.Time{}, empty: map[string]bool{}, twice: map[string]int{}, stock: map[string]bool{}, writes: map[string]int{}, room: map[string]int{}, lost: map[string]bool{}, there: map[string]bool{}, launched: map[string]string{},
		alone: map[string]time.Time{}, asked: map[string]int{},
	}
}

// born is told of a new process.
func (j *judge) born(p *process) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.alive[p.Name] = p
	j.Note(p.Name, "starts")
}

// excuse notes that a client loses its locks before their time.
func (j *judge) excuse(client string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.excused[client] = time.Now().Add(excuse)
}

// excuse is how long it may take until a process knows that it has lost a lock before its time.
const excuse = 30 * time.Second

// committed looks at a transaction. What it writes needs a lock that is held when it begins, or is
// taken in it; and a lock that it gives up is held until its end.
func (j *judge) committed(t zookeeper.Transaction) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.seen++; j.offline {
		return
	}
	for _, c := range t.Changes {
		if c.Kind == zookeeper.Create && isContender(c.Path) {
			j.tree.enter(c.Path, t.Session, t.Client)
			j.tried(t.Client, path.Dir(c.Path))
		}
	}
	before := map[string]*zkmodel.Request{} // of what it changes, those that were there
	for _, c := range t.Changes {
		j.count(c)
		j.pool(c)
		j.built(c)
		node, request := recordOf(c.Path)
		switch {
		case node != "":
			j.node(t, c, node)
		case request != "":
			if _, known := before[request]; !known {
				before[request] = j.tree.requests[request]
			}
			j.request(t, c, request)
		}
	}
	for _, c := range t.Changes {
		if c.Kind == zookeeper.Delete && isContender(c.Path) {
			j.tree.leave(c.Path)
		}
	}
	for _, c := range t.Changes {
		if id := requestAt(c.Path); id != "" {
			j.takenOver(id)
		}
	}
	j.whole(t, before)
}

// count counts what changes, for the rest at the end.
func (j *judge) count(c zookeeper.Change) {
	if c.Kind != zookeeper.Check {
		j.writes[c.Path]++
	}
}

// tried: a launcher does not take one lock time and again.
func (j *judge) tried(client, lock string) {
	if isLauncher(client) && j.restless.Again(client, lock) {
		j.Wrong(client, "takes %s for more than %d times in %s", lock, stage.MostTries, stage.Watched)
	}
}

// locked: who writes a record holds its lock.
func (j *judge) locked(t zookeeper.Transaction, what, lock string) {
	if now := j.tree.holder(lock); now.session != t.Session {
		j.Wrong(t.Client, "session %#x writes %s, whose lock is held by %q, session %#x", t.Session, what, now.client, now.session)
	}
}

// node is told of a change of a node's record.
func (j *judge) node(t zookeeper.Transaction, c zookeeper.Change, id string) {
	old := j.tree.nodes[id]
	if c.Kind == zookeeper.Check || c.Kind == zookeeper.SetACL {
		return
	}
	if c.Kind == zookeeper.Delete {
		delete(j.tree.nodes, id)
		j.Note(t.Client, "node %s is gone", id)
		if isLauncher(t.Client) {
			j.locked(t, "node "+id, zkmodel.LockPath(zkmodel.NodePath(id)))
			j.removed(t.Client, old)
		}
		return
	}
	n := zkmodel.DecodeNode(id, c.Data, recipe.Stat{})
	j.tree.nodes[id] = n
	if c.Kind == zookeeper.Create {
		delete(j.tree.held, id) // its number came again
	}
	if _, known := j.broken[id]; !n.Unknown() {
		delete(j.broken, id)
	} else if !known {
		j.broken[id] = time.Now()
	}
	j.byHand(t.Client, c.Path, c.Data)
	if !isLauncher(t.Client) && n.Provider != "" && (old == nil || old.Broken != nil || roomOf(old) != roomOf(n)) { // nobody knew whose room it takes
		j.unseen[id] = time.Now().Add(behind)
	}
	if n.Broken != nil || n.State == "" {
		j.spoiltAt[id] = time.Now()
	}
	j.empty[id] = n.Broken != nil && c.Kind == zookeeper.Create // who stands in line for the lock of what is gone makes it
	j.Note(t.Client, "node %s is %s of %s/%s for %q %s", id, n.State, n.Provider, n.Pool, n.AllocatedTo, n.Reason)
	if c.Kind == zookeeper.Create {
		if isLauncher(t.Client) {
			j.newNode(t, n)
		}
		return
	}
	if isLauncher(t.Client) {
		j.locked(t, "node "+id, zkmodel.LockPath(zkmodel.NodePath(id)))
	}
	if old != nil && old.Broken == nil && n.Broken == nil {
		j.moved("node", id, t.Client, string(old.State), string(n.State), nodeMoves)
		if n.TenantName != old.TenantName {
			j.ofTenant(t.Client, n)
		}
		j.hold(t, old, n)
		j.given(t, old, n)
	}
}

// behind is for how long a launcher with a session may not see what others write. Who has a quota's lock
// sees all that launchers wrote before; another make's launcher, or a person who puts a record
// back, asks for no lock of ours, and the server that tells of it may be late.
const behind = sessionTimeout + longest

// roomOf is whose room a node takes.
func roomOf(n *zkmodel.Node) [3]string { return [3]string{n.Provider, n.Pool, n.TenantName} }

// hold: a held node stays until its time is over; one without a time of its own for as long as anybody wants it.
func (j *judge) hold(t zookeeper.Transaction, old, n *zkmodel.Node) {
	if n.State == zkmodel.NodeHold && old.State != "" && old.StateTime != n.StateTime && (old.State != n.State || t.Client != hand) {
		j.tree.held[n.ID] = time.Now()
	}
	since, known := j.tree.held[n.ID]
	if old.State != zkmodel.NodeHold || n.State != zkmodel.NodeDeleting || !isLauncher(t.Client) || !known {
		return
	}
	if limit := time.Duration(old.HoldExpiration) * time.Second; limit <= 0 {
		j.Wrong(t.Client, "node %s goes, and is to be held until a person says so", n.ID)
	} else if held := time.Since(since); held < limit-clockError {
		j.Wrong(t.Client, "node %s goes after %s, and is to be held for %s", n.ID, held, limit)
	}
}

// clockError is by how much a launcher may take the time of a hold for another: its clock steps, and so does its requestor's,
// and what it has measured of them may be as old as a slow answer.
const clockError = 25 * time.Second

// request is told of a change of a request's record.
func (j *judge) request(t zookeeper.Transaction, c zookeeper.Change, id string) {
	old := j.tree.requests[id]
	if c.Kind == zookeeper.Check || c.Kind == zookeeper.SetACL {
		return
	}
	if c.Kind == zookeeper.Delete {
		delete(j.tree.requests, id)
		j.Note(t.Client, "request %s is gone", id)
		if isLauncher(t.Client) && !j.stock[id] { // who is then its requestor
			j.locked(t, "request "+id, zkmodel.RequestLockPath(id))
		}
		return
	}
	r := zkmodel.DecodeRequest(id, c.Data, recipe.Stat{})
	j.tree.requests[id] = r
	j.byHand(t.Client, c.Path, c.Data)
	j.Note(t.Client, "request %s of %v by %s is %s with %v, declined by %v %s", id, r.NodeTypes, r.Requestor, r.State, r.Nodes, r.DeclinedBy, r.Reason)
	if c.Kind == zookeeper.Create {
		j.asked[id] = j.seen
		j.stock[id] = r.Requestor == zkmodel.MinReadyRequestor // and stays so, whatever a person makes of it
		return
	}
	if isLauncher(t.Client) {
		j.locked(t, "request "+id, zkmodel.RequestLockPath(id))
	}
	if old != nil && old.Broken == nil && r.Broken == nil {
		j.moved("request", id, t.Client, string(old.State), string(r.State), requestMoves)
		if isLauncher(t.Client) {
			j.imageless(t.Client, old, r)
		}
	}
}

// moved: a state changes as the tables say, by whom they say.
func (j *judge) moved(kind, id, client, from, to string, table map[string]zkmodel.Actor) {
	by := zkmodel.ByUs
	switch {
	case client == operator:
		by = zkmodel.ByOperator
	case isRequestor(client):
		by = zkmodel.ByRequestor
	case isOther(client):
		by = zkmodel.ByOther
	}
	if client == hand || client == operator && (from == "" || to == "") {
		return // by an editor, not by a command
	}
	name, anyState := from+" to "+to, " to "+to
	switch {
	case by == zkmodel.ByOther && table[name]&by != 0: // it counts for nothing that ours have to reach
	case (table[name]|table[anyState])&by != 0:
		j.world.count("move: " + kind + " " + name + actors[by])
	case by == zkmodel.ByOther && !j.edited["/nodepool/"+kind+"s/"+id].IsZero(): // it writes over what a person wrote
	case from != to && by != zkmodel.ByRequestor: // who may write what we have not thought of
		j.Wrong(client, "%s %s goes from %s", kind, id, name)
	}
}

// actors are who moves, as counts have them.
var actors = map[zkmodel.Actor]string{zkmodel.ByUs: "", zkmodel.ByRequestor: " by a requestor", zkmodel.ByOperator: " by an operator"}

// nodeMoves and requestMoves are the tables of zkmodel, by "FROM to TO"; FROM is "" for any.
var (
	nodeMoves    = rowsOf(zkmodel.NodeTransitions())
	requestMoves = rowsOf(zkmodel.RequestTransitions())
)

func rowsOf[S ~string](rows []zkmodel.Transition[S]) map[string]zkmodel.Actor {
	all := map[string]zkmodel.Actor{}
	for _, row := range rows {
		all[fmt.Sprintf("%s to %s", row.From, row.To)] |= row.By
	}
	return all
}
