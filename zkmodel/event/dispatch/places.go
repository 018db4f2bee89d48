package dispatch

import (
	"context"
	"fmt"
	"slices"
	"time"

	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// SinkPlace is how far a sink has come.
type SinkPlace struct {
	Sink    string
	Letters int       // dead letters that are kept
	Next    time.Time // when the first event was told that it has not got; zero when it has all
}

// Places tells how far sinks have come, those that have a place in the log, by name. Where no
// event was ever dispatched there is none.
func Places(ctx context.Context, s *recipe.Session) ([]SinkPlace, error) {
	log := recipe.NewLog(event.Root, "")
	sinks, err := log.Consumers(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("list places of sinks: %w", err)
	}
	slices.Sort(sinks)
	var list []SinkPlace
	for _, sink := range sinks {
		one := SinkPlace{Sink: sink}
		names, err := below(ctx, s, lettersPath+"/"+sink)
		if err != nil {
			return nil, fmt.Errorf("list dead letters of %s: %w", sink, err)
		}
		one.Letters = len(names)
		at, begun, err := log.Cursor(ctx, s, sink)
		if err != nil {
			return nil, err
		}
		if begun {
			entry, there, err := log.Read(s, at).Poll(ctx)
			if err != nil {
				return nil, err
			}
			if there {
				one.Next = entry.Time
			}
		}
		list = append(list, one)
	}
	return list, nil
}
