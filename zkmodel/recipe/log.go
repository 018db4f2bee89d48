package recipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"poolkeeper/configs/kit"
)

// SegmentSize is after how many entries a segment of a Log ends.
const SegmentSize = 1000

// Log is a numbered log that many processes append to, each entry in the transaction of
// the change that it tells of, and that many read, each at its own pace.
//
// Below its directory are log/EPOCH/SEGMENT/ENTRY: an entry is a sequential node, and its
// number that of the segment, which is the number of its first entry, and the entry's
// own. Appending to a segment checks that it has not ended, in the same transaction; so
// what is written behind its end comes in the next one, and a reader that has seen the
// end has seen all.
//
// An epoch begins anew when the log has gone back behind what this process has seen of it:
// the tree was restored from a copy. Numbers say which entry it is only with their epoch.
//
// One Log serves all sessions of a Client. Its methods are safe for several goroutines.
type Log struct {
	dir    string
	writer string
	turn   chan struct{} // held by who looks for the tail

	untold atomic.Int64

	mu   sync.Mutex
	tail logTail
	high LogPosition // the last entry that was seen
}

// LogPosition names an entry of a Log. The zero value is before the first.
type LogPosition struct {
	Epoch  string `json:"epoch"`
	Number int64  `json:"number"`
}

// String is "EPOCH-NUMBER", which no other entry ever has.
func (p LogPosition) String() string { return fmt.Sprintf("%s-%d", p.Epoch, p.Number) }

// Before reports whether p is before q. Epochs have their number in front.
func (p LogPosition) Before(q LogPosition) bool {
	return cmp.Or(strings.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Number, q.Number)) < 0
}

// logTail is the segment that is appended to, as a session has found it.
type logTail struct {
	session *Session
	epoch   string
	first   int64 // of the segment
	full    bool  // it is to end
}

// errTail says that a segment has ended, or is gone, so that nothing was written.
var errTail = errors.New("the segment has ended")

// NewLog returns the log of dir, which is made with the first entry. writer is shown by
// Writer, for those who make entries.
func NewLog(dir, writer string) *Log {
	return &Log{dir: dir, writer: writer, turn: make(chan struct{}, 1)}
}

// Writer is who appends here.
func (l *Log) Writer() string { return l.writer }

// Untold is how many entries this process could not write because of the log's rights.
func (l *Log) Untold() int64 { return l.untold.Load() }

func (l *Log) root() string { return l.dir + "/log" }

func (l *Log) epochPath(epoch string) string { return l.root() + "/" + epoch }

func (l *Log) segmentPath(epoch string, first int64) string {
	return fmt.Sprintf("%s/%010d", l.epochPath(epoch), first)
}

// Append has do write entries: do applies the ops that it is given, at the end of a
// transaction of its own. When a segment ends at that moment it is called again, with ops
// for the next one; nothing was written then. Without entries do is called with no ops;
// also where the log cannot be read because of its rights: no change waits for that, and
// Untold counts such entries.
//
// After ErrConnectionLost of do the whole transaction may have been applied.
func (l *Log) Append(ctx context.Context, s *Session, entries [][]byte, do func(ops []Op) error) error {
	if l == nil || len(entries) == 0 {
		return do(nil)
	}
	for {
		tail, err := l.find(ctx, s)
		if Unreadable(err) {
			l.untold.Add(int64(len(entries)))
			return do(nil)
		}
		if err != nil {
			return fmt.Errorf("append to %s: %w", l.dir, err)
		}
		err = do(l.ops(tail, entries))
		if !errors.Is(err, errTail) {
			return err
		}
		l.forget(tail)
	}
}

// ops appends entries to a segment that must not have ended.
func (l *Log) ops(t logTail, entries [][]byte) []Op {
	path := l.segmentPath(t.epoch, t.first)
	check := OpCheck(path, 0)
	check.failed = errTail
	ops := []Op{check}
	for _, data := range entries {
		op := OpCreate(path+"/", data, Sequential)
		op.failed = errTail
		op.made = func(path string) { l.made(t, path) }
		ops = append(ops, op)
	}
	return ops
}

// made notes an entry that was written.
func (l *Log) made(t logTail, path string) {
	_, name := splitPath(path)
	seq, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return
	}
	l.seen(LogPosition{t.epoch, t.first + seq})
	if seq+1 < SegmentSize {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tail.epoch == t.epoch && l.tail.first == t.first {
		l.tail.full = true
	}
}

// seen notes that there is an entry.
func (l *Log) seen(p LogPosition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.high.Before(p) {
		l.high = p
	}
}

// last is the youngest entry that was seen.
func (l *Log) last() LogPosition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.high
}

// known is the tail as it was found in this session.
func (l *Log) known(s *Session) (logTail, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tail, l.tail.session == s
}

// forget has the tail looked for again.
func (l *Log) forget(t logTail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tail.epoch == t.epoch && l.tail.first == t.first {
		l.tail = logTail{}
	}
}

// find returns the segment to append to. It reads the tree once a session and once a segment.
func (l *Log) find(ctx context.Context, s *Session) (logTail, error) {
	if t, ok := l.known(s); ok && !t.full {
		return t, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return logTail{}, context.Cause(ctx)
	}
	t, ok := l.known(s)
	if ok && !t.full {
		return t, nil
	}
	if ok {
		if err := l.seal(ctx, s, t); err != nil {
			return logTail{}, err
		}
	}
	t, err := l.look(ctx, s)
	if err != nil {
		return logTail{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = t
	return t, nil
}

// seal ends a segment. One that has ended, or is gone, is no error.
func (l *Log) seal(ctx context.Context, s *Session, t logTail) error {
	_, err := s.Set(ctx, l.segmentPath(t.epoch, t.first), []byte("ended"), 0)
	if errors.Is(err, ErrVersion) || errors.Is(err, ErrNoNode) || errors.Is(err, ErrConnectionLost) {
		return nil // the next look sees what it is
	}
	return err
}

// look reads the tail, and makes it where it is missing.
func (l *Log) look(ctx context.Context, s *Session) (logTail, error) {
	synced := false
	for {
		high := l.last() // before the rest, which then shows at least that
		head, stat, err := s.Get(ctx, l.root())
		if errors.Is(err, ErrNoNode) {
			if err := s.EnsurePath(ctx, l.root()); err != nil {
				return logTail{}, err
			}
			continue
		}
		if err != nil {
			return logTail{}, err
		}
		epoch := string(head)
		if epoch == "" {
			if err := l.begin(ctx, s, stat.Version, logTail{}); err != nil {
				return logTail{}, err
			}
			continue
		}
		t, end, err := l.lastSegment(ctx, s, epoch)
		switch {
		case errors.Is(err, errTail):
			continue
		case errors.Is(err, ErrNoNode): // it was removed by hand
			if err := l.begin(ctx, s, stat.Version, logTail{epoch: epoch}); err != nil {
				return logTail{}, err
			}
			continue
		case err != nil:
			return logTail{}, err
		}
		if !(LogPosition{epoch, end - 1}).Before(high) {
			return t, nil
		}
		if !synced { // is it the tree that is old, or only the server?
			if synced = true; s.Sync(ctx) != nil {
				return logTail{}, s.failure(ctx)
			}
			continue
		}
		if err := l.begin(ctx, s, stat.Version, t); err != nil {
			return logTail{}, err
		}
	}
}

// failure is why a read did not end.
func (s *Session) failure(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), s.cause(), ErrConnectionLost)
}

// lastSegment returns the open segment of an epoch and the number behind its last entry.
// One that has ended gets its successor, and errTail says to look again.
func (l *Log) lastSegment(ctx context.Context, s *Session, epoch string) (logTail, int64, error) {
	firsts, err := l.segments(ctx, s, epoch)
	if err == nil && len(firsts) == 0 {
		err = fmt.Errorf("read %s: %w: it has no segment", l.epochPath(epoch), ErrNoNode)
	}
	if err != nil {
		return logTail{}, 0, err
	}
	t := logTail{session: s, epoch: epoch, first: firsts[len(firsts)-1]}
	stat, there, err := s.Exists(ctx, l.segmentPath(epoch, t.first))
	if err != nil {
		return logTail{}, 0, err
	}
	if !there {
		return logTail{}, 0, errTail
	}
	end := t.first + created(stat)
	switch {
	case stat.Version == 0:
		return t, end, nil
	case end == t.first: // ended by hand: it cannot have a successor
		return logTail{}, 0, fmt.Errorf("read %s: %w", l.epochPath(epoch), ErrNoNode)
	}
	_, err = s.Create(ctx, l.segmentPath(epoch, end), nil, Persistent)
	if err == nil || errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) || errors.Is(err, ErrConnectionLost) {
		err = errTail
	}
	return logTail{}, 0, err
}

// begin begins an epoch behind that of t, and ends the segment t if it has one. Only one of those who try
// succeeds, as version is that of the head; the others see what it has begun.
func (l *Log) begin(ctx context.Context, s *Session, version int32, t logTail) error {
	number := 1
	if t.epoch != "" {
		digits, _, _ := strings.Cut(t.epoch, "-")
		n, err := strconv.Atoi(digits)
		if err != nil {
			return fmt.Errorf("begin an epoch behind %q: %w", t.epoch, ErrBadPath)
		}
		number = n + 1
	}
	epoch := fmt.Sprintf("%06d-%s", number, kit.RandomHex(4))
	ops := []Op{
		OpSet(l.root(), []byte(epoch), version),
		OpCreate(l.epochPath(epoch), nil, Persistent),
		OpCreate(l.segmentPath(epoch, 1), nil, Persistent),
	}
	if t.first != 0 {
		ops = append(ops, OpSet(l.segmentPath(t.epoch, t.first), []byte("ended"), 0))
	}
	_, err := s.Multi(ctx, ops...)
	if errors.Is(err, ErrVersion) || errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// epochs lists the epochs, the oldest first.
func (l *Log) epochs(ctx context.Context, s *Session) ([]string, error) {
	names, err := s.Children(ctx, l.root())
	slices.Sort(names)
	return names, err
}

// segments lists the first numbers of an epoch's segments, in order.
func (l *Log) segments(ctx context.Context, s *Session, epoch string) ([]int64, error) {
	names, err := s.Children(ctx, l.epochPath(epoch))
	return numbers(names), err
}

// numbers are the names that are numbers, in order.
func numbers(names []string) []int64 {
	var list []int64
	for _, name := range names {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// created is how many children a node has had. ZooKeeper numbers sequential children by
// it, and its Cversion counts each deletion on top.
func created(stat Stat) int64 { return (int64(stat.Cversion) + int64(stat.NumChildren)) / 2 }

// SequentialName is the name that ZooKeeper gives the next sequential child of a node with
// an empty prefix.
func SequentialName(parent Stat) string { return fmt.Sprintf("%010d", created(parent)) }
