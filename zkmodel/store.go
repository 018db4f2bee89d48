package zkmodel

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"poolkeeper/zkmodel/recipe"
	"poolkeeper/zkmodel/wire"
)

// What can be wrong with a record rather than with ZooKeeper.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrInProgress: the thing is being made, and cannot be deleted meanwhile.
	ErrInProgress = errors.New("in progress")
	// ErrUndecodable: nobody knows what the record stands for.
	ErrUndecodable = errors.New("the record cannot be decoded")
	// ErrBusy: another process holds the record's lock.
	ErrBusy = errors.New("locked by another process")
)

// Store reads and writes records within one session. Its values are cheap: make
// one wherever a session is at hand.
type Store struct {
	session *recipe.Session
	now     func() time.Time
	// canaries says that images are read with how their builds come into service.
	canaries bool
}

// NewStore makes a Store. now is the clock of state times; nil is that of the session.
func NewStore(s *recipe.Session, now func() time.Time) *Store {
	if now == nil {
		now = s.Clock().Now
	}
	return &Store{session: s, now: now}
}

// Session is the session that the Store works in.
func (st *Store) Session() *recipe.Session { return st.session }

// record is what the operations below need to know of a record.
type record interface {
	Path() string
	Encode() ([]byte, error)
	stat() *recipe.Stat
	teller
}

func (b *Build) stat() *recipe.Stat   { return &b.Stat }
func (u *Upload) stat() *recipe.Stat  { return &u.Stat }
func (n *Node) stat() *recipe.Stat    { return &n.Stat }
func (r *Request) stat() *recipe.Stat { return &r.Stat }

// SaveOp is the write of a changed record as part of a larger transaction; it
// fails when the record has changed since it was read.
func SaveOp(r record) (recipe.Op, error) {
	data, err := r.Encode()
	if err != nil {
		return recipe.Op{}, fmt.Errorf("save %s: %w", r.Path(), err)
	}
	return recipe.OpSet(r.Path(), data, r.stat().Version), nil
}

// save writes a changed record under a lock, fenced, if nobody else changed it, and tells
// of it. What it is written with is in the same transaction.
func (st *Store) save(ctx context.Context, lock *recipe.Held, r record, with ...recipe.Op) error {
	data, err := r.Encode()
	if err != nil {
		return fmt.Errorf("save %s: %w", r.Path(), err)
	}
	err = st.telling(ctx, func(also []recipe.Op) error {
		stat, err := lock.Set(ctx, r.Path(), data, r.stat().Version, slices.Concat(with, also)...)
		if err == nil {
			*r.stat() = stat
		}
		return err
	}, r)
	if err != nil {
		return fmt.Errorf("save %s: %w", r.Path(), notFound(err))
	}
	return nil
}

// createNumbered makes a record with the next number below parent and returns
// the number. The token in the data finds it again when the connection breaks
// between the write and its answer.
func createNumbered(ctx context.Context, lock *recipe.Held, parent, token string, data []byte) (string, error) {
	mine := func(data []byte) bool {
		var t struct{ tokenOnly }
		_, err := wire.Decode(data, &t.tokenOnly)
		return err == nil && t.Token == token
	}
	made, err := lock.CreateUnique(ctx, parent+"/", data, mine)
	if err != nil {
		return "", err
	}
	return path.Base(made), nil
}

// wrote reads the Stat of a record that was just written, where the answer does not tell it. Its version
// is that of the write: a later change is another's, and is not written over.
func (st *Store) wrote(ctx context.Context, path string, version int32) (recipe.Stat, error) {
	_, stat, err := st.session.Get(ctx, path)
	stat.Version = version
	return stat, err
}

// tokenOnly reads just the token of a record.
type tokenOnly struct {
	Token string `wire:"token"`
}

// notFound turns "no such znode" into "no such record".
func notFound(err error) error {
	if errors.Is(err, recipe.ErrNoNode) {
		return fmt.Errorf("%w (%w)", ErrNotFound, err)
	}
	return err
}
