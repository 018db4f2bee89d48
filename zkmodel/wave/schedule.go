package wave

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/recipe"
)

// schedulesPath holds when each wave of the configuration was due last.
const schedulesPath = Root + "/schedules"

// Last is when a wave of the configuration was due last.
type Last struct {
	Time time.Time `json:"last"`

	path    string
	version int32
}

// Scheduled reads when a wave of the configuration was due last. One that is new is due
// from now on.
func (st *Store) Scheduled(ctx context.Context, name string, now time.Time) (Last, error) {
	last := Last{path: schedulesPath + "/" + name}
	for {
		data, stat, err := st.session.Get(ctx, last.path)
		switch {
		case err == nil:
			if err := json.Unmarshal(data, &last); err != nil {
				return last, fmt.Errorf("read %s: %w: %w", last.path, zkmodel.ErrUndecodable, err)
			}
			last.version = stat.Version
			return last, nil
		case !errors.Is(err, recipe.ErrNoNode):
			return last, fmt.Errorf("read %s: %w", last.path, err)
		}
		err = st.session.EnsurePath(ctx, schedulesPath)
		if err == nil {
			_, err = st.session.Create(ctx, last.path, last.encode(now), recipe.Persistent)
		}
		if err != nil && !errors.Is(err, recipe.ErrNodeExists) && !errors.Is(err, recipe.ErrConnectionLost) {
			return last, fmt.Errorf("create %s: %w", last.path, err)
		}
	}
}

func (Last) encode(at time.Time) []byte {
	data, _ := json.Marshal(Last{Time: at.UTC()}) // a time of this century encodes
	return data
}

// at is the step that writes that a wave was due.
func (l Last) at(due time.Time) recipe.Op { return recipe.OpSet(l.path, l.encode(due), l.version) }

// CreateScheduled is Create for a wave that was due at a time, which is noted in the same
// transaction.
//
// Errors: recipe.ErrVersion when another process has noted a time meanwhile.
func (st *Store) CreateScheduled(ctx context.Context, w *Wave, jobs []Job, last Last, due time.Time) (bool, error) {
	made, err := st.Create(ctx, w, jobs, last.at(due))
	if err != nil || made {
		return made, err
	}
	return false, st.Skip(ctx, last, due) // there is a wave of that id: it stands for this one
}

// Skip notes that a wave was due, and is not made.
func (st *Store) Skip(ctx context.Context, last Last, due time.Time) error {
	_, err := st.session.Multi(ctx, last.at(due))
	return err
}
