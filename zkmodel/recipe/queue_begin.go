package recipe

import (
	"context"
	"errors"
	"fmt"
)

// What was said first of the work on a request, as the data of its folder of waiters.
const (
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
//
// Errors: ErrWithdrawn.
func (q *Queue) Begin(ctx context.Context, held *Held, id string) error {
	said, err := q.say(ctx, id, queueBegun, func(op Op) error {
		_, err := held.Multi(ctx, op)
		return err
	})
	if err == nil && said == queueWithdrawn {
		err = fmt.Errorf("begin %s: %w", q.RequestPath(id), ErrWithdrawn)
	}
	return err
}

// Withdraw takes back a request on which no work has begun: none will. It stays, for who
// takes it next to remove.
//
// Errors: ErrBegun; ErrNoNode when the request is gone, with its waiters.
func (q *Queue) Withdraw(ctx context.Context, id string) error {
	said, err := q.say(ctx, id, queueWithdrawn, func(op Op) error {
		_, _, err := q.session.multi(ctx, []Op{op})
		return err
	})
	if err == nil && said == queueBegun {
		err = fmt.Errorf("withdraw %s: %w", q.RequestPath(id), ErrBegun)
	}
	return err
}

// say says a word of a request, unless one was said before, and returns that which holds.
func (q *Queue) say(ctx context.Context, id, word string, write func(Op) error) (string, error) {
	path := q.path(queueWaiters, id)
	for {
		err := write(OpSet(path, []byte(word), 0))
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
		if data, _, err := q.session.Get(ctx, path); err != nil || len(data) > 0 {
			return string(data), err
		}
	}
}
