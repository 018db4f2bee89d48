package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

const (
	// CurrentPath is the record of the version that is to run.
	CurrentPath = zkmodel.OwnRoot + "/fleet/current"
	// VersionsPath is the parent of the records of versions, by number.
	VersionsPath = zkmodel.OwnRoot + "/fleet/versions"
	// BlobsPath is the parent of texts.
	BlobsPath = zkmodel.OwnRoot + "/fleet/blobs"
	// MembersPath is the parent of what each daemon tells of the version that it runs.
	MembersPath = zkmodel.OwnRoot + "/fleet/members"
	// LockPath is held by who pushes.
	LockPath = zkmodel.OwnRoot + "/fleet/lock"
	// DecisionsPath is a lock for readers and writers: daemons hold its read side while they
	// decide, a push its write side while it switches.
	DecisionsPath = zkmodel.OwnRoot + "/fleet/decisions"
)

// versionPath is the record of a version in the history.
func versionPath(number uint64) string { return fmt.Sprintf("%s/%010d", VersionsPath, number) }

// Store reads and writes versions within one session.
type Store struct{ session *recipe.Session }

// NewStore makes a Store.
func NewStore(s *recipe.Session) *Store { return &Store{s} }

// Current reads the record of the version that is to run. It verifies nothing.
//
// Errors: ErrNone, ErrUndecodable, those of ZooKeeper.
func (st *Store) Current(ctx context.Context) (*Version, error) {
	v, _, err := st.read(ctx, CurrentPath)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, ErrNone
	}
	return v, err
}

// Version reads the record of a version in the history. It verifies nothing.
//
// Errors: zkmodel.ErrNotFound, ErrUndecodable, those of ZooKeeper.
func (st *Store) Version(ctx context.Context, number uint64) (*Version, error) {
	v, _, err := st.read(ctx, versionPath(number))
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return nil, fmt.Errorf("version %d: %w", number, zkmodel.ErrNotFound)
	case err == nil && v.Number != number:
		return nil, fmt.Errorf("version %d: %w: it says that it is %d", number, ErrUndecodable, v.Number)
	}
	return v, err
}

// read reads a record, and the version of its node.
func (st *Store) read(ctx context.Context, path string) (*Version, int32, error) {
	data, stat, err := st.session.Get(ctx, path)
	if err != nil {
		return nil, 0, err
	}
	v, err := decode(data)
	if err != nil {
		return nil, stat.Version, fmt.Errorf("%s: %w", path, err)
	}
	return v, stat.Version, nil
}

// Text reads the text of a version, which is what its digest says.
//
// Errors: recipe.ErrDamaged, those of ZooKeeper.
func (st *Store) Text(ctx context.Context, v *Version) ([]byte, error) {
	if v.Blob == "" || v.Size > maxText { // nobody has verified it yet
		return nil, fmt.Errorf("version %d: %w: no text can be %q with %d bytes", v.Number, recipe.ErrDamaged, v.Blob, v.Size)
	}
	text, err := st.session.ReadBlob(ctx, BlobsPath, v.location())
	if errors.Is(err, recipe.ErrBadPath) {
		err = fmt.Errorf("%w: %w", recipe.ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", v.Number, err)
	}
	return text, nil
}

// Entry is a version in the history, or why it cannot be read.
type Entry struct {
	Name    string // of its node
	Version *Version
	Err     error
}

// History lists the versions that are kept, the oldest first. One that cannot be read hides
// no other.
func (st *Store) History(ctx context.Context) ([]Entry, error) {
	names, err := st.session.Children(ctx, VersionsPath)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list versions: %w", err)
	}
	slices.Sort(names)
	var list []Entry
	for _, name := range names {
		v, _, err := st.read(ctx, VersionsPath+"/"+name)
		switch {
		case errors.Is(err, recipe.ErrNoNode):
			continue // it has been forgotten since
		case err != nil && !errors.Is(err, ErrUndecodable) && !recipe.Unreadable(err):
			return nil, fmt.Errorf("list versions: %w", err)
		}
		list = append(list, Entry{name, v, err})
	}
	return list, nil
}
