package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
	"poolkeeper/configs/kit"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Sink is where events go. One of Webhook, Command and File is set.
type Sink struct {
	Name                   string
	Match                  []string // patterns; none is all
	Webhook, Command, File string
	Key                    string        // signs what goes to a webhook; "" signs nothing
	Timeout                time.Duration // of one try
}

const (
	// batch is how many events are sent at most before it is written that they were: so
	// many may come twice after a crash.
	batch = 50
	// moment is how long after the last event that is written at the latest.
	moment = 250 * time.Millisecond
	// leaveWait is how long a place may take to be written at a stop.
	leaveWait = 2 * time.Second
	// tries is how often an event is sent that the sink refuses, until it is a dead letter.
	tries = 3
)

// retries are the pauses between tries.
var retries = kit.Backoff{First: time.Second, Longest: time.Minute}

// delivery is the work for one sink. Each has its own place in the log, so that one that
// does not answer holds up no other.
type delivery struct {
	sink    Sink
	log     *recipe.Log
	held    *recipe.Held
	logger  hclog.Logger
	metrics *metrics
	retries kit.Backoff

	at    recipe.LogPosition // of the last event that is done with
	saved recipe.LogPosition
	sent  int // since saved
}

// run delivers until ctx ends.
func (d *delivery) run(ctx context.Context) error {
	at, _, err := d.log.Cursor(ctx, d.held.Session(), d.sink.Name)
	if err != nil {
		return err
	}
	d.at, d.saved = at, at
	// What cannot be written now would be found out after the event, which came again then.
	if err := d.log.SaveCursor(ctx, d.held, d.sink.Name, at); err != nil {
		return err
	}
	to := open(d.sink)
	defer to.close()
	defer d.leave(ctx, to)
	reader := d.log.Read(d.held.Session(), d.at)
	for {
		entry, err := d.next(ctx, to, reader)
		if err == nil {
			d.metrics.inHand(d.sink.Name, entry.Time)
			err = d.handle(ctx, to, entry)
		}
		if err != nil {
			return err
		}
	}
}

// next waits for the next entry. When none comes for a moment it writes how far the sink
// has come, not after each, which would be a write more an event; and nothing is in hand
// then, not between two: a scrape just there would say that a sink far behind has all.
func (d *delivery) next(ctx context.Context, to target, reader *recipe.LogReader) (recipe.LogEntry, error) {
	waiting, cancel := clock.WithTimeout(ctx, moment)
	entry, err := reader.Next(waiting)
	cancel()
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return entry, err
	}
	if err := d.save(ctx, to); err != nil {
		return recipe.LogEntry{}, err
	}
	d.metrics.inHand(d.sink.Name, time.Time{})
	return reader.Next(ctx)
}

// save writes how far the sink has come.
func (d *delivery) save(ctx context.Context, to target) error {
	if d.at == d.saved {
		return nil
	}
	if err := to.flush(ctx); err != nil {
		return fmt.Errorf("write to sink %s: %w", d.sink.Name, err)
	}
	if err := d.log.SaveCursor(ctx, d.held, d.sink.Name, d.at); err != nil {
		return err
	}
	d.saved, d.sent = d.at, 0
	return nil
}

// leave writes how far the sink has come when this daemon stops or goes on with other
// options: the next one does not send it again.
func (d *delivery) leave(ctx context.Context, to target) {
	if ctx.Err() == nil {
		return
	}
	leaving, cancel := clock.WithTimeout(context.WithoutCancel(ctx), leaveWait)
	defer cancel()
	if err := d.save(leaving, to); err != nil {
		d.logger.Debug("The place of a sink is not written; up to 50 events come again", "error", err)
	}
}

// handle delivers one entry, if it is for this sink, and returns when it is done with.
func (d *delivery) handle(ctx context.Context, to target, entry recipe.LogEntry) error {
	e, err := event.Of(entry)
	switch {
	case err != nil:
		d.logger.Warn("An entry of the log is no event; it is passed over", "id", entry.String(), "error", err)
	case !d.wants(e):
	default:
		if err := d.deliver(ctx, to, e); err != nil {
			return err
		}
	}
	d.at = entry.LogPosition
	if d.sent++; d.sent < batch {
		return nil
	}
	return d.save(ctx, to)
}

// wants reports whether an event is for this sink. What was dropped is for all.
func (d *delivery) wants(e event.Event) bool {
	switch {
	case e.ReplayFor != "":
		return e.ReplayFor == d.sink.Name
	case e.Type == event.Gap || len(d.sink.Match) == 0:
		return true
	}
	return slices.ContainsFunc(d.sink.Match, e.Matches)
}

// deliver sends an event until the sink has it, or has refused it a few times; then it is
// a dead letter.
func (d *delivery) deliver(ctx context.Context, to target, e event.Event) error {
	data, err := e.Encode()
	if err != nil {
		return err
	}
	for failures := 1; ; failures++ {
		trying, cancel := clock.WithTimeout(ctx, d.sink.Timeout)
		err := to.send(trying, e, data)
		cancel()
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d.metrics.tried(d.sink.Name, err)
		if err == nil { // also at a stop: it has the event
			return nil
		}
		if errors.Is(err, errRefused) && failures >= tries {
			return d.dead(ctx, e, err)
		}
		pause := d.retries.After(failures)
		d.logger.Warn("An event is not delivered; it is tried again", "id", e.ID, "error", err, "retry", pause)
		if clock.Sleep(ctx, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

// dead writes a dead letter. It is the same one when it is written again.
func (d *delivery) dead(ctx context.Context, e event.Event, cause error) error {
	d.logger.Error("An event is refused; it is a dead letter", "id", e.ID, "error", cause)
	d.metrics.died(d.sink.Name)
	return keepLetter(ctx, d.held, d.sink.Name, Letter{Event: e, Reason: cause.Error()})
}
