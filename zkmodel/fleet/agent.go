package fleet

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/zkmodel/recipe"
)

// Agent is what one process knows of the fleet's configuration: what it runs, what the tree
// offers, and why that is refused. It never goes back to an older version. Its methods are
// safe for use by several goroutines.
type Agent struct {
	signers func() ([]ed25519.PublicKey, error)
	file    string // where the last good version is kept; "" keeps none
	log     hclog.Logger

	mu      sync.Mutex
	running *Kept    // what runs, or may run at a start; nil is nothing
	floor   *Version // nothing that is older runs; nil is no limit
	offer   Offer
	offered bool  // there has been an offer
	blocked error // why nothing of the tree is taken: nobody can tell what ran before
	unsaved bool  // what runs is not on disk
	untold  *Kept // the log has told that of it
	again   chan struct{}
	picked  *Kept // by Pick, last
	self    Member
	tell    func(Member)  // others; nil before Announce
	settled string        // ID of what is known to run, or to be refused, last
	moved   chan struct{} // closed when settled changes
}

// NewAgent makes the Agent of a daemon of a kind on a host. signers is asked whenever a
// signature counts. file is where the last good version is kept; "" keeps none.
func NewAgent(kind, host, file string, signers func() ([]ed25519.PublicKey, error), log hclog.Logger) *Agent {
	return &Agent{signers: signers, file: file, log: log, again: make(chan struct{}, 1), moved: make(chan struct{}), self: Member{Kind: kind, Host: host}}
}

// Recall reads the version that is kept on disk. One that cannot be used is told, and is not.
func (a *Agent) Recall() {
	keys, unread := a.signers()
	k, err := LoadKept(a.file, keys)
	if err != nil && unread != nil && !errors.Is(err, fs.ErrNotExist) {
		err = errors.Join(err, unread)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		a.running, a.floor = k, k.Version
	case errors.Is(err, fs.ErrNotExist):
	default:
		if k != nil {
			a.floor = k.Version
		} else {
			a.blocked = fmt.Errorf("nobody can tell which version ran before, and an older one may have been put back: %w; delete the file when what ZooKeeper has is right", err)
		}
		a.log.Warn("The configuration that is kept on disk cannot be used", "error", err)
	}
}

// Above has nothing run that is older than a version, which is known to have run or to have
// been pushed: a command has no file of its own.
func (a *Agent) Above(v *Version) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if v != nil && (a.floor == nil || v.Number > a.floor.Number) {
		a.floor = v
	}
}

// Offered takes note of what the tree offers.
func (a *Agent) Offered(o Offer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.offer, a.offered = o, true
}

// Announce has tell called with what others should know of us, now and when it changes.
func (a *Agent) Announce(tell func(Member)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell = tell
	tell(a.self)
}

// Self is what others should know of us.
func (a *Agent) Self() Member {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.self
}

// Pick returns the version to be tried now, and whether it is another than the one that
// runs: what the tree offers if it may run, else what runs; nil when there is neither. Done
// says what came of it.
func (a *Agent) Pick() (k *Kept, fresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.save()
	if !a.offered {
		a.picked = a.running
		return a.running, false
	}
	err := a.judge()
	if err == nil && (a.running == nil || a.running.Version.ID() != a.offer.Version.ID()) {
		a.picked = &Kept{a.offer.Version, a.offer.Text}
		return a.picked, true
	}
	a.refused(a.offer.Version, err)
	a.picked = a.running
	return a.running, false
}

// Fresh takes a look at what is offered, says what there is to say of it, and returns
// whether it may run and does not yet.
func (a *Agent) Fresh() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.save()
	if !a.offered {
		return false
	}
	err := a.judge()
	if err == nil && (a.running == nil || a.running.Version.ID() != a.offer.Version.ID()) {
		return true
	}
	a.refused(a.offer.Version, err)
	return false
}

// Running is the version that runs, or may run at a start; nil when there is none.
func (a *Agent) Running() *Kept {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running
}

// judge says why what is offered may not run; nil when it may, or does already.
func (a *Agent) judge() error {
	o := a.offer
	if o.Version == nil || a.running != nil && o.Version.ID() == a.running.Version.ID() {
		return o.Err // also of what runs: a host that begins now would not get it
	}
	if a.blocked != nil {
		return a.blocked
	}
	if err := a.allowed(o.Version); err != nil {
		return err
	}
	if o.Err != nil {
		return o.Err
	}
	if o.Text == nil { // it was not wanted when the record was read
		select {
		case a.again <- struct{}{}:
		default: // it is asked for already
		}
		return fmt.Errorf("version %d: %w", o.Version.Number, errUnread)
	}
	if recipe.BlobDigest(o.Text) != o.Version.Digest {
		return fmt.Errorf("version %d: %w: the text is another", o.Version.Number, recipe.ErrDamaged)
	}
	return nil
}

// allowed says why a version may not run, whatever its text; nil when it may.
func (a *Agent) allowed(v *Version) error {
	keys, err := a.signers()
	if err != nil {
		return fmt.Errorf("nobody can tell who may push: %w", err)
	}
	if err := v.Verify(keys); err != nil {
		return err
	}
	if a.floor == nil || a.floor.ID() != v.ID() {
		return v.Follows(a.floor)
	}
	return nil
}

// Wanted tells whether the text of a version is worth reading: anybody who can write to the
// tree can name one, of any length.
func (a *Agent) Wanted(v *Version) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running != nil && a.running.Version.ID() == v.ID() || a.allowed(v) == nil
}

// Again receives when a text is wanted that was not when its record was read.
func (a *Agent) Again() <-chan struct{} { return a.again }

// Done says what came of the version that Pick returned last: nil, it runs; an error, it
// cannot be used, and the one before stays.
func (a *Agent) Done(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	k := a.picked
	if k == nil {
		return
	}
	fresh := a.running == nil || a.running.Version.ID() != k.Version.ID()
	switch {
	case err != nil && fresh:
		a.refused(k.Version, fmt.Errorf("version %d: %w", k.Version.Number, err))
		a.picked = a.running
	case err == nil && (fresh || a.self.Number == 0):
		a.adopt(k, fresh)
	}
}

// adopt makes a version the one that runs.
func (a *Agent) adopt(k *Kept, fresh bool) {
	a.running, a.floor = k, k.Version
	if fresh {
		a.unsaved = true
		a.save()
	}
	a.self.Since = time.Now().Unix() //nolint:forbidigo // people are told it, and nothing waits by it
	a.self.Number, a.self.ID = k.Version.Number, k.Version.ID()
	if a.offer.Version != nil && a.offer.Version.ID() == k.Version.ID() {
		a.self.Refused, a.self.Reason = 0, ""
	}
	a.log.Info("The fleet's configuration is in effect", "configuration", k.Version.Name())
	a.settle(k.Version)
	a.announce()
}

// save keeps what runs on disk. A failure is told once a version, and tried again.
func (a *Agent) save() {
	if !a.unsaved || a.file == "" || a.running == nil {
		return
	}
	if err := a.running.Save(a.file); err != nil {
		if a.untold != a.running {
			a.log.Warn("Cannot keep the configuration on disk; a new start could be given an older one; it is tried again", "error", err)
		}
		a.untold = a.running
		return
	}
	a.unsaved = false
}

// errUnread: it was not wanted when its record was read, and is by now.
var errUnread = errors.New("its text is not read yet")

// settle notes that it is known of a version whether it runs.
func (a *Agent) settle(v *Version) {
	if v != nil && a.settled != v.ID() {
		a.settled = v.ID()
		close(a.moved)
		a.moved = make(chan struct{})
	}
}

// await returns when the version of an ID is known to run, or to be refused, or ctx has ended.
func (a *Agent) await(ctx context.Context, id string) {
	for {
		a.mu.Lock()
		settled, moved := a.settled, a.moved
		a.mu.Unlock()
		if settled == id {
			return
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return
		}
	}
}

// refused notes why a version does not run; nil when it does. A reason is told once.
func (a *Agent) refused(v *Version, err error) {
	if !errors.Is(err, errUnread) {
		a.settle(v)
	}
	was := a.self
	a.self.Refused, a.self.Reason = 0, ""
	if err != nil {
		a.self.Reason = err.Error()
		if a.offer.Version != nil {
			a.self.Refused = a.offer.Version.Number
		}
	}
	if a.self == was {
		return
	}
	if err != nil && a.running != nil {
		a.log.Warn("The configuration in ZooKeeper is not taken; the last good one stays", "error", err)
	}
	a.announce()
}

func (a *Agent) announce() {
	if a.tell != nil {
		a.tell(a.self)
	}
}
