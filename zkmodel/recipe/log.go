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

	"github.com/go-zookeeper/zk"

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
	tell   Throttle

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

// Why an entry cannot be written.
var (
	errUntold     = errors.New("not told")
	errUnwritable = errors.New("no entry can be written")
	errTaken      = errors.New("something else has the number of the next entry")
	errUnsteady   = errors.New("no end of the log is found")
)

// maxTurns is how often the end of the log is looked for at most. Others may change it
// meanwhile, each a time or two; what is never found is not as a log should be.
const maxTurns = 100

// NewLog returns the log of dir, which is made with the first entry. writer is shown by
// Writer, for those who make entries.
func NewLog(dir, writer string) *Log {
	return &Log{dir: dir, writer: writer, turn: make(chan struct{}, 1)}
}

// Writer is who appends here.
func (l *Log) Writer() string { return l.writer }

// Untold is how many entries this process could not write, as the log's rights forbid it, or
// as something else stands where the log should.
func (l *Log) Untold() int64 { return l.untold.Load() }

func (l *Log) root() string { return l.dir + "/log" }

func (l *Log) epochPath(epoch string) string { return l.root() + "/" + epoch }

func (l *Log) segmentPath(epoch string, first int64) string {
	return fmt.Sprintf("%s/%010d", l.epochPath(epoch), first)
}

// Append has do write entries: do applies the ops that it is given, at the end of a
// transaction of its own. When a segment ends at that moment it is called again, with ops
// for the next one; nothing was written then. Without entries do is called with no ops.
//
// No change fails because of its entries: where the log cannot be read or written, for what
// is no fault of the connection, do is called with no ops, a warning tells why, and Untold
// counts the entries.
//
// After ErrConnectionLost of do the whole transaction may have been applied.
func (l *Log) Append(ctx context.Context, s *Session, entries [][]byte, do func(ops []Op) error) error {
	if l == nil || len(entries) == 0 {
		return do(nil)
	}
	var err error
	for range maxTurns {
		var again bool
		if again, err = l.attempt(ctx, s, entries, do); !again {
			break
		}
	}
	if err == nil || !errors.Is(err, errUntold) {
		return err
	}
	if done := do(nil); done != nil {
		return done
	}
	l.untold.Add(int64(len(entries)))
	l.tell.Warn(s.log, "A change was made without its event", "path", l.dir, "error", err)
	return nil
}

// attempt is one try of Append. The error is errUntold where nothing was written as entries
// cannot be; again says that they may be the next time.
func (l *Log) attempt(ctx context.Context, s *Session, entries [][]byte, do func(ops []Op) error) (again bool, err error) {
	tail, err := l.find(ctx, s)
	if err != nil {
		err = fmt.Errorf("append to %s: %w", l.dir, err)
		if ctx.Err() != nil || s.ctx.Err() != nil || errors.Is(err, ErrConnectionLost) {
			return false, err
		}
		return false, fmt.Errorf("%w: %w", errUntold, err)
	}
	err = do(l.ops(tail, entries))
	switch {
	case errors.Is(err, errTail):
		l.forget(tail)
		again = true
	case errors.Is(err, errTaken):
		l.fill(tail)
		again = true
	case errors.Is(err, errUnwritable), errors.Is(err, ErrTooLarge):
	default:
		return false, err
	}
	return again, fmt.Errorf("%w: %w", errUntold, err)
}

// ops appends entries to a segment that must not have ended.
func (l *Log) ops(t logTail, entries [][]byte) []Op {
	path := l.segmentPath(t.epoch, t.first)
	check := OpCheck(path, 0)
	check.failed = appendFailed
	ops := []Op{check}
	for _, data := range entries {
		op := OpCreate(path+"/", data, Sequential)
		op.failed = appendFailed
		op.made = func(path string) { l.made(t, path) }
		ops = append(ops, op)
	}
	return ops
}

// appendFailed is what it means that a step which appends has failed: never that the change
// cannot be made.
func appendFailed(theirs error) error {
	switch {
	case errors.Is(theirs, zk.ErrBadVersion), errors.Is(theirs, zk.ErrNoNode):
		return errTail
	case errors.Is(theirs, zk.ErrNodeExists):
		return errTaken
	}
	return fmt.Errorf("%w: %s", errUnwritable, theirs.Error())
}

// made notes an entry that was written.
func (l *Log) made(t logTail, path string) {
	_, name := splitPath(path)
	seq, err := strconv.ParseInt(name, 10, 64)
	if err != nil {
		return
	}
	l.seen(LogPosition{t.epoch, t.first + seq})
	if seq+1 >= SegmentSize {
		l.fill(t)
	}
}

// fill notes that a segment is to end.
func (l *Log) fill(t logTail) {
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
	for range maxTurns {
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
		if _, ok := epochNumber(epoch); !ok { // there is none, or something else
			if err := l.restore(ctx, s, stat.Version); err != nil {
				return logTail{}, err
			}
			continue
		}
		t, end, err := l.lastSegment(ctx, s, epoch, stat.Version)
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
	return logTail{}, fmt.Errorf("read %s: %w", l.root(), errUnsteady)
}

// failure is why a read did not end.
func (s *Session) failure(ctx context.Context) error {
	return cmp.Or(context.Cause(ctx), s.cause(), ErrConnectionLost)
}

// lastSegment returns the open segment of an epoch and the number behind its last entry.
// One that has ended gets its successor while the head has version, so that no epoch grows
// behind which there is another; errTail says to look again.
func (l *Log) lastSegment(ctx context.Context, s *Session, epoch string, version int32) (logTail, int64, error) {
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
	return logTail{}, 0, cmp.Or(l.succeed(ctx, s, epoch, end, version), errTail)
}

// succeed makes the successor of a segment that has ended, if nobody has since version was the head's.
func (l *Log) succeed(ctx context.Context, s *Session, epoch string, end int64, version int32) error {
	_, err := s.Multi(ctx, OpCheck(l.root(), version), OpCreate(l.segmentPath(epoch, end), nil, Persistent))
	if errors.Is(err, ErrVersion) || errors.Is(err, ErrNodeExists) || errors.Is(err, ErrNoNode) || errors.Is(err, ErrConnectionLost) {
		return nil // the next look sees what it is
	}
	return err
}

// restore goes on with the last epoch that there is, or begins the first.
func (l *Log) restore(ctx context.Context, s *Session, version int32) error {
	epochs, err := l.epochs(ctx, s)
	if err != nil {
		return err
	}
	if len(epochs) == 0 {
		return l.begin(ctx, s, version, logTail{})
	}
	_, err = s.Set(ctx, l.root(), []byte(epochs[len(epochs)-1]), version)
	if errors.Is(err, ErrVersion) || errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// begin begins an epoch behind all that there are, and that of t, and ends the segment t if it has one. Only one of
// those who try succeeds, as version is that of the head; the others see what it has begun.
func (l *Log) begin(ctx context.Context, s *Session, version int32, t logTail) error {
	epochs, err := l.epochs(ctx, s)
	if err != nil {
		return err
	}
	number := 0
	for _, epoch := range append(epochs, t.epoch, l.last().Epoch) {
		n, _ := epochNumber(epoch)
		number = max(number, n)
	}
	number++
	epoch := fmt.Sprintf("%06d-%s", number, kit.RandomHex(4))
	ops := []Op{
		OpSet(l.root(), []byte(epoch), version),
		OpCreate(l.epochPath(epoch), nil, Persistent),
		OpCreate(l.segmentPath(epoch, 1), nil, Persistent),
	}
	if t.first != 0 {
		ops = append(ops, OpSet(l.segmentPath(t.epoch, t.first), []byte("ended"), 0))
	}
	_, err = s.Multi(ctx, ops...)
	if errors.Is(err, ErrVersion) || errors.Is(err, ErrConnectionLost) || errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// epochs lists the epochs, the oldest first. What else stands beside them is passed over.
func (l *Log) epochs(ctx context.Context, s *Session) ([]string, error) {
	names, err := s.Children(ctx, l.root())
	names = slices.DeleteFunc(names, func(name string) bool {
		_, ok := epochNumber(name)
		return !ok
	})
	slices.Sort(names)
	return names, err
}

// epochNumber is the number that an epoch has in front; ok says whether it is one at all.
func epochNumber(epoch string) (number int, ok bool) {
	digits, rest, _ := strings.Cut(epoch, "-")
	if len(digits) < 6 || strings.Trim(digits, "0123456789") != "" || rest == "" || strings.ContainsRune(rest, '/') {
		return 0, false
	}
	number, err := strconv.Atoi(digits)
	return number, err == nil
}

// segments lists the first numbers of an epoch's segments, in order.
func (l *Log) segments(ctx context.Context, s *Session, epoch string) ([]int64, error) {
	names, err := s.Children(ctx, l.epochPath(epoch))
	return numbers(names), err
}

// numbers are the names that are numbers as ZooKeeper writes them, in order.
func numbers(names []string) []int64 {
	var list []int64
	for _, name := range names {
		n, err := strconv.ParseInt(name, 10, 64)
		if err == nil && n >= 0 && name == fmt.Sprintf("%010d", n) {
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
