package recipe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"poolkeeper/configs/clock"
)

// What was said first of the work on a request, as the data of its folder of waiters.
const (
	queueReady     = "ready" // the worker asks the submitter to confirm with begun
	queueBegun     = "begun"
	queueWithdrawn = "withdrawn"
)

var (
	// ErrBegun says that the work on a request has begun.
	ErrBegun = errors.New("its work has begun")
	// ErrWithdrawn says that who made a request has taken it back.
	ErrWithdrawn = errors.New("it is taken back")
)

// Begin notes, under the lock of a request, that the work on it begins, which may be said
// more than once. Of Begin and Withdraw the first holds. The request must have had a waiter.
// If confirm is not 0, Begin first asks the submitter, which must answer within this time (see
// Confirm): the ephemeral node of a submitter outlives a killed one until its session expires.
//
// Errors: ErrWithdrawn.
func (q *Queue) Begin(ctx context.Context, held *Held, id string, confirm time.Duration) error {
	write := func(op Op) error {
		_, err := held.Multi(ctx, op)
		return err
	}
	word := queueBegun
	if confirm > 0 {
		word = queueReady
	}
	said, err := q.say(ctx, id, word, 0, write)
	if err == nil && said == queueReady {
		patient, cancel := clock.WithTimeout(ctx, confirm)
		defer cancel()
		q.session.Watch(patient, q.path(queueWaiters, id), func(data []byte, _ Stat, exists bool) bool {
			return exists && string(data) == queueReady
		})
		said, err = q.say(ctx, id, queueWithdrawn, 1, write)
	}
	if err == nil && said == queueWithdrawn {
		err = fmt.Errorf("begin %s: %w", q.RequestPath(id), ErrWithdrawn)
	}
	return err
}

// Confirm answers, until ctx ends, the worker that asks whether a request still has its submitter.
func (q *Queue) Confirm(ctx context.Context, id string) {
	q.session.Watch(ctx, q.path(queueWaiters, id), func(data []byte, _ Stat, exists bool) bool {
		if string(data) == queueReady {
			_, _ = q.say(ctx, id, queueBegun, 1, func(op Op) error {
				_, _, err := q.session.multi(ctx, []Op{op})
				return err
			})
		}
		return exists && len(data) == 0
	})
}

// Withdraw takes back a request on which no work has begun: none will. It stays, for who
// takes it next to remove.
//
// Errors: ErrBegun; ErrNoNode when the request is gone, with its waiters.
func (q *Queue) Withdraw(ctx context.Context, id string) error {
	write := func(op Op) error {
		_, _, err := q.session.multi(ctx, []Op{op})
		return err
	}
	said, err := q.say(ctx, id, queueWithdrawn, 0, write)
	if err == nil && said == queueReady {
		said, err = q.say(ctx, id, queueWithdrawn, 1, write)
	}
	if err == nil && said == queueBegun {
		err = fmt.Errorf("withdraw %s: %w", q.RequestPath(id), ErrBegun)
	}
	return err
}

// say says a word of a request if version words were said before, and returns the last word.
func (q *Queue) say(ctx context.Context, id, word string, version int32, write func(Op) error) (string, error) {
	path := q.path(queueWaiters, id)
	for {
		err := write(OpSet(path, []byte(word), version))
		switch {
		case err == nil:
			return word, nil
		case errors.Is(err, ErrConnectionLost): // it may have been said
			if err := q.session.Sync(ctx); err != nil {
				return "", err
			}
		case !errors.Is(err, ErrVersion):
			return "", err
		}
		if data, stat, err := q.session.Get(ctx, path); err != nil || stat.Version > version {
			return string(data), err
		}
	}
}
