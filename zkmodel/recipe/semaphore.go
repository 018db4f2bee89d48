package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// semMark stands between the random part of a claim's name and its weight.
const semMark = "__claim__"

// Semaphore limits how much of something many processes use together. Claims
// stand in line as the contenders of a lock do, each with its weight in its
// name: a claim is granted when it and all before it fit within the limit, so
// that a heavy one is not starved by light ones that come later.
//
// The limit belongs to the claimants, who should agree on it; while they do not,
// each keeps to its own.
type Semaphore struct {
	lock  *Lock
	limit int
}

// NewSemaphore returns the semaphore of dir for s, created when missing with its
// parents. The identifier is shown to those who list the claims.
func NewSemaphore(s *Session, dir, identifier string, limit int) *Semaphore {
	return &Semaphore{lock: NewLock(s, dir, identifier, EnsureParents()), limit: limit}
}

// Acquire waits until weight is granted; Release of the Held gives it back. A
// weight that can never fit is ErrBadConfig. If ctx ends while others use too
// much, the error is ErrLocked and the cause of ctx.
func (m *Semaphore) Acquire(ctx context.Context, weight int) (*Held, error) {
	l := m.lock
	if weight < 1 || weight > m.limit {
		return nil, fmt.Errorf("claim %d of %d at %s: %w", weight, m.limit, l.dir, ErrBadConfig)
	}
	for {
		name, err := l.enter(ctx, semMark+strconv.Itoa(weight)+"__")
		if err != nil {
			return nil, err
		}
		if err = m.await(ctx, name); err == nil {
			var held *Held
			if held, err = l.hold(ctx, name); err == nil {
				return held, nil
			}
		}
		l.session.discard(l.path(name))
		if !errors.Is(err, ErrFenceLost) {
			return nil, err
		}
	}
}

// await returns when the claim name is granted. It watches the list of claims,
// since any that is given back may make room.
func (m *Semaphore) await(ctx context.Context, name string) error {
	l := m.lock
	for {
		n, err := l.session.childrenWatch(ctx, l.dir)
		if err != nil {
			return err
		}
		switch used := weightUpTo(n.children, name); {
		case used == 0:
			return fmt.Errorf("claim at %s: %w", l.dir, ErrFenceLost)
		case used <= m.limit:
			return nil
		}
		select {
		case <-n.watch:
		case <-ctx.Done():
			return fmt.Errorf("claim at %s: %w: %w", l.dir, ErrLocked, context.Cause(ctx))
		case <-l.session.ctx.Done():
			return ended("claim at", l.dir, l.session.cause())
		}
	}
}

// Claim is a use of a semaphore, granted or waiting.
type Claim struct {
	// Name is that of its node.
	Name string
	// Weight is how much it uses.
	Weight int
	// Identifier is what the claimant says of itself.
	Identifier string
	// Since is when it was made, by ZooKeeper's clock.
	Since time.Time
	// seq orders claims.
	seq string
}

// Claims returns the claims at the semaphore of dir, the oldest first.
func Claims(ctx context.Context, s *Session, dir string) ([]Claim, error) {
	names, err := s.Children(ctx, dir)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	all := sortClaims(names)
	present := all[:0]
	for _, c := range all {
		data, stat, err := s.Get(ctx, joinPath(dir, c.Name))
		if errors.Is(err, ErrNoNode) {
			continue // it was given back since
		}
		if err != nil {
			return nil, err
		}
		c.Identifier, c.Since = identifier(data), stat.Ctime
		present = append(present, c)
	}
	return present, nil
}

// weightUpTo returns the weight of name and all claims before it, or 0 if it is not there.
func weightUpTo(names []string, name string) int {
	sum := 0
	for _, c := range sortClaims(names) {
		sum += c.Weight
		if c.Name == name {
			return sum
		}
	}
	return 0
}

// sortClaims picks the claims out of names and sorts them by sequence number.
func sortClaims(names []string) []Claim {
	var claims []Claim
	for _, name := range names {
		if c, ok := parseClaim(name); ok {
			claims = append(claims, c)
		}
	}
	slices.SortFunc(claims, func(a, b Claim) int {
		return cmp.Or(strings.Compare(a.seq, b.seq), strings.Compare(a.Name, b.Name))
	})
	return claims
}

// parseClaim reads "<random>__claim__<weight>__<sequence number>".
func parseClaim(name string) (Claim, bool) {
	_, rest, ok := strings.Cut(name, semMark)
	if !ok {
		return Claim{}, false
	}
	digits, seq, ok := strings.Cut(rest, "__")
	weight, err := strconv.ParseInt(digits, 10, 32)
	if !ok || err != nil || weight < 1 || !isSeq(seq) {
		return Claim{}, false
	}
	return Claim{Name: name, Weight: int(weight), seq: seq}, true
}
