package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// lettersPath is the parent of the dead letters of sinks.
const lettersPath = event.Root + "/dead"

// mostLetters is how many dead letters a sink has at most; the oldest go.
const mostLetters = 1000

// Letter is an event that a sink has refused.
type Letter struct {
	Event  event.Event `json:"event"`
	Reason string      `json:"reason"`

	Sink string `json:"sink"`
}

func (l Letter) path() string { return lettersPath + "/" + l.Sink + "/" + l.Event.ID }

// keepLetter writes a dead letter of a sink; one that is there already stays.
func keepLetter(ctx context.Context, held *recipe.Held, sink string, l Letter) error {
	l.Sink = sink
	data, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("keep event %s: %w", l.Event.ID, err)
	}
	_, err = held.Create(ctx, l.path(), data, recipe.Persistent)
	if errors.Is(err, recipe.ErrNoNode) {
		if err = held.Session().EnsurePath(ctx, lettersPath+"/"+sink); err == nil {
			_, err = held.Create(ctx, l.path(), data, recipe.Persistent)
		}
	}
	if err != nil && !errors.Is(err, recipe.ErrNodeExists) {
		return fmt.Errorf("keep event %s: %w", l.Event.ID, err)
	}
	return nil
}

// Letters lists the dead letters of all sinks, or of one, the oldest first.
func Letters(ctx context.Context, s *recipe.Session, sink string) ([]Letter, error) {
	sinks := []string{sink}
	if sink == "" {
		var err error
		if sinks, err = below(ctx, s, lettersPath); err != nil {
			return nil, err
		}
	}
	var list []Letter
	for _, sink := range sinks {
		names, err := below(ctx, s, lettersPath+"/"+sink)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			var l Letter
			data, _, err := s.Get(ctx, lettersPath+"/"+sink+"/"+name)
			if errors.Is(err, recipe.ErrNoNode) {
				continue
			}
			if err == nil {
				err = json.Unmarshal(data, &l)
			}
			if err != nil {
				return nil, fmt.Errorf("read dead letter %s of %s: %w", name, sink, err)
			}
			list = append(list, l)
		}
	}
	slices.SortStableFunc(list, func(a, b Letter) int { return a.Event.Time.Compare(b.Event.Time) })
	return list, nil
}

// Replay sends a dead letter again: in one transaction it goes, and its event is told anew,
// to its sink alone. One that is gone is no error.
func Replay(ctx context.Context, s *recipe.Session, log *recipe.Log, l Letter) error {
	e := l.Event
	e.ReplayFor, e.ReplayOf, e.ID = l.Sink, e.ID, ""
	data, err := e.Encode()
	if err != nil {
		return err
	}
	err = log.Append(ctx, s, [][]byte{data}, func(also []recipe.Op) error {
		if len(also) == 0 {
			return fmt.Errorf("append to the log: %w", recipe.ErrAuth)
		}
		_, err := s.Multi(ctx, slices.Concat([]recipe.Op{recipe.OpDelete(l.path(), recipe.AnyVersion)}, also)...)
		return err
	})
	if errors.Is(err, recipe.ErrNoNode) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("replay event %s: %w", l.Event.ID, err)
	}
	return nil
}

// trimLetters deletes the oldest dead letters of sinks that have too many.
func trimLetters(ctx context.Context, held *recipe.Held) error {
	sinks, err := below(ctx, held.Session(), lettersPath)
	if err != nil {
		return err
	}
	for _, sink := range sinks {
		names, err := below(ctx, held.Session(), lettersPath+"/"+sink)
		if err != nil || len(names) <= mostLetters {
			continue
		}
		list, err := Letters(ctx, held.Session(), sink)
		if err != nil {
			return err
		}
		for _, l := range list[:max(len(list)-mostLetters, 0)] {
			if err := held.Delete(ctx, l.path(), recipe.AnyVersion); err != nil && !errors.Is(err, recipe.ErrNoNode) {
				return err
			}
		}
	}
	return nil
}

// below lists the names below a path, none where it is not there.
func below(ctx context.Context, s *recipe.Session, path string) ([]string, error) {
	names, err := s.Children(ctx, path)
	if errors.Is(err, recipe.ErrNoNode) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}
