package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/launcher/lesson"
	"poolkeeper/launcher/schedule"
	"poolkeeper/launcher/step"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// ErrUndeleted reports that the machine of a failed attempt is not deleted, and that the limits leave no room for
// another one beside it: the request waits for room, or goes to another provider.
var ErrUndeleted = errors.New("the machine of its last attempt is not deleted, and the limits leave no room for another one")

// partings are the launches that wait for the decision whether another attempt may be made beside a machine that
// is not deleted, and the attempts that requests have made.
type partings struct {
	mu      sync.Mutex
	waiting []*parting
	// spent are the attempts that were made for requests that wait again, by request and provider.
	spent map[[2]string]int
}

// parting is one of these launches.
type parting struct {
	run     *Run
	decided chan verdict
}

// verdict is a decision. After a nil error the machine has a record of its own.
type verdict struct {
	asked lesson.Asked
	err   error
}

// part gives the machine of the failed attempt of a node a record of its own, and returns the order of the next
// attempt.
//
// Errors: ErrUndeleted without room for another machine.
func (l *Launches) part(ctx context.Context, o *Order, n *Run) (*Order, error) {
	p := &parting{run: n, decided: make(chan verdict, 1)}
	l.partings.mu.Lock()
	l.partings.waiting = append(l.partings.waiting, p)
	l.partings.mu.Unlock()
	l.Notify()
	select {
	case v := <-p.decided:
		next := *o
		next.Asked = v.asked
		return &next, v.err
	case <-ctx.Done():
		l.partings.mu.Lock() // the record is not changed after this
		defer l.partings.mu.Unlock()
		l.partings.waiting = slices.DeleteFunc(l.partings.waiting, func(one *parting) bool { return one == p })
		return nil, context.Cause(ctx)
	}
}

// Part decides about all launches that wait for that, and adds the records that it writes to the snapshot. It
// returns the providers whose quota locks it needs. It is called by the goroutine that decides over requests, before that.
func (l *Launches) Part(ctx context.Context, snap *schedule.Snapshot) (quotas []string) {
	l.partings.mu.Lock()
	defer l.partings.mu.Unlock()
	for key := range l.partings.spent {
		if !slices.ContainsFunc(snap.Requests, func(r *zkmodel.Request) bool { return r.ID == key[0] }) {
			delete(l.partings.spent, key)
		}
	}
	waiting := l.partings.waiting
	l.partings.waiting = nil
	for _, p := range waiting {
		n := p.run.Node
		room := schedule.Beside(snap, n)
		fence, ours := l.fence(n.Provider)
		switch {
		case !room.Left:
			p.decided <- verdict{err: ErrUndeleted}
		case !room.HoldsQuota || !ours:
			quotas = append(quotas, n.Provider)
			l.partings.waiting = append(l.partings.waiting, p)
		default:
			p.decided <- verdict{room.Asked, l.write(ctx, p.run, fence, snap)}
		}
	}
	return quotas
}

// fence is the check that the lock of a provider's quota is held, if it is.
func (l *Launches) fence(provider string) (recipe.Op, bool) {
	if quota := l.Quotas[provider]; quota != nil {
		return quota.Fence()
	}
	return recipe.Op{}, false
}

// write writes the record of a machine that is not deleted.
func (l *Launches) write(ctx context.Context, n *Run, fence recipe.Op, snap *schedule.Snapshot) error {
	left, err := l.Store.PartNode(ctx, n.Lock, n.Node, fence)
	if errors.Is(err, recipe.ErrConnectionLost) {
		l.Quotas[n.Node.Provider].Doubt(ctx)
		return fmt.Errorf("%w: %w", recipe.ErrVersion, err) // it may be written
	}
	if err != nil {
		return err
	}
	l.Own.Note(n.Node)
	l.Own.Note(left)
	l.Own.FinishNode(left.ID)
	schedule.Count(snap, left)
	l.Log.Warn("Machine is not deleted, it gets a record of its own and the launch continues with another machine", "node", n.Node.ID, "provider", left.Provider,
		"external_id", left.ExternalID.Text(), "deleted_as", left.ID, "error", left.DeleteError)
	l.Step(step.Parted)
	return nil
}

// spend notes the attempts of a launch whose request waits again.
func (l *Launches) spend(o *Order, n *Run) {
	l.partings.mu.Lock()
	defer l.partings.mu.Unlock()
	if l.partings.spent == nil {
		l.partings.spent = map[[2]string]int{}
	}
	l.partings.spent[[2]string{o.Request.ID, n.Node.Provider}] = n.Node.Attempt
}

// firstAttempt is the number of the first attempt of a new node.
func (l *Launches) firstAttempt(o *Order, n *Run) int {
	l.partings.mu.Lock()
	defer l.partings.mu.Unlock()
	return 1 + l.partings.spent[[2]string{o.Request.ID, n.Node.Provider}]
}

// again prepares the next attempt after a failed one. undone is why its machine is not deleted.
func (l *Launches) again(ctx context.Context, log hclog.Logger, o *Order, n *Run, failed, undone error) (*Order, error) {
	if undone != nil {
		next, err := l.part(ctx, o, n)
		switch {
		case err == nil:
			o = next
		case Lost(err) || ctx.Err() != nil:
			return nil, err
		default:
			l.spend(o, n)
			err = errors.Join(ErrUndeleted, undone, failed)
			return nil, errors.Join(err, l.giveUp(ctx, n, zkmodel.NodeFailed, err))
		}
	}
	l.changeZone(o, n)
	return o, rest(ctx, log, failed)
}
