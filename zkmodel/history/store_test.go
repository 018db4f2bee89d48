package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// newStore is an open Store at a fixed time.
func newStore(tb testing.TB, path string, limits Limits) *Store {
	tb.Helper()
	s := New(path, limits, hclog.NewNullLogger())
	s.now = func() time.Time { return noon }
	if err := s.Open(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// ended is a node that ended some time before noon.
func ended(id int, ago time.Duration, outcome Outcome) Change {
	at := noon.Add(-ago)
	return Change{Over: true, Entry: &Entry{
		Kind: Node, ID: fmt.Sprintf("%010d", id), Became: "deleting", Outcome: outcome, Begun: at.Add(-time.Hour), Ended: at, Gone: at,
		Provider: fmt.Sprintf("cloud-%d", id%2), Labels: []string{fmt.Sprintf("label-%d", id%3)},
		Times: []Moment{{"building", at.Add(-time.Hour)}, {"in-use", at.Add(-time.Minute)}},
	}}
}

func write(tb testing.TB, s *Store, changes ...Change) {
	tb.Helper()
	if err := s.Write(changes, nil); err != nil {
		tb.Fatal(err)
	}
}

func find(tb testing.TB, s *Store, q Query) *Answer {
	tb.Helper()
	if q.Until.IsZero() {
		q.Until = noon.Add(time.Hour)
	}
	a, err := s.Find(q)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func ids(a *Answer) string {
	var list []string
	for _, e := range a.Entries {
		list = append(list, strings.TrimLeft(e.ID, "0"))
	}
	return strings.Join(list, " ")
}

// Mistakes: a file that grows without anybody being told; an oldest entry that went long ago; errors of a file that is gone, told as size 0.
func TestFigures(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "history.db"), DefaultLimits)
	if f, err := s.Figures(); err != nil || f.Entries != 0 || !f.Oldest.IsZero() || f.Bytes == 0 {
		t.Errorf("an empty file: %+v, %v", f, err)
	}
	write(t, s, ended(1, 29*24*time.Hour, Succeeded), ended(2, time.Hour, Failed))
	if f, err := s.Figures(); err != nil || f.Entries != 2 || !f.Oldest.Equal(noon.Add(-29*24*time.Hour)) {
		t.Errorf("two entries: %+v, %v", f, err)
	}
	s.now = func() time.Time { return noon.Add(2 * 24 * time.Hour) }
	write(t, s)
	if f, err := s.Figures(); err != nil || f.Entries != 1 || !f.Oldest.Equal(noon.Add(-time.Hour)) {
		t.Errorf("after two days: %+v, %v", f, err)
	}
	(&Recorder{Deps: Deps{Store: s, Logger: hclog.NewNullLogger()}}).tell(errors.New("disk is full"))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(s)
	told := func() (names []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			names = append(names, strings.TrimPrefix(f.GetName(), "poolkeeper_history_"))
			if f.GetName() == "poolkeeper_history_write_errors_total" && f.GetMetric()[0].GetCounter().GetValue() != 1 {
				t.Error("the error is not counted")
			}
		}
		return names
	}
	if got := strings.Join(told(), " "); got != "bytes entries oldest_timestamp_seconds write_errors_total" {
		t.Errorf("metrics: %s", got)
	}
	s.Close()
	if got := strings.Join(told(), " "); got != "write_errors_total" {
		t.Errorf("metrics without a file: %s", got)
	}
}

// Mistakes: a filter that is not heeded, a page that repeats or misses one, an entry that is
// there twice because it was written twice, counts in the wrong bucket.
func TestFind(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "a", "history.db"), DefaultLimits)
	var all []Change
	for id := 1; id <= 9; id++ {
		outcome := Succeeded
		if id%4 == 0 {
			outcome = Failed
		}
		all = append(all, ended(id, time.Duration(id)*time.Hour, outcome))
	}
	write(t, s, all...)
	all[2].Entry.Reason = "later"
	write(t, s, all[2])
	for want, q := range map[string]Query{
		"1 2 3 4 5 6 7 8 9": {},
		"4 8":               {Outcome: Failed},
		"1 3 5 7 9":         {Provider: "cloud-1"},
		"3 6 9":             {Label: "label-0"},
		"5":                 {ID: "0000000005"},
		"2 3":               {Since: noon.Add(-3 * time.Hour), Until: noon.Add(-90 * time.Minute)},
		"":                  {Kinds: []Kind{Build, Upload}},
		"1 2":               {Was: "in-use", Limit: 2},
	} {
		if q.Limit == 0 {
			q.Limit = 100
		}
		if got := ids(find(t, s, q)); got != want {
			t.Errorf("%+v finds %q, want %q", q, got, want)
		}
	}
	if a := find(t, s, Query{Limit: 100}); a.Entries[2].Reason != "later" {
		t.Error("what was written later is lost")
	}
	var pages []string
	q := Query{Limit: 4, Since: noon.Add(-10 * time.Hour), Buckets: 11}
	for more := true; more; more = q.Before != "" {
		a := find(t, s, q)
		if len(pages) == 0 && (a.Counts[2].Failed != 1 || a.Counts[1].Succeeded != 1 || a.Counts[10].Succeeded != 0 || len(a.Counts) != 11) {
			t.Errorf("counts %+v", a.Counts)
		}
		pages, q.Before = append(pages, ids(a)), a.Next
	}
	if got := strings.Join(pages, "|"); got != "1 2 3 4|5 6 7 8|9" {
		t.Errorf("pages %s", got)
	}
	if _, err := s.Find(Query{Before: "x"}); err == nil {
		t.Error("what is no place is taken for one")
	}
	if err := s.Write(nil, []Gap{{noon.Add(-5 * time.Hour), noon.Add(-4 * time.Hour), "the daemon did not run"}}); err != nil {
		t.Fatal(err)
	}
	if a := find(t, s, Query{Since: noon.Add(-270 * time.Minute)}); len(a.Gaps) != 1 || !a.Begun.Equal(noon) {
		t.Errorf("gaps %+v since %s", a.Gaps, a.Begun)
	}
	if a := find(t, s, Query{Since: noon.Add(-3 * time.Hour)}); len(a.Gaps) != 0 {
		t.Errorf("gaps %+v", a.Gaps)
	}
}

// Mistakes: a file that grows for ever, what is newest that goes, the old that stays.
func TestBounds(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "history.db"), Limits{Age: 30 * 24 * time.Hour, Bytes: 4 << 20, Count: 3000})
	write(t, s, ended(1, 31*24*time.Hour, Succeeded), ended(2, 29*24*time.Hour, Succeeded))
	if got := ids(find(t, s, Query{Limit: 9})); got != "2" {
		t.Errorf("of two, %q is young enough", got)
	}
	long := strings.Repeat("x", maxText)
	for round := range 18 {
		var some []Change
		for i := range 300 {
			c := ended(10+300*round+i, time.Hour-time.Duration(300*round+i)*time.Millisecond, None)
			if round > 11 {
				c.Entry.Reason, c.Entry.Tenant, c.Entry.Requestor, c.Entry.EventID = long, long, long, long
			}
			some = append(some, c)
		}
		write(t, s, some...)
		a := find(t, s, Query{Limit: 1, Buckets: 1, Since: noon.Add(-60 * 24 * time.Hour)})
		if n := a.Counts[0].None; n > 3000 || round == 11 && n < 2900 || a.Entries[0].ID != fmt.Sprintf("%010d", 10+300*round+299) {
			t.Errorf("round %d: %d entries, the youngest %s", round, n, a.Entries[0].ID)
		}
	}
	info, err := os.Stat(s.Path())
	if err != nil || info.Size() > 4<<20 {
		t.Errorf("the file has %d bytes: %v", info.Size(), err)
	}
}

// A file that another process has is left alone; one that is damaged is set aside, wherever and
// whenever that shows, and never takes the process along.
func TestDamagedFilesAreSetAside(t *testing.T) {
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.db")
	s := newStore(t, whole, DefaultLimits)
	for i := range 60 {
		write(t, s, ended(2*i, time.Hour, Succeeded), ended(2*i+1, time.Minute, Failed))
	}
	other := New(whole, DefaultLimits, hclog.NewNullLogger())
	if err := other.Open(); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a file that is in use: %v", err)
	}
	s.Close()
	if err := s.Write(nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("without a file: %v", err)
	}
	good, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	damages := map[string][]byte{"text": []byte("what is no file of ours, and long enough to be one\n"), "short": good[:5000], "half": good[:len(good)/2]}
	for page := 0; page < len(good)/4096; page += 1 + len(good)/4096/12 {
		bad := append([]byte(nil), good...)
		for i := range 4096 {
			bad[page*4096+i] = byte(i*7 + page)
		}
		damages[fmt.Sprint("page ", page)] = bad
	}
	damages["free pages far away"] = farAway(good)
	begunAnew := 0
	for name, data := range damages {
		path := filepath.Join(dir, name+".db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s := New(path, DefaultLimits, hclog.NewNullLogger())
		s.now = func() time.Time { return noon }
		if err := s.Open(); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Write([]Change{ended(1, time.Second, None)}, nil); errors.Is(err, ErrDamaged) {
			err = s.Write([]Change{ended(1, time.Second, None)}, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got := ids(find(t, s, Query{Limit: 1, Outcome: None})); got != "1" {
			t.Errorf("%s: %q is found", name, got)
		}
		if _, err := os.Stat(path + ".damaged"); err == nil {
			begunAnew++
		}
		s.Close()
	}
	if begunAnew < 3 {
		t.Errorf("%d of %d files were set aside", begunAnew, len(damages))
	}
}

// A folder, or a link, in place of the file is no file.
func TestWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "link")} {
		if err := New(path, DefaultLimits, hclog.NewNullLogger()).Open(); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

// BenchmarkWrite is one batch of a busy site: 50 changes.
func BenchmarkWrite(b *testing.B) {
	s := newStore(b, filepath.Join(b.TempDir(), "history.db"), DefaultLimits)
	n := 0
	for b.Loop() {
		var some []Change
		for range 50 {
			n++
			some = append(some, ended(n, -time.Duration(n)*time.Millisecond, Succeeded))
		}
		write(b, s, some...)
	}
}

// BenchmarkFind is a page of a file with 200,000 entries: of all, and of one label.
func BenchmarkFind(b *testing.B) {
	s := newStore(b, filepath.Join(b.TempDir(), "history.db"), DefaultLimits)
	for round := range 40 {
		var some []Change
		for i := range 5000 {
			some = append(some, ended(round*5000+i, 24*time.Hour-time.Duration(round*5000+i)*time.Millisecond, Succeeded))
		}
		write(b, s, some...)
	}
	for name, q := range map[string]Query{"all": {}, "label": {Label: "label-1"}} {
		q.Limit, q.Buckets, q.Since = 200, 60, noon.Add(-30*24*time.Hour)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				find(b, s, q)
			}
		})
	}
}

// farAway is a file whose list of free pages is where no memory is. Both of its first pages say so, with
// their sums: go.etcd.io/bbolt/internal/common.Meta, behind a head of 16 bytes.
func farAway(good []byte) []byte {
	const page, head, freelist, sum = 4096, 16, 32, 56
	bad := append([]byte(nil), good...)
	for _, meta := range [][]byte{bad[head:page], bad[page+head : 2*page]} {
		binary.NativeEndian.PutUint64(meta[freelist:], 1<<32)
		h := fnv.New64a()
		_, _ = h.Write(meta[:sum]) // never fails
		binary.NativeEndian.PutUint64(meta[sum:], h.Sum64())
	}
	return bad
}
