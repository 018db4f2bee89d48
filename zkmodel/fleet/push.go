package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// keepVersions is how many versions the history has; older ones are forgotten by the next push.
const keepVersions = 50

// maxText is the most that a text may hold, in bytes: what a configuration's file may.
const maxText = 16 << 20

// MaxNumber is the highest number of a version: names of records have ten digits.
const MaxNumber = 9_999_999_999

var (
	// ErrMoved says that another version was pushed since the pusher looked.
	ErrMoved = errors.New("another version was pushed meanwhile")
	// ErrHeld says that another push is under way.
	ErrHeld = errors.New("another push is under way")
	// ErrDecisions says that decisions of daemons were under way for longer than the push would wait.
	ErrDecisions = errors.New("decisions are under way")
	// ErrNumber says that there can be no version of this number.
	ErrNumber = fmt.Errorf("versions are numbered up to %d", MaxNumber)
	// ErrTaken says that the history has a version of this number.
	ErrTaken = errors.New("there is a version of this number")
)

// Draft is what is to be pushed.
type Draft struct {
	Text    []byte
	By      string
	Message string
	// Of is the version whose text it is; 0 when it is no rollback.
	Of uint64
	// After is the number of the version that it follows, and Predecessor that one's ID; 0
	// and "" when it is the first.
	After       uint64
	Predecessor string
	// Seen is what the pusher saw as the current record: the push fails with ErrMoved when
	// that is another by now.
	Seen Seen
	// Known tells whether a record of the history is one that is signed by one who may push.
	Known func(*Version) bool
	// Force switches without waiting for the decisions that are under way.
	Force bool
	// Now is the pusher's clock.
	Now time.Time
}

// Seen is a state of the current record, for Draft.
type Seen struct {
	there   bool
	version int32
	czxid   int64
}

// Look reads the current record for a push: as it is, also when nobody can decode it.
//
// Errors: ErrUndecodable, with a Seen that counts; those of ZooKeeper.
func (st *Store) Look(ctx context.Context) (*Version, Seen, error) {
	if err := st.session.Sync(ctx); err != nil {
		return nil, Seen{}, err
	}
	data, stat, err := st.session.Get(ctx, CurrentPath)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, Seen{}, nil
	}
	if err != nil {
		return nil, Seen{}, err
	}
	seen := Seen{true, stat.Version, stat.Czxid}
	v, err := decode(data)
	return v, seen, err
}

// Push stores a version and makes it the current one, in one transaction at its end: until
// then nobody sees anything of it, and what a push that was killed has left is collected by
// the next. Of two at a time one waits for the other, until ctx ends, and then is refused.
//
// It also waits for the decisions that daemons are about to make, unless the Draft is forced.
//
// Errors: ErrHeld, with who pushes; ErrDecisions, with whose; ErrMoved; ErrTaken; ErrNumber;
// those of ZooKeeper.
func (st *Store) Push(ctx context.Context, key *Key, d Draft) (*Version, error) {
	held, err := st.lock(ctx, d.By)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	defer func() { _ = held.Release(context.WithoutCancel(ctx)) }()
	ctx, cancel := held.Bind(ctx)
	defer cancel()
	v, err := st.push(ctx, held, key, d)
	if err != nil {
		return nil, fmt.Errorf("push: %w", err)
	}
	return v, nil
}

// lock takes the lock of pushes.
func (st *Store) lock(ctx context.Context, who string) (*recipe.Held, error) {
	held, err := recipe.NewLock(st.session, LockPath, who, recipe.EnsureParents()).Acquire(ctx)
	if !errors.Is(err, recipe.ErrLocked) {
		return held, err
	}
	var names []string
	line, _ := recipe.Contenders(context.WithoutCancel(ctx), st.session, LockPath) // it is for people
	for _, c := range line[:min(1, len(line))] {
		names = append(names, c.Identifier)
	}
	return nil, fmt.Errorf("%w, by %s", ErrHeld, strings.Join(names, ", "))
}

func (st *Store) push(ctx context.Context, held *recipe.Held, key *Key, d Draft) (*Version, error) {
	if len(d.Text) > maxText {
		return nil, fmt.Errorf("%w: %d bytes", recipe.ErrTooLarge, len(d.Text))
	}
	if d.After >= MaxNumber {
		return nil, fmt.Errorf("%w: after %d", ErrNumber, d.After)
	}
	_, now, err := st.Look(ctx)
	if err != nil && !errors.Is(err, ErrUndecodable) {
		return nil, err
	}
	if now != d.Seen {
		return nil, ErrMoved
	}
	if err := st.session.EnsurePath(ctx, VersionsPath); err != nil {
		return nil, err
	}
	if err := st.collect(ctx, held); err != nil {
		return nil, err
	}
	v := &Version{
		Number: d.After + 1, Predecessor: d.Predecessor, Digest: recipe.BlobDigest(d.Text), Size: len(d.Text),
		// JSON would change other texts, and they would not be what was signed.
		Time: d.Now.Unix(), By: strings.ToValidUTF8(d.By, "?"), Message: strings.ToValidUTF8(d.Message, "?"), Of: d.Of,
	}
	record, err := st.place(ctx, v.Number, d.Known)
	if err != nil {
		return nil, err
	}
	blob, err := held.WriteBlob(ctx, BlobsPath, d.Text)
	if err != nil {
		return nil, err
	}
	v.Blob, v.Shards = blob.ID, blob.Shards
	key.sign(v)
	if err := st.change(ctx, held, d, v, record); err != nil {
		_ = st.collect(context.WithoutCancel(ctx), held) // else the next push does
		return nil, err
	}
	return v, nil
}

// still stops the decisions of all daemons until release is called, and returns the check
// that they are stopped.
func (st *Store) still(ctx context.Context, d Draft) (fence []recipe.Op, release func(), err error) {
	if d.Force {
		return nil, func() {}, nil
	}
	held, err := recipe.NewWriteLock(st.session, DecisionsPath, d.By, recipe.EnsureParents()).Acquire(ctx)
	if up, ok := errors.AsType[*recipe.HeldUpError](err); ok {
		var names []string
		for _, c := range up.By {
			names = append(names, c.Identifier)
		}
		return nil, nil, fmt.Errorf("%w: held up by %s; --force switches all the same", ErrDecisions, strings.Join(names, ", "))
	}
	if err != nil {
		return nil, nil, err
	}
	return []recipe.Op{held.Fence()}, func() { _ = held.Release(context.WithoutCancel(ctx)) }, nil
}

// place returns what writes the record of a number into the history: in place of one that
// nobody who may push has made.
func (st *Store) place(ctx context.Context, number uint64, known func(*Version) bool) (func([]byte) recipe.Op, error) {
	path := versionPath(number)
	before, version, err := st.read(ctx, path)
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return func(data []byte) recipe.Op { return recipe.OpCreate(path, data, recipe.Persistent) }, nil
	case err == nil && known(before):
		return nil, fmt.Errorf("%w: %d", ErrTaken, number)
	case err == nil || errors.Is(err, ErrUndecodable):
		return func(data []byte) recipe.Op { return recipe.OpSet(path, data, version) }, nil
	}
	return nil, err
}

// change makes a version the current one. When the connection breaks it finds out what
// became of that.
func (st *Store) change(ctx context.Context, held *recipe.Held, d Draft, v *Version, record func([]byte) recipe.Op) error {
	data, err := v.encode()
	if err != nil {
		return err
	}
	fence, release, err := st.still(ctx, d)
	if err != nil {
		return err
	}
	defer release()
	current := recipe.OpCreate(CurrentPath, data, recipe.Persistent)
	if d.Seen.there {
		current = recipe.OpSet(CurrentPath, data, d.Seen.version)
	}
	for {
		_, err := held.Multi(ctx, append(fence, record(data), current)...)
		if !errors.Is(err, recipe.ErrConnectionLost) {
			return err
		}
		if err := st.session.Sync(ctx); err != nil {
			return err
		}
		switch now, _, err := st.session.Get(ctx, CurrentPath); {
		case err == nil && bytes.Equal(now, data):
			return nil
		case err != nil && !errors.Is(err, recipe.ErrNoNode):
			return err
		}
	}
}

// collect forgets the oldest versions, and deletes texts that no record refers to, such as
// those of pushes that were interrupted. Nothing is deleted while a record cannot be read.
func (st *Store) collect(ctx context.Context, held *recipe.Held) error {
	all, err := st.History(ctx)
	if err != nil {
		return err
	}
	current, err := st.Current(ctx)
	if err != nil && !errors.Is(err, ErrNone) && !errors.Is(err, ErrUndecodable) {
		return err
	}
	used := map[string]bool{}
	if current != nil {
		used[current.Blob] = true
	}
	for i, e := range all {
		if recipe.Unreadable(e.Err) {
			return nil
		}
		if len(all)-i >= keepVersions && (e.Version == nil || current == nil || e.Version.Number != current.Number) {
			if err := held.DeleteTree(ctx, VersionsPath+"/"+e.Name); err != nil {
				return err
			}
			continue
		}
		if e.Version != nil {
			used[e.Version.Blob] = true
		}
	}
	_, err = held.CollectBlobs(ctx, BlobsPath, func(id string) bool { return used[id] })
	return err
}
