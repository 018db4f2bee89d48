package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// CreateRequest makes a node request with a priority, "100" being high and
// "300" low, and fills in its ID. It stays until it is deleted.
func (st *Store) CreateRequest(ctx context.Context, priority string, r *Request) error {
	return st.createRequest(ctx, priority, r, recipe.Sequential)
}

// CreateBoundRequest is CreateRequest for those who wait for their nodes: the
// request goes with our session at the latest, and nodes that it was given with it.
func (st *Store) CreateBoundRequest(ctx context.Context, priority string, r *Request) error {
	return st.createRequest(ctx, priority, r, recipe.Sequential|recipe.Ephemeral)
}

func (st *Store) createRequest(ctx context.Context, priority string, r *Request, mode recipe.Mode) error {
	if r.State == "" {
		begin(r, EpochOf(st.now()))
	}
	if r.EventID == "" {
		r.EventID = newToken()
	}
	data, err := r.Encode()
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	if err := st.session.EnsurePath(ctx, RequestsRoot); err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	made, err := st.session.Create(ctx, RequestPath(priority+"-"), data, mode)
	if err != nil {
		return fmt.Errorf("create request: %w", err)
	}
	r.ID = path.Base(made)
	return nil
}

// LockRequest takes a request's lock, or fails with recipe.ErrLocked at once,
// and reads the request afresh: checks made before must be made again.
func (st *Store) LockRequest(ctx context.Context, id string) (*recipe.Held, *Request, error) {
	lock, err := recipe.NewLock(st.session, RequestLockPath(id), "", recipe.EnsureParents()).Try(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("lock request %s: %w", id, err)
	}
	r, err := st.Request(ctx, id)
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release(ctx))
	}
	return lock, r, nil
}

// Request reads one request, or fails with ErrNotFound.
func (st *Store) Request(ctx context.Context, id string) (*Request, error) {
	data, stat, err := st.session.Get(ctx, RequestPath(id))
	return requestOf(id, data, stat, err)
}

// requestOf is the request of which a read of its record brought these.
func requestOf(id string, data []byte, stat recipe.Stat, err error) (*Request, error) {
	if err != nil {
		return nil, fmt.Errorf("read request %s: %w", id, notFound(err))
	}
	return DecodeRequest(id, data, stat), nil
}

// SaveRequest writes a changed request under its lock.
func (st *Store) SaveRequest(ctx context.Context, lock *recipe.Held, r *Request) error {
	return st.save(ctx, lock, r)
}

// DeleteRequest removes a request, also one that a launcher has. One that is gone is no error.
func (st *Store) DeleteRequest(ctx context.Context, id string) error {
	err := st.session.Delete(ctx, RequestPath(id), recipe.AnyVersion)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("delete request %s: %w", id, err)
	}
	return nil
}

// EraseRequest is DeleteRequest by a person, which is told.
func (st *Store) EraseRequest(ctx context.Context, r *Request) error {
	if st.session.Log() == nil {
		return st.DeleteRequest(ctx, r.ID)
	}
	erased := gone{event.RequestDeleted, r.subject(), event.Data{
		"request": r.ID, "labels": slices.Clone([]string(r.NodeTypes)), "requestor": r.Requestor, "by": ByOperator.teller(),
	}}
	for {
		err := st.telling(ctx, func(also []recipe.Op) error {
			_, err := st.session.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpDelete(r.Path(), recipe.AnyVersion)}, also)...)
			return err
		}, erased)
		switch {
		case err == nil, errors.Is(err, recipe.ErrNoNode):
			return nil
		case !errors.Is(err, recipe.ErrConnectionLost):
			return fmt.Errorf("delete request %s: %w", r.ID, err)
		}
		if err := st.session.Sync(ctx); err != nil {
			return fmt.Errorf("delete request %s: %w", r.ID, err)
		}
	}
}

// WithdrawRequest removes a request that is still as it was read; one that has
// changed since, or is gone, is left alone.
func (st *Store) WithdrawRequest(ctx context.Context, r *Request) error {
	err := st.session.Delete(ctx, r.Path(), r.Stat.Version)
	if err != nil && !errors.Is(err, recipe.ErrNoNode) && !errors.Is(err, recipe.ErrVersion) {
		return fmt.Errorf("withdraw request %s: %w", r.ID, err)
	}
	return nil
}
