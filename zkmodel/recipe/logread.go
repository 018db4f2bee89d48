package recipe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"
)

// lookAgain is after how long a reader that waits looks whether it has missed something.
const lookAgain = time.Minute

// LogEntry is one entry of a Log, or tells of entries that are gone.
type LogEntry struct {
	LogPosition
	Data []byte
	// Time is the server's clock when it was written, Zxid the transaction that wrote it.
	Time time.Time
	Zxid int64
	// Gap, where it is set, says that entries were dropped before they were read. The
	// position is that of the last of them.
	Gap *LogGap
}

// LogGap are entries that are gone, of one epoch.
type LogGap struct {
	First int64
	Last  int64 // 0 when nobody knows, as the epoch is gone
}

// LogReader reads a Log from a position on. It is for one goroutine and one session.
type LogReader struct {
	log     *Log
	session *Session
	epoch   string // "" before the first
	next    int64  // the number to be read next
	first   int64  // of the segment that has it; 0 when that is not known
	whole   bool   // the entry before next was just read: next is not dropped, then
	ended   <-chan zk.Event
	lost    []LogEntry // what was found to be gone, and is not told yet
}

// Read returns a reader of what comes after a position.
func (l *Log) Read(s *Session, after LogPosition) *LogReader {
	r := &LogReader{log: l, session: s, epoch: after.Epoch, next: after.Number + 1}
	return r
}

// Next returns the next entry, and waits for it until ctx or the session ends.
func (r *LogReader) Next(ctx context.Context) (LogEntry, error) {
	for {
		e, ok, wait, err := r.step(ctx, true)
		switch {
		case err != nil:
			return LogEntry{}, fmt.Errorf("read %s: %w", r.log.dir, err)
		case ok:
			return e, nil
		case wait == nil:
			continue
		}
		if err := r.await(ctx, wait); err != nil {
			return LogEntry{}, fmt.Errorf("read %s: %w", r.log.dir, err)
		}
	}
}

// Poll returns the next entry if there is one.
func (r *LogReader) Poll(ctx context.Context) (LogEntry, bool, error) {
	for {
		e, ok, wait, err := r.step(ctx, false)
		if err != nil {
			return LogEntry{}, false, fmt.Errorf("read %s: %w", r.log.dir, err)
		}
		if ok || wait != nil {
			return e, ok, nil
		}
	}
}

// await returns when one of wait tells of a change.
func (r *LogReader) await(ctx context.Context, wait []<-chan zk.Event) error {
	timer := r.session.Clock().NewTimer(lookAgain)
	defer timer.Stop()
	var other <-chan zk.Event
	if len(wait) > 1 {
		other = wait[1]
	}
	select {
	case <-wait[0]:
	case <-other:
		r.ended = nil
	case <-timer.C:
		r.whole = false
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.session.ctx.Done():
		return r.session.cause()
	}
	return nil
}

// step goes one step on: to an entry, or to where there is nothing, which is what wait
// is not nil for: what tells of something new. Neither says to take another step.
func (r *LogReader) step(ctx context.Context, watch bool) (e LogEntry, ok bool, wait []<-chan zk.Event, err error) {
	switch {
	case r.epoch == "":
		wait, err = r.enter(ctx, watch)
	case r.first == 0:
		err = r.locate(ctx)
	default:
		e, ok, wait, err = r.entry(ctx, watch)
	}
	return e, ok, wait, err
}

// enter goes to the first epoch that there is.
func (r *LogReader) enter(ctx context.Context, watch bool) ([]<-chan zk.Event, error) {
	epochs, err := r.log.epochs(ctx, r.session)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	if len(epochs) > 0 {
		r.epoch, r.next, r.first, r.whole = epochs[0], 1, 0, false
		return nil, nil
	}
	if !watch {
		return []<-chan zk.Event{nil}, nil
	}
	if errors.Is(err, ErrNoNode) {
		n, err := r.session.existsWatch(ctx, r.log.root())
		if err != nil || n.exists {
			return nil, err
		}
		return []<-chan zk.Event{n.watch}, nil
	}
	n, err := r.session.childrenWatch(ctx, r.log.root())
	if err != nil || len(n.children) > 0 {
		return nil, err
	}
	return []<-chan zk.Event{n.watch}, nil
}

// locate finds the segment that has the next entry.
func (r *LogReader) locate(ctx context.Context) error {
	r.ended, r.whole = nil, false
	firsts, err := r.log.segments(ctx, r.session, r.epoch)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return err
	}
	if len(firsts) == 0 {
		return r.leave(ctx)
	}
	at, exact := slices.BinarySearch(firsts, r.next)
	switch {
	case exact:
		r.first = r.next
	case at > 0:
		r.first = firsts[at-1]
	default:
		r.first = firsts[0]
		r.miss(firsts[0])
	}
	return nil
}

// leave goes from an epoch that is gone to the one behind it, or to where a log that was
// removed as a whole is made anew.
func (r *LogReader) leave(ctx context.Context) error {
	gone := LogEntry{LogPosition: LogPosition{r.epoch, r.next}, Gap: &LogGap{First: r.next}}
	moved, err := r.nextEpoch(ctx)
	if err != nil {
		return err
	}
	if !moved {
		r.epoch, r.next = "", 1
	}
	r.lost = append(r.lost, gone)
	return nil
}

// nextEpoch goes to the epoch behind this one, if there is one.
func (r *LogReader) nextEpoch(ctx context.Context) (bool, error) {
	epochs, err := r.log.epochs(ctx, r.session)
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at, found := slices.BinarySearch(epochs, r.epoch)
	if found {
		at++
	}
	if at == len(epochs) {
		return false, nil
	}
	r.epoch, r.next, r.first, r.whole, r.ended = epochs[at], 1, 0, false, nil
	return true, nil
}

// miss notes that all entries before a number are gone, and goes on with that one.
func (r *LogReader) miss(to int64) {
	if at := len(r.lost) - 1; at >= 0 && r.lost[at].Epoch == r.epoch {
		r.lost[at].Number, r.lost[at].Gap.Last = to-1, to-1
	} else {
		r.lost = append(r.lost, LogEntry{LogPosition: LogPosition{r.epoch, to - 1}, Gap: &LogGap{First: r.next, Last: to - 1}})
	}
	r.next = to
}

// gap is the first of what was missed, which is told once.
func (r *LogReader) gap() LogEntry {
	e := r.lost[0]
	r.lost = r.lost[1:]
	return e
}

// entry reads the next entry of the segment.
func (r *LogReader) entry(ctx context.Context, watch bool) (LogEntry, bool, []<-chan zk.Event, error) {
	segment := r.log.segmentPath(r.epoch, r.first)
	path := fmt.Sprintf("%s/%010d", segment, r.next-r.first)
	data, stat, err := r.session.Get(ctx, path)
	if err == nil && len(r.lost) > 0 {
		return r.gap(), true, nil, nil
	}
	if err == nil {
		e := LogEntry{LogPosition: LogPosition{r.epoch, r.next}, Data: data, Time: stat.Ctime, Zxid: stat.Czxid}
		r.log.seen(e.LogPosition)
		r.next++
		r.whole = true
		return e, true, nil, nil
	}
	if !errors.Is(err, ErrNoNode) {
		return LogEntry{}, false, nil, err
	}
	// It may come, or was dropped: also behind one that was just read, if that took long.
	if on, err := r.passed(ctx, segment, watch); on || err != nil {
		return LogEntry{}, false, nil, err
	}
	if len(r.lost) > 0 {
		return r.gap(), true, nil, nil
	}
	if !watch {
		return LogEntry{}, false, []<-chan zk.Event{nil}, nil
	}
	n, err := r.session.existsWatch(ctx, path)
	if err != nil || n.exists {
		return LogEntry{}, false, nil, err
	}
	return LogEntry{}, false, []<-chan zk.Event{n.watch, r.ended}, nil
}

// passed looks whether the next entry, which is not there, will never be: it was dropped,
// or the segment has ended before it. on says that there is something to go on with.
func (r *LogReader) passed(ctx context.Context, segment string, watch bool) (on bool, err error) {
	stat, there, err := r.segment(ctx, segment, watch)
	if err != nil {
		return false, err
	}
	if !there {
		r.first = 0
		return true, nil
	}
	end := r.first + created(stat)
	switch {
	case r.next < end && r.whole: // written since
		r.whole = false
		return true, nil
	case r.next < end:
		return true, r.dropped(ctx, segment, end)
	case stat.Version == 0:
		r.whole = true // all that there is was read
		return false, nil
	}
	return true, r.turn(ctx, end)
}

// segment is the Stat of a segment; with watch, r.ended tells when it ends.
func (r *LogReader) segment(ctx context.Context, path string, watch bool) (Stat, bool, error) {
	if !watch || r.ended != nil {
		return r.session.Exists(ctx, path)
	}
	n, err := r.session.getWatch(ctx, path)
	if errors.Is(err, ErrNoNode) {
		return Stat{}, false, nil
	}
	if err != nil {
		return Stat{}, false, err
	}
	r.ended = n.watch
	return n.stat, true, nil
}

// dropped passes over the entries that a segment has no more, up to the first that it has.
func (r *LogReader) dropped(ctx context.Context, segment string, end int64) error {
	names, err := r.session.Children(ctx, segment)
	if errors.Is(err, ErrNoNode) {
		r.first = 0
		return nil
	}
	if err != nil {
		return err
	}
	to := end
	for _, seq := range numbers(names) {
		if n := r.first + seq; n >= r.next {
			to = n
			break
		}
	}
	if to > r.next { // else it was written between the two looks
		r.miss(to)
	}
	return nil
}

// turn goes from a segment that has ended to what follows: the next segment, or the next
// epoch. While there is neither the segment's successor is made, as a writer would.
func (r *LogReader) turn(ctx context.Context, end int64) error {
	head, _, err := r.session.Exists(ctx, r.log.root()) // before the epochs, which then show at least its own
	if err != nil {
		return err
	}
	firsts, err := r.log.segments(ctx, r.session, r.epoch)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return err
	}
	r.whole = false
	if len(firsts) > 0 && firsts[len(firsts)-1] > r.first {
		r.first = 0
		return nil
	}
	if moved, err := r.nextEpoch(ctx); moved || err != nil || end == r.first {
		return err
	}
	return r.log.succeed(ctx, r.session, r.epoch, end, head.Version)
}

// End is the position of the last entry of a log; the zero value where there is none.
func (l *Log) End(ctx context.Context, s *Session) (LogPosition, error) {
	epochs, err := l.epochs(ctx, s)
	if errors.Is(err, ErrNoNode) {
		return LogPosition{}, nil
	}
	for _, epoch := range slices.Backward(epochs) {
		firsts, lerr := l.segments(ctx, s, epoch)
		if lerr != nil || len(firsts) == 0 {
			err = lerr
			continue
		}
		first := firsts[len(firsts)-1]
		stat, _, serr := s.Exists(ctx, l.segmentPath(epoch, first))
		return LogPosition{epoch, first + created(stat) - 1}, serr
	}
	return LogPosition{}, err
}
