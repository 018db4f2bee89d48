package observe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

const (
	// back is how many events before the mark are read again by the next who looks.
	back = 1000
	// skew is how far clocks may differ: a state that is older than the mark by more is
	// not new, although its record was written since, or made: by an import, or a restore.
	skew = 10 * time.Minute
	// batch is how many events are written in one transaction.
	batch = 50
)

// mark is how far a part was looked at: of all records that were last written by Zxid,
// what others did is told.
type mark struct {
	Zxid   int64              `json:"zxid"`
	Log    recipe.LogPosition `json:"log"`              // read until then
	Paused []string           `json:"paused,omitempty"` // subjects that were
}

// state is what was last told of a subject, or what it was when the looking began.
type state struct {
	kind string
	zxid int64
}

// watch is the work of who is elected.
type watch struct {
	view view
	part Part
	held *recipe.Held
	log  *recipe.Log

	reader *recipe.LogReader
	at     recipe.LogPosition // of the last event that was read
	seen   map[string]state
	mark   mark
	since  time.Time // of the mark, by ZooKeeper's clock; zero where there is none
	dirty  bool      // something has changed since the mark
}

// begin reads the mark, and tells what has changed behind it. Where there is none, or one of
// another ZooKeeper, what is there is taken as it is.
func (w *watch) begin(ctx context.Context) error {
	known, err := w.load(ctx)
	if err != nil {
		return err
	}
	s := w.held.Session()
	if !known { // first the end of the log: what is written behind it shows in the tree later, or at once
		if w.mark.Log, err = w.log.End(ctx, s); err != nil {
			return err
		}
	}
	w.at = w.mark.Log
	from := w.at
	from.Number = max(from.Number-back, 0)
	w.reader = w.log.Read(s, from)
	if err := w.view.barrier(ctx); err != nil {
		return err
	}
	if known {
		err = w.look(ctx, w.view.names())
	} else {
		list, _ := w.states(w.view.names())
		for _, c := range list {
			w.seen[c.subject] = state{c.kind, c.zxid}
		}
	}
	w.dirty = true
	return errors.Join(err, w.save(ctx))
}

// load reads the mark, and reports whether there is one.
func (w *watch) load(ctx context.Context) (bool, error) {
	data, stat, err := w.held.Session().Get(ctx, w.part.MarkPath())
	if err != nil {
		return false, err // it is the parent of our lock
	}
	var m mark
	if json.Unmarshal(data, &m) != nil || m.Zxid == 0 || m.Zxid > stat.Mzxid {
		return false, nil //nolint:nilerr // what says nothing, or is of another ZooKeeper, is written anew
	}
	w.mark, w.since = m, stat.Mtime
	for _, subject := range m.Paused {
		w.seen[subject] = state{event.ImagePaused, 0}
	}
	return true, nil
}

// states are those of some names; whole says that all of them could be read.
func (w *watch) states(names []string) (list []change, whole bool) {
	whole = true
	for _, name := range names {
		some, all := w.view.states(name)
		list, whole = append(list, some...), whole && all
	}
	return list, whole
}

// look tells what others have changed of some names.
func (w *watch) look(ctx context.Context, names []string) error {
	w.dirty = true
	list, _ := w.states(names)
	return w.tell(ctx, list)
}

// tell tells those of some states that are new and not ours. An event of ours is there at
// the latest when its change shows: it was written with it.
func (w *watch) tell(ctx context.Context, list []change) error {
	for again := true; again; {
		if list = w.fresh(list); len(list) == 0 {
			return nil
		}
		was := map[string]state{}
		for i := range list {
			if err := w.flag(ctx, &list[i]); err != nil {
				return err
			}
			was[list[i].subject] = w.seen[list[i].subject]
		}
		if err := w.read(ctx); err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(c change) bool { return c.kind == "" })
		// What has become of a flag since it was looked for is to be looked at again.
		again = slices.ContainsFunc(list, func(c change) bool { return c.flag != "" && w.seen[c.subject] != was[c.subject] })
	}
	list = w.fresh(list)
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.zxid, b.zxid) })
	for some := range slices.Chunk(list, batch) {
		if err := w.write(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

// flag looks afresh for a flag that is gone, as no number says when. One that is there is no
// change.
func (w *watch) flag(ctx context.Context, c *change) error {
	if c.flag == "" {
		return nil
	}
	_, there, err := w.held.Session().Known(ctx, c.flag)
	if err == nil && there {
		c.kind = ""
	}
	return err
}

// fresh are the states that are not known. Others are noted.
func (w *watch) fresh(list []change) []change {
	var fresh []change
	for _, c := range list {
		was, known := w.seen[c.subject]
		switch {
		case known && was.kind == c.kind:
		case c.flag != "":
			if known && was.kind == event.ImagePaused {
				fresh = append(fresh, c)
			}
		case known && c.zxid <= was.zxid: // what is told is younger than what shows
		case !known && w.old(c), c.kind == "":
			w.seen[c.subject] = state{c.kind, c.zxid}
		default:
			fresh = append(fresh, c)
		}
	}
	return fresh
}

// old reports whether a state is older than the mark.
func (w *watch) old(c change) bool {
	return c.zxid <= w.mark.Zxid || !c.since.IsZero() && c.since.Before(w.since.Add(-skew))
}

// read reads the log to its end.
func (w *watch) read(ctx context.Context) error {
	for {
		entry, ok, err := w.reader.Poll(ctx)
		if err != nil || !ok {
			return err
		}
		w.at = entry.LogPosition
		e, err := event.Of(entry)
		if err != nil || entry.Gap != nil || e.ReplayFor != "" || !ofState(e.Type) {
			continue
		}
		if was := w.seen[e.Subject]; was.zxid <= entry.Zxid {
			w.seen[e.Subject] = state{e.Type, entry.Zxid}
		}
	}
}

// ofState reports whether an event says in which state a record is.
func ofState(kind string) bool {
	switch kind {
	case event.BuildBegan, event.BuildReady, event.BuildFailed, event.BuildDeleting,
		event.UploadReady, event.UploadFailed, event.UploadDeleting,
		event.RequestFailed, event.NodeHeld, event.NodeDeleting, event.ImagePaused, event.ImageUnpaused:
		return true
	}
	return false
}

// write writes events. One whose answer is lost ends our work; the next look reads whether
// it is there.
func (w *watch) write(ctx context.Context, list []change) error {
	var entries [][]byte
	for _, c := range list {
		e := event.New(w.log.Writer(), c.kind, c.subject, clock.Now(ctx), c.data)
		e.Observed = true
		data, err := e.Encode()
		if err != nil {
			return err
		}
		entries = append(entries, data)
	}
	err := w.log.Append(ctx, w.held.Session(), entries, func(ops []recipe.Op) error {
		_, err := w.held.Multi(ctx, ops...)
		return err
	})
	if err != nil {
		return fmt.Errorf("tell what others have written: %w", err)
	}
	for _, c := range list {
		w.seen[c.subject] = state{c.kind, c.zxid}
	}
	return nil
}

// save writes how far was looked at, if anything has changed since. Everything is looked at
// for it, as of what waits to be looked at nobody knows how old it is.
func (w *watch) save(ctx context.Context) error {
	if !w.dirty {
		return nil
	}
	if err := w.read(ctx); err != nil { // else who is next reads all events since one was looked for
		return err
	}
	next := mark{Log: w.at, Zxid: w.mark.Zxid}
	if err := w.view.barrier(ctx); err != nil {
		return err
	}
	list, _ := w.states(w.view.names())
	for _, c := range list {
		next.Zxid = max(next.Zxid, c.zxid)
	}
	// What was written before the last that shows, shows then.
	if err := w.view.barrier(ctx); err != nil {
		return err
	}
	all, whole := w.states(w.view.names())
	if err := w.tell(ctx, all); err != nil || !whole {
		return err // of what cannot be read nobody knows what others did
	}
	there := map[string]bool{}
	for _, c := range all {
		there[c.subject] = true
		if c.kind == event.ImagePaused {
			next.Paused = append(next.Paused, c.subject)
		}
	}
	for subject, s := range w.seen {
		if !there[subject] && s.zxid <= next.Zxid {
			delete(w.seen, subject)
		}
	}
	if next.Zxid == 0 { // an empty tree: everything in it will be new
		next.Zxid = 1
	}
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	stat, err := w.held.Set(ctx, w.part.MarkPath(), data, recipe.AnyVersion)
	if err != nil {
		return fmt.Errorf("write how far was looked at what others write: %w", err)
	}
	w.mark, w.since, w.dirty = next, stat.Mtime, false
	return nil
}
