package recipe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// trimBatch is how many entries one transaction of a Trim deletes.
const trimBatch = 200

// logSegment is one segment with what is left in it.
type logSegment struct {
	epoch string
	first int64
	stat  Stat
}

// Trim deletes, the oldest first, the entries beyond the newest keep, and those that were
// written before a time; 0 and the zero time delete nothing. Segments that have ended go
// with their last entry. It is the work of one process at a time, the holder of h, and
// returns how many entries it has deleted.
func (l *Log) Trim(ctx context.Context, h *Held, keep int64, before time.Time) (int64, error) {
	segments, err := l.list(ctx, h.session)
	var left, dropped int64
	for _, seg := range segments {
		left += int64(seg.stat.NumChildren)
	}
	for i, seg := range segments {
		if err != nil {
			break
		}
		over := int64(0)
		if keep > 0 {
			over = left - dropped - keep
		}
		var n int64
		n, err = l.trimSegment(ctx, h, seg, over, before, i == len(segments)-1)
		if dropped += n; n < int64(seg.stat.NumChildren) {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("trim %s: %w", l.dir, err)
	}
	return dropped, err
}

// list lists the segments of all epochs, the oldest first.
func (l *Log) list(ctx context.Context, s *Session) ([]logSegment, error) {
	epochs, err := l.epochs(ctx, s)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []logSegment
	for _, epoch := range epochs {
		firsts, err := l.segments(ctx, s, epoch)
		if err != nil {
			return nil, err
		}
		for _, first := range firsts {
			stat, there, err := s.Exists(ctx, l.segmentPath(epoch, first))
			if err != nil {
				return nil, err
			}
			if there {
				list = append(list, logSegment{epoch, first, stat})
			}
		}
	}
	return list, nil
}

// trimSegment deletes the oldest entries of a segment: over of them, and those behind them
// that are too old. One that is empty, has ended and is not the last goes, too.
func (l *Log) trimSegment(ctx context.Context, h *Held, seg logSegment, over int64, before time.Time, last bool) (int64, error) {
	path := l.segmentPath(seg.epoch, seg.first)
	if over <= 0 && before.IsZero() {
		return 0, nil
	}
	names, err := h.session.Children(ctx, path)
	if err != nil {
		return 0, err
	}
	slices.Sort(names)
	count := min(max(over, 0), int64(len(names)))
	for !before.IsZero() && count < int64(len(names)) {
		stat, there, err := h.session.Exists(ctx, path+"/"+names[count])
		if err != nil {
			return 0, err
		}
		if there && !stat.Ctime.Before(before) {
			break
		}
		count++
	}
	for batch := range slices.Chunk(names[:count], trimBatch) {
		var ops []Op
		for _, name := range batch {
			ops = append(ops, OpDelete(path+"/"+name, AnyVersion))
		}
		if _, err := h.Multi(ctx, ops...); err != nil {
			return 0, err
		}
	}
	if count == int64(len(names)) && !last && seg.stat.Version > 0 {
		err = l.drop(ctx, h, seg)
	}
	return count, err
}

// drop deletes a segment that is empty, and its epoch if that is the last of it.
func (l *Log) drop(ctx context.Context, h *Held, seg logSegment) error {
	_, err := h.Multi(ctx, OpDelete(l.segmentPath(seg.epoch, seg.first), AnyVersion))
	if err != nil {
		return err
	}
	_, err = h.Multi(ctx, OpDelete(l.epochPath(seg.epoch), AnyVersion))
	if errors.Is(err, ErrNotEmpty) {
		return nil
	}
	return err
}

// cursorPath is where a consumer's cursor stands.
func (l *Log) cursorPath(consumer string) string { return l.dir + "/cursors/" + consumer }

// Cursor is how far a consumer has come, and whether it has begun at all.
//
// Errors: ErrDamaged if something else stands there.
func (l *Log) Cursor(ctx context.Context, s *Session, consumer string) (LogPosition, bool, error) {
	var at LogPosition
	data, _, err := s.Get(ctx, l.cursorPath(consumer))
	if errors.Is(err, ErrNoNode) || err == nil && len(data) == 0 {
		return at, false, nil
	}
	if err == nil {
		if jerr := json.Unmarshal(data, &at); jerr != nil {
			at, err = LogPosition{}, fmt.Errorf("%w: %w", ErrDamaged, jerr)
		}
	}
	if err != nil {
		return at, false, fmt.Errorf("read the cursor of %s: %w", consumer, err)
	}
	return at, true, nil
}

// Begin gives consumers that have none a cursor, all in one transaction behind the fence of
// h. The first consumers that a log ever has begin with the oldest entry that is kept,
// those that come later behind the last one; so does, with a warning, one whose cursor
// says nothing. A cursor that may not be read stays as it is.
func (l *Log) Begin(ctx context.Context, h *Held, consumers ...string) error {
	ops, err := l.beginning(ctx, h.session, consumers)
	if err == nil && len(ops) > 0 {
		_, err = h.Multi(ctx, ops...)
	}
	if err != nil {
		return fmt.Errorf("begin to read %s: %w", l.dir, err)
	}
	return nil
}

// beginning is what makes the cursors that are missing.
func (l *Log) beginning(ctx context.Context, s *Session, consumers []string) ([]Op, error) {
	names, err := s.Children(ctx, l.dir+"/cursors")
	first := errors.Is(err, ErrNoNode)
	var at LogPosition
	var ops []Op
	switch {
	case first:
		err = s.EnsurePath(ctx, l.dir)
		ops = []Op{OpCreate(l.dir+"/cursors", nil, Persistent)}
	case err == nil:
		at, err = l.End(ctx, s)
	}
	data, jerr := json.Marshal(at)
	if err = errors.Join(err, jerr); err != nil {
		return nil, err
	}
	missing := false
	for _, consumer := range consumers {
		path := l.cursorPath(consumer)
		if !slices.Contains(names, consumer) {
			ops, missing = append(ops, OpCreate(path, data, Persistent)), true
			continue
		}
		_, begun, err := l.Cursor(ctx, s, consumer)
		switch {
		case err == nil && begun, Unreadable(err):
		case err == nil, errors.Is(err, ErrDamaged):
			s.log.Warn("A cursor says nothing; its consumer goes on with what is new", "path", path, "error", err)
			ops, missing = append(ops, OpSet(path, data, AnyVersion)), true
		default:
			return nil, err
		}
	}
	if !missing {
		return nil, nil
	}
	return ops, nil
}

// Consumers lists those that have a cursor, whatever it says.
func (l *Log) Consumers(ctx context.Context, s *Session) ([]string, error) {
	names, err := s.Children(ctx, l.dir+"/cursors")
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// SaveCursor writes how far a consumer has come, behind the fence of h, together with ops.
func (l *Log) SaveCursor(ctx context.Context, h *Held, consumer string, at LogPosition, ops ...Op) error {
	data, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("save the cursor of %s: %w", consumer, err)
	}
	path := l.cursorPath(consumer)
	_, err = h.Multi(ctx, append(slices.Clone(ops), OpSet(path, data, AnyVersion))...)
	if errors.Is(err, ErrNoNode) {
		if err = h.session.EnsurePath(ctx, l.dir+"/cursors"); err == nil {
			_, err = h.Multi(ctx, append(slices.Clone(ops), OpCreate(path, data, Persistent))...)
		}
	}
	if err != nil {
		return fmt.Errorf("save the cursor of %s: %w", consumer, err)
	}
	return nil
}

// ForgetCursor removes the cursor of a consumer that is no more; one that is gone is no error.
func (l *Log) ForgetCursor(ctx context.Context, h *Held, consumer string) error {
	err := h.Delete(ctx, l.cursorPath(consumer), AnyVersion)
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}
