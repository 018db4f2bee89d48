package history

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"
)

// Query says which entries are wanted: those that ended from Since on and before Until. What
// is "" or empty is not asked for.
type Query struct {
	Kinds        []Kind
	Outcome      Outcome
	Image, Build string
	Provider     string
	Label        string
	Was          string // a state that it has been in
	ID           string
	Request      string // that a node was for
	Since, Until time.Time
	Limit        int    // of entries
	Before       string // Next of the page before; then nothing is counted
	Buckets      int    // into which the time is cut for counting; 0 counts nothing
}

// Answer is what a query finds, the youngest first.
type Answer struct {
	Entries []*Entry
	Next    string    // for the page after this; "" when this is the last
	Counts  []Counts  // one for each bucket, the oldest first
	Counted time.Time // what ended before is not counted, as there is too much; zero when all is
	Gaps    []Gap     // that touch the time, the oldest first
	Begun   time.Time // when recording began; zero before
}

// Counts are how many ended in a time.
type Counts struct {
	From, To                time.Time
	Succeeded, Failed, None int
}

// Bounds of a query.
const (
	mostLooked = 200_000                // places that are looked at
	patience   = 400 * time.Millisecond // for all of it
)

// Find answers a query.
func (s *Store) Find(q Query) (*Answer, error) {
	a := &Answer{}
	if q.Before != "" {
		q.Buckets = 0
	}
	for i := range q.Buckets {
		width := q.Until.Sub(q.Since) / time.Duration(q.Buckets)
		a.Counts = append(a.Counts, Counts{From: q.Since.Add(time.Duration(i) * width), To: q.Since.Add(time.Duration(i+1) * width)})
	}
	before, err := hex.DecodeString(q.Before)
	if err != nil || len(before) > 4*maxText {
		return nil, fmt.Errorf("before=%.40q is not from a page", q.Before)
	}
	err = s.use(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			a.Begun = timeOf(tx.Bucket(metaBucket).Get(begunKey))
			if err := a.gaps(tx.Bucket(gapBucket), q); err != nil {
				return err
			}
			return a.find(tx.Bucket(endedBucket).Cursor(), q, before)
		})
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Answer) gaps(bucket *bbolt.Bucket, q Query) error {
	return bucket.ForEach(func(k, v []byte) error {
		var g Gap
		if err := json.Unmarshal(v, &g); err != nil {
			return fmt.Errorf("%w: gap %q: %w", ErrDamaged, k, err)
		}
		if g.To.After(q.Since) && g.From.Before(q.Until) {
			a.Gaps = append(a.Gaps, g)
		}
		return nil
	})
}

// find goes back in time.
func (a *Answer) find(c *bbolt.Cursor, q Query, before []byte) error {
	deadline := time.Now().Add(patience)
	from, until := timeBytes(q.Since), timeBytes(q.Until)
	if len(before) > 0 && bytes.Compare(before, until) < 0 {
		until = before
	}
	looked := 0
	for k, v := last(c, until); k != nil && bytes.Compare(k[:min(8, len(k))], from) >= 0; k, v = c.Prev() {
		ended, kind, outcome, ok := placed(k)
		if !ok {
			return fmt.Errorf("%w: place %q", ErrDamaged, k)
		}
		if looked++; looked > mostLooked || looked%512 == 0 && time.Now().After(deadline) {
			a.Counted = ended.Add(time.Millisecond)
			if len(a.Entries) < q.Limit { // the page goes on from here
				a.Next = hex.EncodeToString(append(slices.Clone(k), 0))
			}
			return nil
		}
		if len(q.Kinds) > 0 && !slices.Contains(q.Kinds, kind) || q.Outcome != "" && q.Outcome != outcome {
			continue
		}
		wanted := q.Limit > 0 && a.Next == ""
		var e *Entry
		if wanted || q.deep() {
			e = &Entry{}
			if err := json.Unmarshal(v, e); err != nil {
				return fmt.Errorf("%w: entry %q: %w", ErrDamaged, k, err)
			}
			if !q.matches(e) {
				continue
			}
		}
		a.count(q, ended, outcome)
		switch {
		case !wanted:
		case len(a.Entries) == q.Limit:
			a.Next = hex.EncodeToString(a.Entries[q.Limit-1].place())
			if q.Buckets == 0 {
				return nil
			}
		default:
			a.Entries = append(a.Entries, e)
		}
	}
	return nil
}

// last is the youngest place before a time, or a place.
func last(c *bbolt.Cursor, until []byte) (k, v []byte) {
	if k, _ = c.Seek(until); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// deep reports whether it takes the entry itself to see whether it is wanted.
func (q Query) deep() bool {
	return q.Image != "" || q.Build != "" || q.Provider != "" || q.Label != "" || q.Was != "" || q.ID != "" || q.Request != ""
}

func (q Query) matches(e *Entry) bool {
	for _, is := range []struct{ want, have string }{
		{q.Image, e.Image}, {q.Build, e.BuildID}, {q.Provider, e.Provider}, {q.ID, e.ID}, {q.Request, e.Request},
	} {
		if is.want != "" && is.want != is.have {
			return false
		}
	}
	return (q.Label == "" || slices.Contains(e.Labels, q.Label)) &&
		(q.Was == "" || slices.ContainsFunc(e.Times, func(m Moment) bool { return m.State == q.Was }))
}

// count counts one.
func (a *Answer) count(q Query, ended time.Time, outcome Outcome) {
	if q.Buckets == 0 {
		return
	}
	width := q.Until.Sub(q.Since) / time.Duration(q.Buckets)
	i := min(q.Buckets-1, max(0, int(ended.Sub(q.Since)/max(1, width))))
	switch outcome {
	case Succeeded:
		a.Counts[i].Succeeded++
	case Failed:
		a.Counts[i].Failed++
	case None:
		a.Counts[i].None++
	}
}
