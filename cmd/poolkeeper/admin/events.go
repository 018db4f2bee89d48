package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"poolkeeper/cmd/poolkeeper/app"
	"poolkeeper/cmd/poolkeeper/view"
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
	Output string `short:"o" enum:"table,json,json-v1,yaml,name" default:"table" placeholder:"FORM" help:"How to print: table, a line each; json, CloudEvents, one a line; json-v1 or yaml, documents of version v1 that hold them; name, the id (${default})."`
	JSON   bool   `help:"The same as -o json."`
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
	if c.JSON {
		c.Output = "json"
	}
	if c.Follow && c.Output == "yaml" {
		return errors.New("--follow goes with -o table, json, json-v1 and name only")
	}
	out := eventPrinter{to: a.Stdout, form: c.Output, kind: "events", follow: c.Follow}
	if c.Replay == "" {
		a.Reads()
	}
	if c.Dead || c.Replay != "" {
		return a.WithStore(ctx, func(ctx context.Context, cfg *configs.Config, store *zkmodel.Store) error {
			options := app.EventOptions(cfg)
			if c.Replay != "" && (options == nil || !options.Has(c.Replay)) {
				return fmt.Errorf("%s has no sink %q, so that nobody would get its dead letters again; they stay (`poolkeeper events --dead`)", cfg.Path, c.Replay)
			}
			out.kind = "dead-letters"
			if err := c.letters(ctx, a, store.Session(), &out); err != nil || c.Replay != "" {
				return err
			}
			return out.end()
		})
	}
	return a.WithClient(ctx, func(ctx context.Context, cfg *configs.Config, client *recipe.Client, _ *zkmodel.Store) error {
		log, at, any := recipe.NewLog(event.Root, ""), recipe.LogPosition{}, false
		if c.Follow && cfg.Events == nil {
			fmt.Fprintf(a.Stderr, "poolkeeper: %s has no `events:`, so that no change is told by daemons that run with it\n", cfg.Path)
		}
		var refused error // a user is told at once; a daemon would retry
		err := client.Serve(ctx, func(ctx context.Context, s *recipe.Session) error {
			reader := log.Read(s, at)
			for {
				entry, ok, err := c.next(ctx, reader)
				if errors.Is(err, recipe.ErrAuth) {
					refused = err
					return nil
				}
				if err != nil || !ok {
					return err
				}
				any, at = true, entry.LogPosition
				if err := c.print(a, entry, since, &out); err != nil {
					return err
				}
			}
		})
		if !any && !c.Follow && cfg.Events == nil && err == nil && refused == nil {
			fmt.Fprintf(a.Stderr, "poolkeeper: there are no events, and %s has no `events:`, so that no change is told\n", cfg.Path)
		}
		if c.Follow && errors.Is(err, context.Canceled) {
			return nil
		}
		return errors.Join(err, refused, out.end())
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
func (c *EventsCmd) print(a *app.App, entry recipe.LogEntry, since time.Time, out *eventPrinter) error {
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
	return out.print(e, e, "")
}

// eventPrinter prints events in the form that was asked for.
type eventPrinter struct {
	to         io.Writer
	form, kind string
	follow     bool
	items      []any // of a document that is not at its end
}

// print prints what there is to say of an event: item in documents, and after its line.
func (p *eventPrinter) print(e event.Event, item any, after string) (err error) {
	switch p.form {
	case "json":
		return json.NewEncoder(p.to).Encode(item)
	case "name":
		_, err = fmt.Fprintln(p.to, listing.Visible(e.ID))
	case "table":
		_, err = fmt.Fprintln(p.to, eventLine(e)+after)
	default:
		if !p.follow {
			p.items = append(p.items, item)
			return nil
		}
		return json.NewEncoder(p.to).Encode(struct {
			view.Head
			Change string `json:"change"`
			Item   any    `json:"item"`
		}{view.HeadOf(p.kind), "is", item})
	}
	return err
}

// end prints the document, if it is one with an end.
func (p *eventPrinter) end() error {
	if p.follow || p.form == "json" { // a line each
		return nil
	}
	_, err := view.Report{Output: p.form}.Document(p.to, nil, view.List[any]{Head: view.HeadOf(p.kind), Items: append([]any{}, p.items...)})
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
func (c *EventsCmd) letters(ctx context.Context, a *app.App, s *recipe.Session, out *eventPrinter) error {
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
		default:
			if err := out.print(l.Event, l, fmt.Sprintf("  %s: %s", l.Sink, listing.Visible(l.Reason))); err != nil {
				return err
			}
		}
	}
	return nil
}
