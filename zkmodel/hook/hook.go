// Package hook is what others tell this site of: deliveries, which stand in a queue in the
// tree until a wave is made of each.
package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// Root holds what hooks are told (docs/wire.md §8.7).
const Root = zkmodel.OwnRoot + "/hooks"

// LockPath is the lock of who makes waves of deliveries.
const LockPath = Root + "/lock"

// QueuePath holds the deliveries of which nothing is made yet.
const QueuePath = Root + "/queue"

// seenPath holds a node for each delivery that was taken, for a while.
const seenPath = Root + "/seen"

// What is kept.
const (
	// Most is how many deliveries may wait.
	Most = 1000
	// Memory is how long a delivery is known again.
	Memory = 7 * 24 * time.Hour
	// mostSeen is how many of one hook are known at most; the oldest go.
	mostSeen = 2000
	// batch is how many are forgotten in one transaction.
	batch = 200
)

// ErrFull says that too many deliveries wait.
var ErrFull = errors.New("too many deliveries wait")

// Delivery is one thing that a hook was told.
type Delivery struct {
	Hook string `json:"hook"`
	ID   string `json:"id"` // by which the sender knows it
	// Event, Ref, Repository and Commit are what it says, as far as it does.
	Event      string    `json:"event,omitempty"`
	Ref        string    `json:"ref,omitempty"`
	Repository string    `json:"repository,omitempty"`
	Commit     string    `json:"commit,omitempty"`
	Received   time.Time `json:"received"`
	By         string    `json:"by,omitempty"` // the daemon that took it
	// Priority is that of a node request, PriorityNormal if it is 0: the smaller number comes first.
	Priority int `json:"priority,omitempty"`

	version int32
	name    string // in the queue, if it is not HOOK,ID
	alien   bool   // it is no delivery
}

// The priorities of deliveries.
const (
	PriorityHigh   = 100
	PriorityNormal = 200
	PriorityLow    = 300
)

// Outcome is what became of a delivery.
type Outcome struct {
	Wave   string `json:"wave,omitempty"`   // that was made
	Reason string `json:"reason,omitempty"` // why none was
}

// validID is what an id may look like: it is a znode's name.
var validID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`) })

// CheckID refuses what cannot be the id of a delivery.
func CheckID(id string) error {
	if !validID().MatchString(id) {
		return errors.New("expected letters, digits, dashes and underscores, at most 64")
	}
	return nil
}

func (d *Delivery) queued() string {
	if d.name != "" {
		return QueuePath + "/" + d.name
	}
	return QueuePath + "/" + d.Hook + "," + d.ID
}

func (d *Delivery) seen() string { return seenPath + "/" + d.Hook + "/" + d.ID }

// String says what was told, for people.
func (d *Delivery) String() string {
	words := []string{cmp.Or(d.Event, "a word")}
	if d.Ref != "" {
		words = append(words, "to", path.Base(d.Ref))
	}
	if d.Repository != "" {
		words = append(words, "of", d.Repository)
	}
	if d.Commit != "" {
		words = append(words, "("+d.Commit[:min(len(d.Commit), 12)]+")")
	}
	return strings.Join(words, " ")
}

// Store reads and writes deliveries within one session.
type Store struct{ session *recipe.Session }

// NewStore makes a Store. Its values are cheap.
func NewStore(s *recipe.Session) *Store { return &Store{s} }

// Keep stores a delivery: it stands in the queue, and is known again. It reports false when
// it is known already, of which nothing is changed then.
//
// Errors: ErrFull.
func (st *Store) Keep(ctx context.Context, d *Delivery) (bool, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return false, fmt.Errorf("keep delivery %s: %w", d.ID, err)
	}
	for lost := false; ; {
		queue, there, err := st.session.Exists(ctx, QueuePath)
		if err == nil && there && queue.NumChildren >= Most {
			return st.known(ctx, d)
		}
		_, err = st.session.Multi(ctx,
			recipe.OpCreate(d.seen(), nil, recipe.Persistent), recipe.OpCreate(d.queued(), data, recipe.Persistent))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, recipe.ErrNodeExists):
			return lost, nil // what was sent, and not answered, has made it
		case errors.Is(err, recipe.ErrNoNode):
			err = errors.Join(st.session.EnsurePath(ctx, path.Dir(d.seen())), st.session.EnsurePath(ctx, QueuePath))
		case errors.Is(err, recipe.ErrConnectionLost):
			lost = true
			err = st.session.Sync(ctx)
		}
		if err != nil {
			return false, fmt.Errorf("keep delivery %s of hook %s: %w", d.ID, d.Hook, err)
		}
	}
}

// known says of a delivery that finds the queue full whether it is known.
func (st *Store) known(ctx context.Context, d *Delivery) (bool, error) {
	_, there, err := st.session.Exists(ctx, d.seen())
	if err == nil && !there {
		err = ErrFull
	}
	if err != nil {
		return false, fmt.Errorf("keep delivery %s of hook %s: %w", d.ID, d.Hook, err)
	}
	return false, nil
}

// named takes the hook and the id of a delivery from its name, HOOK,ID; those of PRIORITY-SEQUENCE are in its record. It
// reports false for any other name.
func (d *Delivery) named(name string) bool {
	if priority, ok := prioritized(name); ok {
		d.Priority, d.name = priority, name
		return d.Hook != "" && CheckID(d.ID) == nil
	}
	hook, id, cut := strings.Cut(name, ",")
	d.Hook, d.ID = hook, id
	return cut && hook != "" && CheckID(id) == nil
}

// prioritized is the priority in a name PRIORITY-SEQUENCE. Nothing of this release writes such names: a builder of an older
// one, which may return, drops such deliveries.
func prioritized(name string) (int, bool) {
	text, sequence, ok := strings.Cut(name, "-")
	priority, err := strconv.Atoi(text)
	if err != nil || !ok || len(sequence) != 10 {
		return 0, false
	}
	_, err = strconv.ParseUint(sequence, 10, 32)
	return priority, err == nil
}

// Waiting lists the deliveries of which nothing is made yet, by priority and then in the order in which they
// came. One that cannot be decoded, or that has no name of a delivery, has no Received. Where some may not be read the others
// are listed, with an error that recipe.Unreadable knows.
func (st *Store) Waiting(ctx context.Context) ([]*Delivery, error) {
	names, err := st.session.Children(ctx, QueuePath)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	order := map[*Delivery]int64{}
	var list []*Delivery
	var unread error
	for _, name := range names {
		data, stat, err := st.session.Get(ctx, QueuePath+"/"+name)
		if errors.Is(err, recipe.ErrNoNode) {
			continue
		}
		if recipe.Unreadable(err) {
			unread = errors.Join(unread, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list deliveries: %w", err)
		}
		d := &Delivery{}
		if json.Unmarshal(data, d) != nil {
			d = &Delivery{}
		}
		if !d.named(name) {
			d = &Delivery{Hook: d.Hook, ID: d.ID, name: name, alien: true}
		}
		d.version, order[d] = stat.Version, stat.Czxid
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *Delivery) int {
		return cmp.Or(cmp.Compare(cmp.Or(a.Priority, PriorityNormal), cmp.Or(b.Priority, PriorityNormal)), cmp.Compare(order[a], order[b]))
	})
	return list, unread
}

// Done are the steps that say what became of a delivery, and take it out of the queue, for
// the transaction that does what is to become of it. fence is that of LockPath's holder.
func (st *Store) Done(ctx context.Context, fence recipe.Op, d *Delivery, o Outcome) ([]recipe.Op, error) {
	ops := []recipe.Op{fence, recipe.OpDelete(d.queued(), d.version)}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("end delivery %s: %w", d.ID, err)
	}
	if d.alien {
		return ops, nil // it was never taken
	}
	_, there, err := st.session.Exists(ctx, d.seen())
	if err != nil {
		return nil, fmt.Errorf("end delivery %s: %w", d.ID, err)
	}
	if there { // or it was forgotten, as it waited so long
		ops = append(ops, recipe.OpSet(d.seen(), data, recipe.AnyVersion))
	}
	return ops, nil
}

// Drop ends a delivery of which nothing becomes.
func (st *Store) Drop(ctx context.Context, held *recipe.Held, d *Delivery, reason string) error {
	ops, err := st.Done(ctx, held.Fence(), d, Outcome{Reason: reason})
	if err == nil {
		_, err = held.Multi(ctx, ops[1:]...)
	}
	if err != nil {
		return fmt.Errorf("drop delivery %s of hook %s: %w", d.ID, d.Hook, err)
	}
	return nil
}

// Outcome reads what became of a delivery; false when it is not known.
func (st *Store) Outcome(ctx context.Context, hook, id string) (o Outcome, known bool, err error) {
	data, _, err := st.session.Get(ctx, (&Delivery{Hook: hook, ID: id}).seen())
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return o, false, nil
	case err != nil:
		return o, false, fmt.Errorf("read delivery %s of hook %s: %w", id, hook, err)
	}
	_ = json.Unmarshal(data, &o) // it waits still
	return o, true, nil
}

// Forget removes what is known of deliveries for too long, or of too many of one hook.
func (st *Store) Forget(ctx context.Context, held *recipe.Held, now time.Time) error {
	hooks, err := st.session.Children(ctx, seenPath)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil
	}
	for _, hook := range hooks {
		if err == nil {
			err = st.forget(ctx, held, seenPath+"/"+hook, now)
		}
	}
	if err != nil {
		return fmt.Errorf("forget deliveries: %w", err)
	}
	return nil
}

// Fades is when the first of what is known of deliveries is known for too long; zero where
// nothing is known.
func (st *Store) Fades(ctx context.Context) (first time.Time, err error) {
	hooks, err := st.session.Children(ctx, seenPath)
	if errors.Is(err, recipe.ErrNoNode) {
		return first, nil
	}
	for _, hook := range hooks {
		var list []known
		if err == nil {
			list, err = st.seen(ctx, seenPath+"/"+hook)
		}
		if len(list) > 0 && (first.IsZero() || list[0].stat.Ctime.Before(first)) {
			first = list[0].stat.Ctime
		}
	}
	switch {
	case err != nil:
		return first, fmt.Errorf("list deliveries that are known: %w", err)
	case first.IsZero():
		return first, nil
	}
	return first.Add(Memory + time.Second), nil
}

// known is a delivery that was taken.
type known struct {
	path string
	stat recipe.Stat
}

// seen lists the deliveries that a hook has taken, the oldest first.
func (st *Store) seen(ctx context.Context, folder string) ([]known, error) {
	names, err := st.session.Children(ctx, folder)
	if err != nil {
		return nil, err
	}
	var list []known
	for _, name := range names {
		stat, there, err := st.session.Exists(ctx, folder+"/"+name)
		if err != nil {
			return nil, err
		}
		if there {
			list = append(list, known{folder + "/" + name, stat})
		}
	}
	slices.SortFunc(list, func(a, b known) int { return cmp.Compare(a.stat.Czxid, b.stat.Czxid) })
	return list, nil
}

func (st *Store) forget(ctx context.Context, held *recipe.Held, folder string, now time.Time) error {
	list, err := st.seen(ctx, folder)
	if err != nil {
		return err
	}
	var ops []recipe.Op
	for i, k := range list {
		if len(list)-i > mostSeen || now.Sub(k.stat.Ctime) > Memory {
			ops = append(ops, recipe.OpDelete(k.path, recipe.AnyVersion))
		}
	}
	for some := range slices.Chunk(ops, batch) {
		if _, err := held.Multi(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}
