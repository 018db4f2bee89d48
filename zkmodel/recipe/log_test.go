package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

// put appends one entry together with a write of a record, and returns what that brought.
func put(ctx context.Context, l *recipe.Log, s *recipe.Session, text string, also ...recipe.Op) error {
	return l.Append(ctx, s, [][]byte{[]byte(text)}, func(ops []recipe.Op) error {
		_, err := s.Multi(ctx, append(also, ops...)...)
		return err
	})
}

// lead holds a lock, behind which a log is kept.
func lead(tb testing.TB, s *recipe.Session) *recipe.Held {
	tb.Helper()
	held, err := recipe.NewLock(s, "/leader", "").Try(patiently(tb))
	must(tb, err)
	return held
}

// all reads a log to its end.
func all(tb testing.TB, l *recipe.Log, s *recipe.Session, after recipe.LogPosition) []recipe.LogEntry {
	tb.Helper()
	r := l.Read(s, after)
	var list []recipe.LogEntry
	for {
		e, ok, err := r.Poll(patiently(tb))
		must(tb, err)
		if !ok {
			return list
		}
		list = append(list, e)
	}
}

// Mistakes: an entry lost or doubled where a segment ends while many write, one behind the
// end of a segment that readers have left, numbers that are not those of the order in
// which changes were made, a reader that stops at a segment's end.
func TestLogKeepsOrderOverSegments(t *testing.T) {
	t.Parallel()
	const clients, writers, each = 3, 6, 150 // 2,700 entries, in three segments
	root := zktest.Root(t)
	s := session(t, dial(t, root))
	reader := recipe.NewLog("/events", "").Read(s, recipe.LogPosition{})
	var group sync.WaitGroup
	for c := range clients {
		own := session(t, dial(t, root))
		log := recipe.NewLog("/events", "")
		for w := range writers {
			group.Go(func() {
				for n := range each {
					if err := put(t.Context(), log, own, fmt.Sprintf("%d.%d %d", c, w, n)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	next, zxid := map[string]int{}, int64(0)
	for i := range clients * writers * each {
		e, err := reader.Next(patiently(t))
		must(t, err)
		who, text, _ := strings.Cut(string(e.Data), " ")
		if n, _ := strconv.Atoi(text); e.Number != int64(i+1) || e.Gap != nil || n != next[who] || e.Zxid < zxid {
			t.Fatalf("entry %d is %d %q, of transaction %x after %x", i+1, e.Number, e.Data, e.Zxid, zxid)
		}
		next[who]++
		zxid = e.Zxid
	}
	group.Wait()
	if segments, err := s.Children(t.Context(), "/events/log/"+epoch(t, s)); err != nil || len(segments) < 3 {
		t.Errorf("segments %q: %v", segments, err)
	}
}

// epoch is the log's present one.
func epoch(tb testing.TB, s *recipe.Session) string {
	tb.Helper()
	data, _, err := s.Get(patiently(tb), "/events/log")
	must(tb, err)
	return string(data)
}

// Mistakes: an entry of a change that was not made, or a change without its entry; a
// number that is used up by a transaction that failed; an error that hides which step failed.
func TestLogEntryIsPartOfTheChange(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), session(t, dial(t, zktest.Root(t)))
	log := recipe.NewLog("/events", "us")
	must(t, s.EnsurePath(ctx, "/record"))
	must(t, put(ctx, log, s, "first", recipe.OpSet("/record", []byte("1"), 0)))
	want(t, put(ctx, log, s, "never", recipe.OpSet("/record", []byte("2"), 0)), recipe.ErrVersion)
	want(t, put(ctx, log, s, "never", recipe.OpSet("/nothing", nil, 0)), recipe.ErrNoNode)
	must(t, put(ctx, log, s, "second", recipe.OpSet("/record", []byte("2"), 1)))
	list := all(t, log, s, recipe.LogPosition{})
	stat, _, err := s.Exists(ctx, "/record")
	must(t, err)
	if len(list) != 2 || string(list[1].Data) != "second" || list[1].Number != 2 || list[1].Zxid != stat.Mzxid {
		t.Errorf("log %+v, record of transaction %x", list, stat.Mzxid)
	}
	called := 0
	must(t, log.Append(ctx, s, nil, func(ops []recipe.Op) error {
		called++
		if len(ops) > 0 {
			t.Errorf("nothing to append, and ops %v", ops)
		}
		return nil
	}))
	if called != 1 || log.Writer() != "us" {
		t.Errorf("called %d times, writer %q", called, log.Writer())
	}
}

// Mistakes: a segment that was ended by one that died then, which holds up all; a reader
// that waits at such an end for ever.
func TestLogSegmentEndIsFinishedByAnybody(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), session(t, dial(t, zktest.Root(t)))
	log, other := recipe.NewLog("/events", ""), recipe.NewLog("/events", "")
	must(t, put(ctx, log, s, "1"))
	must(t, put(ctx, other, s, "2"))
	segment := "/events/log/" + epoch(t, s) + "/0000000001"
	_, err := s.Set(ctx, segment, []byte("ended"), 0)
	must(t, err)
	reader := log.Read(s, recipe.LogPosition{})
	for range 2 {
		_, err := reader.Next(patiently(t))
		must(t, err)
	}
	waiting, parent := make(chan recipe.LogEntry, 1), "/events/log/"+epoch(t, s)
	go func() {
		e, _ := reader.Next(patiently(t))
		waiting <- e
	}()
	zktest.Eventually(t, func() bool {
		names, err := s.Children(ctx, parent)
		return err == nil && len(names) == 2
	}, "the reader makes the next segment")
	must(t, put(ctx, other, s, "3"))
	if e := <-waiting; e.Number != 3 || string(e.Data) != "3" {
		t.Errorf("after the end: %+v", e)
	}
}

// Mistakes: more, or less, is dropped than was asked for; a reader that hangs at what was
// dropped, or passes over it without a word; a segment that stays for ever.
func TestLogTellsGaps(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	s := session(t, dial(t, root))
	log, held := recipe.NewLog("/events", ""), lead(t, s)
	for n := range 1200 {
		must(t, put(ctx, log, s, strconv.Itoa(n+1)))
	}
	dropped, err := log.Trim(ctx, held, 1150, time.Time{})
	list := all(t, log, s, recipe.LogPosition{})
	if err != nil || dropped != 50 || len(list) != 1151 || list[0].Gap == nil || *list[0].Gap != (recipe.LogGap{First: 1, Last: 50}) || list[1].Number != 51 {
		t.Fatalf("dropped %d (%v), %d left, first %+v", dropped, err, len(list), list[0])
	}
	waiting := log.Read(s, list[len(list)-1].LogPosition) // one that has read all sees no gap
	if dropped, err = log.Trim(ctx, held, 100, time.Time{}); err != nil || dropped != 1050 {
		t.Fatalf("dropped %d: %v", dropped, err)
	}
	list = all(t, log, s, recipe.LogPosition{Epoch: epoch(t, s), Number: 10})
	if len(list) != 101 || list[0].Gap == nil || *list[0].Gap != (recipe.LogGap{First: 11, Last: 1100}) || list[1].Number != 1101 {
		t.Fatalf("%d left, first %+v %+v", len(list), list[0].Gap, list[1])
	}
	if names, err := s.Children(ctx, "/events/log/"+epoch(t, s)); err != nil || len(names) != 1 {
		t.Errorf("segments %q: %v", names, err)
	}
	must(t, put(ctx, log, s, "1201"))
	if e, err := waiting.Next(patiently(t)); err != nil || e.Number != 1201 || e.Gap != nil {
		t.Errorf("next %+v: %v", e, err)
	}
	// One that waits for entries, of which some are dropped before it looks again.
	slow := log.Read(s, recipe.LogPosition{Epoch: epoch(t, s), Number: 1201})
	brief, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	_, err = slow.Next(brief)
	cancel()
	want(t, err, context.DeadlineExceeded)
	must(t, put(ctx, log, s, "1202"))
	if e, err := slow.Next(patiently(t)); err != nil || e.Number != 1202 {
		t.Errorf("next %+v: %v", e, err)
	}
	for n := range 50 {
		must(t, put(ctx, log, s, strconv.Itoa(1203+n)))
	}
	if dropped, err = log.Trim(ctx, held, 20, time.Time{}); err != nil || dropped != 132 {
		t.Errorf("dropped %d: %v", dropped, err)
	}
	if e, err := slow.Next(patiently(t)); err != nil || e.Gap == nil || *e.Gap != (recipe.LogGap{First: 1203, Last: 1232}) {
		t.Errorf("what was dropped while it read: %+v %v", e, err)
	}
	if dropped, err = log.Trim(ctx, held, 0, time.Now().Add(time.Hour)); err != nil || dropped != 20 {
		t.Errorf("too old were %d: %v", dropped, err)
	}
	must(t, put(ctx, log, s, "1253"))
	list = all(t, log, s, recipe.LogPosition{})
	if len(list) != 2 || list[0].Gap == nil || list[1].Number != 1253 {
		t.Errorf("left %+v", list)
	}
}

// Mistakes: a cursor that goes on under a lock that was lost, or is not there the next time.
func TestLogCursors(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	s := session(t, dial(t, root))
	log, held := recipe.NewLog("/events", ""), lead(t, s)
	if _, begun, err := log.Cursor(ctx, s, "chat"); begun || err != nil {
		t.Errorf("a cursor of nobody: %v %v", begun, err)
	}
	at := recipe.LogPosition{Epoch: "000001-x", Number: 7}
	must(t, log.SaveCursor(ctx, held, "chat", at))
	if got, begun, err := log.Cursor(ctx, s, "chat"); got != at || !begun || err != nil {
		t.Errorf("cursor %v %v: %v", got, begun, err)
	}
	must(t, s.Delete(ctx, held.Path(), recipe.AnyVersion))
	if err := log.SaveCursor(ctx, held, "chat", recipe.LogPosition{}); !errors.Is(err, recipe.ErrFenceLost) {
		t.Errorf("saved without the lock: %v", err)
	}
	if got, _, err := log.Cursor(ctx, s, "chat"); err != nil || got != at {
		t.Errorf("cursor %v: %v", got, err)
	}
	// One that is empty, damaged or unreadable keeps no other from beginning.
	held = lead(t, session(t, dial(t, root)))
	must(t, put(ctx, log, s, "1"))
	must(t, s.EnsurePath(ctx, "/events/cursors/empty"))
	for _, name := range []string{"damaged", "secret"} {
		_, err := s.Create(ctx, "/events/cursors/"+name, []byte("{"), recipe.Persistent)
		must(t, err)
	}
	zktest.Forbid(t, zktest.Shared(t).Addr(), root, "/events/cursors/secret")
	must(t, log.Begin(ctx, held, "chat", "empty", "damaged", "secret", "new"))
	end, err := log.End(ctx, s)
	must(t, err)
	for name, place := range map[string]recipe.LogPosition{"chat": at, "empty": end, "damaged": end, "new": end} {
		if got, begun, err := log.Cursor(ctx, s, name); got != place || !begun || err != nil {
			t.Errorf("cursor of %s: %v %v: %v", name, got, begun, err)
		}
	}
}

// Mistakes: two entries with one number after the tree was restored from an older copy,
// readers that wait for numbers which never come, several who begin an epoch each.
func TestLogBeginsAnEpochWhenTheTreeIsRestored(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	s := session(t, dial(t, root))
	log, other := recipe.NewLog("/events", ""), recipe.NewLog("/events", "")
	for n := range 20 {
		must(t, put(ctx, []*recipe.Log{log, other}[n%2], s, strconv.Itoa(n+1)))
	}
	old := epoch(t, s)
	read := all(t, log, s, recipe.LogPosition{})
	// As the copy has it: ten entries.
	segment := "/events/log/" + old + "/0000000001"
	must(t, s.DeleteTree(ctx, segment))
	must(t, s.EnsurePath(ctx, segment))
	for n := range 10 {
		_, err := s.Create(ctx, segment+"/", []byte(strconv.Itoa(n+1)), recipe.Sequential)
		must(t, err)
	}
	after := session(t, dial(t, root)) // no session outlives that
	var group sync.WaitGroup
	for _, l := range []*recipe.Log{log, other} {
		group.Go(func() {
			if err := put(ctx, l, after, "new"); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	fresh := epoch(t, after)
	if fresh == old || !strings.HasPrefix(fresh, "000002-") {
		t.Fatalf("epoch %s after %s", fresh, old)
	}
	list := all(t, log, after, recipe.LogPosition{})
	if len(list) != 12 || list[10].LogPosition != (recipe.LogPosition{Epoch: fresh, Number: 1}) || list[11].Number != 2 {
		t.Errorf("log %+v", list)
	}
	// A reader that was ahead of the copy goes on with the new epoch.
	rest := all(t, log, after, read[len(read)-1].LogPosition)
	if len(rest) != 2 || string(rest[0].Data) != "new" {
		t.Errorf("the rest %+v", rest)
	}
}

// Mistakes: changes that fail as long as the log is not there, or may not be read.
func TestLogIsNeverInTheWay(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	s := session(t, dial(t, root))
	log := recipe.NewLog("/events", "")
	must(t, put(ctx, log, s, "1"))
	must(t, s.DeleteTree(ctx, "/events/log/"+epoch(t, s)))
	must(t, put(ctx, log, s, "2"))
	must(t, s.DeleteTree(ctx, "/events"))
	must(t, put(ctx, log, s, "3"))
	if list := all(t, log, s, recipe.LogPosition{}); len(list) != 1 || string(list[0].Data) != "3" {
		t.Errorf("log %+v", list)
	}
	allow := zktest.Forbid(t, zktest.Shared(t).Addr(), root, "/events/log")
	must(t, s.EnsurePath(ctx, "/record"))
	closed := recipe.NewLog("/events", "")
	must(t, put(ctx, closed, s, "4", recipe.OpSet("/record", nil, 0)))
	allow()
	if n := closed.Untold(); n != 1 {
		t.Errorf("%d entries are known to be missing", n)
	}
}

// Mistakes: changes that fail, or are made twice, where the log can be read and not written,
// also at the end of a segment; a number of untold entries that counts changes that failed.
func TestLogThatCannotBeWrittenIsPassedOver(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), zktest.Root(t)
	s := session(t, dial(t, root))
	log := recipe.NewLog("/events", "")
	must(t, put(ctx, log, s, "1"))
	must(t, s.EnsurePath(ctx, "/record"))
	protect := func(path string) (allow func()) {
		return zktest.Protect(t, zktest.Shared(t).Addr(), root, path)
	}
	segment := "/events/log/" + epoch(t, s) + "/0000000001"
	version := int32(0)
	try := func(l *recipe.Log, what string) {
		t.Helper()
		before := l.Untold()
		want(t, put(ctx, l, s, "never", recipe.OpSet("/record", nil, version+1)), recipe.ErrVersion)
		if err := put(ctx, l, s, "untold", recipe.OpSet("/record", nil, version)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if version++; l.Untold() != before+1 {
			t.Errorf("%s: %d entries are known to be missing", what, l.Untold()-before)
		}
	}
	allow := protect(segment)
	try(log, "a tail that is known")
	try(recipe.NewLog("/events", ""), "one that is looked for")
	_, err := session(t, dial(t, root)).Set(ctx, segment, nil, 0)
	want(t, err, recipe.ErrAuth)
	allow()
	must(t, put(ctx, log, s, "2"))
	_, err = s.Set(ctx, segment, []byte("ended"), 0)
	must(t, err)
	allow = protect("/events/log/" + epoch(t, s))
	try(log, "no next segment")
	allow()
	must(t, s.DeleteTree(ctx, "/events/log/"+epoch(t, s)))
	allow = protect("/events/log")
	try(log, "no next epoch")
	allow()
	must(t, s.DeleteTree(ctx, "/events"))
	must(t, s.EnsurePath(ctx, "/events"))
	allow = protect("/events")
	try(log, "no log")
	allow()
	must(t, put(ctx, log, s, "3"))
	if list := all(t, log, s, recipe.LogPosition{}); len(list) != 1 || string(list[0].Data) != "3" {
		t.Errorf("log %+v", list)
	}
	must(t, put(ctx, log, s, strings.Repeat("x", 2<<20), recipe.OpSet("/record", nil, version)))
}

// Mistakes: changes that fail, wait or spin as something else stands where the log should
// be; an epoch that begins with a number which there was; a reader that such a thing leads astray.
func TestLogGoesOnBesideWhatIsNoLog(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, s *recipe.Session, epoch string){
		"no epoch in its data": func(t *testing.T, s *recipe.Session, _ string) {
			t.Helper()
			_, err := s.Set(t.Context(), "/events/log", []byte("garbage"), recipe.AnyVersion)
			must(t, err)
		},
		"a path in its data": func(t *testing.T, s *recipe.Session, _ string) {
			t.Helper()
			_, err := s.Set(t.Context(), "/events/log", []byte("000007-a//b"), recipe.AnyVersion)
			must(t, err)
		},
		"no segment": func(t *testing.T, s *recipe.Session, epoch string) {
			t.Helper()
			for _, name := range []string{"99999", "-000000001", "00000000000001", "zzz"} {
				must(t, s.EnsurePath(t.Context(), "/events/log/"+epoch+"/"+name))
			}
		},
		"no epoch": func(t *testing.T, s *recipe.Session, _ string) {
			t.Helper()
			must(t, s.EnsurePath(t.Context(), "/events/log/aaa"))
			must(t, s.EnsurePath(t.Context(), "/events/log/zzz"))
		},
		"an entry of the future": func(t *testing.T, s *recipe.Session, epoch string) {
			t.Helper()
			must(t, s.EnsurePath(t.Context(), "/events/log/"+epoch+"/0000000001/0000000003"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, root := patiently(t), zktest.Root(t)
			s := session(t, dial(t, root))
			log := recipe.NewLog("/events", "")
			must(t, put(ctx, log, s, "1"))
			must(t, put(ctx, log, s, "2"))
			old := epoch(t, s)
			spoil(t, s, old)
			must(t, put(ctx, log, s, "3"))
			other := recipe.NewLog("/events", "")
			after := session(t, dial(t, root)) // which looks for the tail
			must(t, put(ctx, other, after, "4"))
			must(t, put(ctx, log, after, "5"))
			if fresh := epoch(t, s); fresh != old && !strings.HasPrefix(fresh, "000002-") {
				t.Errorf("epoch %s after %s", fresh, old)
			}
			var texts []string
			for _, e := range all(t, log, after, recipe.LogPosition{}) {
				if len(e.Data) > 0 {
					texts = append(texts, string(e.Data))
				}
			}
			want := "1 2 3 4 5"
			if name == "an entry of the future" {
				want = "1 2 4 5" // what has the number of the third hides it
			}
			if got := strings.Join(texts, " "); got != want || log.Untold() != 0 || other.Untold() != 0 {
				t.Errorf("read %s, %d entries are missing", got, log.Untold()+other.Untold())
			}
			if _, err := log.Trim(ctx, lead(t, after), 1, time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
}
