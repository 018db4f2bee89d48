package recipe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// The folders of a Queue, which are those of Zuul's job queues.
const (
	queueRequests = "requests"
	queueParams   = "params"
	queueLocks    = "locks"
	queueData     = "result-data"
	queueResults  = "results"
	queueEarlier  = "earlier-results"
	queueWaiters  = "waiters"
)

// ErrWaited says that the result of a request is waited for, so that it stays.
var ErrWaited = errors.New("its result is waited for")

// Queue is a queue of requests, each of which one process works at, under a lock that
// is no part of the request, so that the request can go while the lock is held:
//
//	requests/ID     what is asked for; never changes
//	params/ID       more of it, for who works at it
//	locks/ID        the lock
//	result-data/ID  the result, in shards
//	results/ID      says that all shards of the result are there
//	earlier-results/ID  the same of the result that was taken back last
//	waiters/ID      an ephemeral node for each who waits for the result
//
// Requests are made in one transaction, and follow each other by their creation. Params that
// the server might refuse for their size are stored compressed.
// What is there beside a request that does not exist is garbage; see Sweep.
type Queue struct {
	session *Session
	root    string
	beside  []string
}

// NewQueue returns the queue below root. beside names more folders with a node for
// each request, which go with it.
func NewQueue(s *Session, root string, beside ...string) *Queue {
	return &Queue{session: s, root: root, beside: beside}
}

// path is that of a request's node in a folder.
func (q *Queue) path(folder, id string) string { return q.root + "/" + folder + "/" + id }

// RequestPath is that of the request itself. Children of it are for the queue's user.
func (q *Queue) RequestPath(id string) string { return q.path(queueRequests, id) }

// Submit makes a request and its params, in one transaction with more. It reports
// false when there is a request of that id already, of which nothing is changed then.
//
// Errors: ErrTooLarge, when all that does not fit into one transaction.
func (q *Queue) Submit(ctx context.Context, id string, request, params []byte, more ...Op) (bool, error) {
	params, err := packParams(params)
	if err != nil {
		return false, fmt.Errorf("submit %s: %w", id, err)
	}
	ops := append([]Op{
		OpCreate(q.path(queueRequests, id), request, Persistent),
		OpCreate(q.path(queueParams, id), params, Persistent),
	}, more...)
	for lost, ensured, collected := false, false, false; ; {
		_, at, err := q.session.multi(ctx, ops)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrConnectionLost):
			lost = true
			if err := q.session.Sync(ctx); err != nil {
				return false, err
			}
		case at == 0 && errors.Is(err, ErrNodeExists):
			return lost && q.holds(ctx, id, request), nil
		case errors.Is(err, ErrNoNode) && !ensured: // the first of all requests
			ensured = true
			if err := q.makeFolders(ctx); err != nil {
				return false, err
			}
		case errors.Is(err, ErrNodeExists) && !collected: // garbage of a request that had the same id
			collected = true
			if err := q.collect(ctx, id); err != nil {
				return false, err
			}
		default:
			return false, err
		}
	}
}

// OpsWait are steps of Submit's transaction by which the submitter waits for the result
// from the start, until Leave or the end of the session.
func (q *Queue) OpsWait(id, identifier string) []Op {
	return []Op{
		OpCreate(q.path(queueWaiters, id), nil, Persistent),
		OpCreate(q.path(queueWaiters, id)+"/w-", []byte(identifier), Ephemeral|Sequential),
	}
}

// Leave ends all that this session waits for at a request.
func (q *Queue) Leave(ctx context.Context, id string) error {
	names, err := q.names(ctx, queueWaiters+"/"+id)
	if err != nil {
		return err
	}
	for _, name := range names {
		path := q.path(queueWaiters, id) + "/" + name
		stat, there, err := q.session.Exists(ctx, path)
		if err == nil && there && stat.EphemeralOwner == q.session.ID() {
			err = q.session.Delete(ctx, path, AnyVersion)
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}

// IDs are those of all requests.
func (q *Queue) IDs(ctx context.Context) ([]string, error) { return q.names(ctx, queueRequests) }

// Request reads a request.
func (q *Queue) Request(ctx context.Context, id string) ([]byte, error) {
	data, _, err := q.session.Get(ctx, q.path(queueRequests, id))
	return data, err
}

func (q *Queue) makeFolders(ctx context.Context) error {
	for _, folder := range slices.Concat([]string{queueRequests, queueParams, queueWaiters}, q.beside) {
		if err := q.session.EnsurePath(ctx, q.root+"/"+folder); err != nil {
			return err
		}
	}
	return nil
}

// holds reports whether a request says the same as one of which the answer was lost.
func (q *Queue) holds(ctx context.Context, id string, request []byte) bool {
	data, _, err := q.session.Get(ctx, q.path(queueRequests, id))
	return err == nil && bytes.Equal(data, request)
}

// Params reads the params of a request.
//
// Errors: ErrNoNode; ErrDamaged when they are compressed and not whole.
func (q *Queue) Params(ctx context.Context, id string) ([]byte, error) {
	path := q.path(queueParams, id)
	data, _, err := q.session.Get(ctx, path)
	if err != nil || !bytes.HasPrefix(data, packed) {
		return data, err
	}
	params, err := unpack(data, maxBlob)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w: %w", path, ErrDamaged, err)
	case len(params) > maxBlob:
		return nil, fmt.Errorf("read %s: %w: more than %d bytes", path, ErrDamaged, maxBlob)
	}
	return params, nil
}

// plainParams is the most bytes of params that are stored as they are, so that also releases
// which know no compression read all but those that no server takes.
const plainParams = 768 << 10

// packed is what compressed data begins with.
var packed = []byte{0x1f, 0x8b}

// packParams are params as they are stored. Those that look like compressed ones are compressed,
// however small, so that a reader can tell.
func packParams(params []byte) ([]byte, error) {
	if len(params) > maxBlob {
		return nil, fmt.Errorf("%w: params of %d bytes", ErrTooLarge, len(params))
	}
	if len(params) <= plainParams && !bytes.HasPrefix(params, packed) {
		return params, nil
	}
	return pack(params)
}

// Take stands in line for the lock of a request until it is held, and the request is there.
//
// Errors: ErrNoNode when the request is gone.
func (q *Queue) Take(ctx context.Context, id, identifier string) (*Held, error) {
	held, err := NewLock(q.session, q.path(queueLocks, id), identifier, EnsureParents()).Acquire(ctx)
	return q.there(ctx, id, held, err)
}

// TryTake is Take that returns ErrLocked at once when another works at the request.
func (q *Queue) TryTake(ctx context.Context, id, identifier string) (*Held, error) {
	held, err := NewLock(q.session, q.path(queueLocks, id), identifier, EnsureParents()).Try(ctx)
	return q.there(ctx, id, held, err)
}

// there returns the lock if its request exists, and gives it up otherwise.
func (q *Queue) there(ctx context.Context, id string, held *Held, err error) (*Held, error) {
	if err != nil {
		return nil, err
	}
	_, exists, err := q.session.Exists(ctx, q.path(queueRequests, id))
	if err == nil && exists {
		return held, nil
	}
	if err == nil {
		err = fmt.Errorf("take %s: %w", q.path(queueRequests, id), ErrNoNode)
	}
	return nil, errors.Join(err, held.Release(ctx))
}

// Waited reports whether anybody waits for the result of a request.
func (q *Queue) Waited(ctx context.Context, id string) (bool, error) {
	names, err := q.session.Children(ctx, q.path(queueWaiters, id))
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return len(names) > 0, err
}

// Remove removes a request under its lock, and all that stands beside it. The request
// goes first: what a crash leaves of the rest is garbage.
//
// Errors: ErrWaited.
func (q *Queue) Remove(ctx context.Context, held *Held, id string, also ...Op) error {
	switch waited, err := q.Waited(ctx, id); {
	case err != nil:
		return err
	case waited:
		return fmt.Errorf("remove %s: %w", q.path(queueRequests, id), ErrWaited)
	}
	if err := held.DeleteTree(ctx, q.path(queueRequests, id), also...); err != nil {
		return err
	}
	return q.collect(ctx, id)
}

// Sweep collects what stands beside no request: what was left when a removal was
// interrupted, locks of requests that are gone, results that nobody can claim.
func (q *Queue) Sweep(ctx context.Context) error {
	unclaimed := map[string]bool{}
	for _, folder := range q.folders() {
		names, err := q.names(ctx, folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			unclaimed[name] = true
		}
	}
	// Read after the others: who is in them and not here was removed, or never was.
	claimed, err := q.names(ctx, queueRequests)
	if err != nil {
		return err
	}
	for _, id := range claimed {
		delete(unclaimed, id)
	}
	for id := range unclaimed {
		if err := q.collect(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// folders are those in which a request has something beside itself.
func (q *Queue) folders() []string {
	return slices.Concat(q.beside, []string{queueParams, queueData, queueResults, queueEarlier, queueWaiters, queueLocks})
}

func (q *Queue) names(ctx context.Context, folder string) ([]string, error) {
	names, err := q.session.Children(ctx, q.root+"/"+folder)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// collect removes what stands beside a request that does not exist. Each transaction
// makes and removes the request, which proves that it is not there. Locks and waiters
// that are in use stay.
func (q *Queue) collect(ctx context.Context, id string) error {
	request := q.path(queueRequests, id)
	absent := func(ctx context.Context, ops ...Op) ([]OpResult, error) {
		all := slices.Concat([]Op{OpCreate(request, nil, Persistent)}, ops, []Op{OpDelete(request, AnyVersion)})
		_, at, err := q.session.multi(ctx, all)
		if at == 0 && errors.Is(err, ErrNodeExists) {
			return nil, errClaimed
		}
		return nil, err
	}
	for _, folder := range q.folders() {
		path := q.path(folder, id)
		if folder == queueLocks || folder == queueWaiters {
			if names, err := q.session.Children(ctx, path); err == nil && len(names) > 0 {
				continue
			}
		}
		err := deleteTree(ctx, q.session, path, "", absent, nil)
		if errors.Is(err, errClaimed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("collect %s: %w", path, err)
		}
	}
	return nil
}

// errClaimed says that what was to be collected is of a request that exists.
var errClaimed = errors.New("its request is there")
