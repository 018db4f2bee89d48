package recipe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"poolkeeper/configs/kit"
	"poolkeeper/configs/planted"
)

// Contender is one that stands in line for a lock, or holds it.
type Contender struct {
	// Name is that of its node in the lock's directory.
	Name string
	// Identifier is what it says of itself; often empty.
	Identifier string
	// Seq is the sequence number as it stands in the name, by which contenders are ordered.
	Seq string
	// Since is when it entered, by ZooKeeper's clock.
	Since time.Time
	// Session is the one that it lives with, which ends it at the latest.
	Session int64
}

// Contenders returns those in line for the lock of dir, the holder first. A
// directory that does not exist has none.
func Contenders(ctx context.Context, s *Session, dir string) ([]Contender, error) {
	names, err := s.Children(ctx, dir)
	if errors.Is(err, ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readContenders(ctx, s, dir, sortContenders(names, lockMark))
}

// readContenders reads what contenders say of themselves; those that have left since are left out.
func readContenders(ctx context.Context, s *Session, dir string, line []Contender) ([]Contender, error) {
	present := line[:0]
	for _, c := range line {
		data, stat, err := s.Get(ctx, joinPath(dir, c.Name))
		if errors.Is(err, ErrNoNode) {
			continue // it has left since
		}
		if err != nil {
			return nil, err
		}
		c.Session, c.Since = stat.EphemeralOwner, stat.Ctime
		c.Identifier = identifier(data)
		present = append(present, c)
	}
	return present, nil
}

// identifier is what a contender's data says of it.
func identifier(data []byte) string { return strings.ToValidUTF8(string(data), "\uFFFD") }

// Locked reports whether anybody holds the lock of dir, with one read.
func Locked(ctx context.Context, s *Session, dir string) (bool, error) {
	return LockedBy(s.Children(ctx, dir))
}

// AwaitUnlocked returns once no contender is in the lock of dir, or with the cause of the end of ctx or the session.
func AwaitUnlocked(ctx context.Context, s *Session, dir string) error {
	for {
		n, err := s.childrenWatch(ctx, dir)
		locked, err := LockedBy(n.children, err)
		if err == nil && !locked {
			return nil
		}
		if err != nil {
			waitFor(ctx, s.Clock(), lastDiscard) // the read is refused, or ctx has ended
		} else {
			select {
			case <-n.watch:
			case <-ctx.Done():
			case <-s.ctx.Done():
			}
		}
		if err := cmp.Or(context.Cause(ctx), s.cause()); err != nil {
			return err
		}
	}
}

// LockedBy is Locked for what a read of the children of dir has brought.
func LockedBy(names []string, err error) (bool, error) {
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(names, IsContender), nil
}

// IsContender reports whether name is that of a lock's contender.
func IsContender(name string) bool { return lockSeq(name) != "" }

// lockSeq returns the sequence number that follows the mark at the end of a
// contender's name, or "" if it has none.
func lockSeq(name string) string { return markedSeq(name, lockMark) }

// markedSeq is lockSeq for contenders with another mark.
func markedSeq(name, mark string) string {
	at := strings.LastIndex(name, mark)
	if at < 0 || !isSeq(name[at+len(mark):]) {
		return ""
	}
	return name[at+len(mark):]
}

// isSeq reports whether s is a sequence number: ten digits, and perhaps a minus,
// which ZooKeeper writes once the counter of a directory overflows.
func isSeq(s string) bool {
	const digits = 10
	s = strings.TrimPrefix(s, "-")
	return len(s) == digits && strings.Trim(s, "0123456789") == ""
}

// sortContenders picks the contenders with one of the marks out of the children of a lock's
// directory and sorts them by sequence number, which kazoo compares as a string.
func sortContenders(names []string, marks ...string) []Contender {
	var line []Contender
	for _, name := range names {
		for _, mark := range marks {
			if seq := markedSeq(name, mark); seq != "" {
				line = append(line, Contender{Name: name, Seq: seq})
				break
			}
		}
	}
	if planted.Bug("order") {
		slices.SortFunc(line, func(a, b Contender) int { return cmp.Compare(a.Name, b.Name) })
		return line
	}
	slices.SortFunc(line, func(a, b Contender) int {
		return cmp.Or(strings.Compare(a.Seq, b.Seq), strings.Compare(a.Name, b.Name))
	})
	return line
}

// LastingContender is the path at which a contender for the lock of dir is created, with mode
// Sequential, that no session ends: what locks records for longer than any process lives.
func LastingContender(dir string) string { return joinPath(dir, kit.RandomHex(16)+lockMark) }
