package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Complete writes the result of a request, under its lock. The shards come first; a small
// node then says that they are there, in one transaction with more. An earlier result is
// to be taken back before, by Reopen, and is kept.
//
// Errors: ErrNodeExists where there is one. After ErrConnectionLost it may have been done.
func (q *Queue) Complete(ctx context.Context, held *Held, id string, result []byte, more ...Op) error {
	data := q.path(queueData, id)
	_, _, err := q.session.Get(ctx, q.path(queueResults, id))
	if err == nil {
		return fmt.Errorf("complete %s: %w", q.path(queueResults, id), ErrNodeExists)
	}
	if !errors.Is(err, ErrNoNode) {
		return err
	}
	earlier, err := q.blob(ctx, queueEarlier, id)
	if err != nil && !errors.Is(err, ErrNoNode) && !errors.Is(err, ErrDamaged) {
		return err
	}
	if _, err := held.CollectBlobs(ctx, data, func(blob string) bool { return blob == earlier.ID }); err != nil {
		return err
	}
	blob, err := held.WriteBlob(ctx, data, result)
	if err != nil {
		return err
	}
	mark, err := json.Marshal(blob)
	if err != nil {
		return err
	}
	if err := q.session.EnsurePath(ctx, q.root+"/"+queueResults); err != nil {
		return err
	}
	_, err = held.Multi(ctx, append([]Op{OpCreate(q.path(queueResults, id), mark, Persistent)}, more...)...)
	return err
}

// Reopen returns the steps of a transaction that take back a result, because more is to be done. From then on Earlier
// returns that result, until the next one is taken back.
func (q *Queue) Reopen(ctx context.Context, id string) ([]Op, error) {
	mark, stat, err := q.session.Get(ctx, q.path(queueResults, id))
	if err == nil {
		err = q.session.EnsurePath(ctx, q.root+"/"+queueEarlier)
	}
	if err != nil {
		return nil, err
	}
	_, exists, err := q.session.Exists(ctx, q.path(queueEarlier, id))
	keep := OpCreate(q.path(queueEarlier, id), mark, Persistent)
	if exists {
		keep = OpSet(q.path(queueEarlier, id), mark, AnyVersion)
	}
	return []Op{OpDelete(q.path(queueResults, id), stat.Version), keep}, err
}

// Result reads the result of a request.
//
// Errors: ErrNoNode when there is none; ErrDamaged when it is not whole, or was taken back
// meanwhile.
func (q *Queue) Result(ctx context.Context, id string) ([]byte, error) {
	return q.read(ctx, queueResults, id)
}

// Earlier reads the result that was taken back last. Its errors are those of Result.
func (q *Queue) Earlier(ctx context.Context, id string) ([]byte, error) {
	return q.read(ctx, queueEarlier, id)
}

// read reads the shards that a mark names.
func (q *Queue) read(ctx context.Context, folder, id string) ([]byte, error) {
	blob, err := q.blob(ctx, folder, id)
	if err != nil {
		return nil, err
	}
	return q.session.ReadBlob(ctx, q.path(queueData, id), blob)
}

// blob reads a mark. Its errors are those of Result.
func (q *Queue) blob(ctx context.Context, folder, id string) (blob Blob, err error) {
	path := q.path(folder, id)
	text, _, err := q.session.Get(ctx, path)
	if err != nil {
		return blob, err
	}
	if err := json.Unmarshal(text, &blob); err != nil {
		return blob, fmt.Errorf("read %s: %w: %w", path, ErrDamaged, err)
	}
	return blob, nil
}

// Wait returns the result of a request as soon as there is one. Meanwhile an ephemeral node
// says that it is waited for, so that nobody removes it.
//
// Errors: ErrNoNode when the request goes without a result; ErrSessionLost.
func (q *Queue) Wait(ctx context.Context, id, identifier string) ([]byte, error) {
	waiter, err := q.stand(ctx, id, identifier)
	if err != nil {
		return nil, err
	}
	if waiter != "" {
		defer q.session.discard(waiter)
	}
	for {
		marked, err := q.session.existsWatch(ctx, q.path(queueResults, id))
		if err != nil {
			return nil, err
		}
		if marked.exists {
			result, err := q.Result(ctx, id)
			if _, still, _ := q.session.Exists(ctx, q.path(queueResults, id)); err == nil || still {
				return result, err
			} // else it was taken back
		}
		asked, err := q.session.existsWatch(ctx, q.path(queueRequests, id))
		if err != nil {
			return nil, err
		}
		if !asked.exists {
			return nil, fmt.Errorf("wait for %s: %w", q.path(queueRequests, id), ErrNoNode)
		}
		select {
		case <-marked.watch:
		case <-asked.watch:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s: %w", q.path(queueRequests, id), context.Cause(ctx))
		case <-q.session.ctx.Done():
			return nil, ended("wait for", q.path(queueRequests, id), q.session.cause())
		}
	}
}

// stand makes the node of one who waits. One that may have been made, and is not known,
// ends with the session.
func (q *Queue) stand(ctx context.Context, id, identifier string) (string, error) {
	for {
		if err := q.session.EnsurePath(ctx, q.path(queueWaiters, id)); err != nil {
			return "", err
		}
		waiter, err := q.session.Create(ctx, q.path(queueWaiters, id)+"/w-", []byte(identifier), Ephemeral|Sequential)
		switch {
		case err == nil || errors.Is(err, ErrConnectionLost):
			return waiter, nil
		case !errors.Is(err, ErrNoNode): // else a sweep was faster
			return "", err
		}
	}
}
