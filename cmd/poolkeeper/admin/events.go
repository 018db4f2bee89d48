package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/configs"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/event/dispatch"
	"poolkeeper/zkmodel/listing"
	"poolkeeper/zkmodel/recipe"
)

// EventsCmd is `poolkeeper events`.
type EventsCmd struct {
	Follow bool   `help:"Go on with those that come, until Ctrl-C."`
	Since  string `placeholder:"WHEN" help:"Only those since then: a time as 2026-11-22T17:00:00Z, or how long ago: 30m, 12h."`
	Match  string `placeholder:"PATTERN" help:"Only those whose type or subject is like this: 'build.*', '*.failed', 'provider/ovh'."`
	JSON   bool   `help:"Print CloudEvents, one JSON object a line."`
	Dead   bool   `xor:"what" help:"Print the dead letters instead: events that a sink has refused."`
	Replay string `xor:"what" placeholder:"SINK" help:"Send the dead letters of a sink to it again."`
}

// Help is what the command's own help says.
func (*EventsCmd) Help() string {
	return "Prints what the tree keeps of events, the oldest first. They are written where the configuration has `events:`."
}

// Run is the command.
func (c *EventsCmd) Run(ctx context.Context, a *app.App) error {
	since, err := moment(c.Since, time.Now())
	if err != nil {
		return err
	}
	if err := event.CheckPattern(c.Match); err != nil {
		return err
	}
	if c.Dead || c.Replay != "" {
		return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
			options := app.EventOptions(cfg)
			if c.Replay != "" && (options == nil || !options.Has(c.Replay)) {
				return fmt.Errorf("%s has no sink %q, so that nobody would get its dead letters again; they stay (`poolkeeper events --dead`)", cfg.Path, c.Replay)
			}
			return c.letters(ctx, a, store.Session())
		})
	}
	return a.WithClient(ctx, func(ctx context.Context, cfg *configs.Config, client *recipe.Client, _ *zkmodel.Store) error {
		log, at, any := recipe.NewLog(event.Root, ""), recipe.LogPosition{}, false
		err := client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
			reader := log.Read(s, at)
			for {
				entry, ok, err := c.next(ctx, reader)
				if err != nil || !ok {
					return err
				}
				any, at = true, entry.LogPosition
				if err := c.print(a, entry, since); err != nil {
					return err
				}
			}
		})
		if !any && cfg.Events == nil && err == nil {
			fmt.Fprintf(a.Stderr, "poolkeeper: there are no events, and %s has no `events:`, so that no change is told\n", cfg.Path)
		}
		if c.Follow && errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	})
}

// next is the next event, if there is one; who follows waits for it.
func (c *EventsCmd) next(ctx context.Context, r *recipe.LogReader) (recipe.LogEntry, bool, error) {
	if !c.Follow {
		return r.Poll(ctx)
	}
	entry, err := r.Next(ctx)
	return entry, err == nil, err
}

// print prints an entry, if it is asked for. One that cannot be read is told, and hides no other.
func (c *EventsCmd) print(a *app.App, entry recipe.LogEntry, since time.Time) error {
	if entry.Gap == nil && entry.Time.Before(since) {
		return nil
	}
	e, err := event.Of(entry)
	if err != nil {
		fmt.Fprintf(a.Stderr, "poolkeeper: %s\n", listing.Visible(err.Error()))
		return nil
	}
	if !e.Matches(c.Match) {
		return nil
	}
	if c.JSON {
		return json.NewEncoder(a.Stdout).Encode(e)
	}
	_, err = fmt.Fprintln(a.Stdout, eventLine(e))
	return err
}

// eventLine is an event for people.
func eventLine(e event.Event) string {
	words := []string{e.Time.Local().Format(time.DateTime), strings.TrimPrefix(e.Type, "poolkeeper."), e.Subject}
	for _, key := range slices.Sorted(maps.Keys(e.Data)) {
		value := e.Data[key]
		if text, ok := value.(string); ok {
			value = fmt.Sprintf("%q", text)
		}
		words = append(words, fmt.Sprintf("%s=%v", key, value))
	}
	return listing.Visible(strings.Join(append(words, "from "+e.Source), "  "))
}

// moment reads a time, or how long ago it was; "" is the beginning.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("--since %q: want a time as 2026-11-22T17:00:00Z, or how long ago as 30m or 12h", text)
	}
	return at, nil
}

// letters prints dead letters, or has them sent again.
func (c *EventsCmd) letters(ctx context.Context, a *app.App, s *recipe.Session) error {
	letters, err := dispatch.Letters(ctx, s, c.Replay)
	if err != nil {
		return err
	}
	if c.Replay != "" && len(letters) == 0 {
		return fmt.Errorf("sink %q has no dead letters", c.Replay)
	}
	for _, l := range letters {
		switch {
		case !l.Event.Matches(c.Match):
		case c.Replay != "":
			if err := dispatch.Replay(ctx, s, recipe.NewLog(event.Root, ""), l); err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s is sent to %s again\n", l.Event.ID, l.Sink)
		case c.JSON:
			if err := json.NewEncoder(a.Stdout).Encode(l); err != nil {
				return err
			}
		default:
			fmt.Fprintf(a.Stdout, "%s  %s: %s\n", eventLine(l.Event), l.Sink, listing.Visible(l.Reason))
		}
	}
	return nil
}
