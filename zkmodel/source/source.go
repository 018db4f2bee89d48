// Package source is what a site looks at by itself: the state that each source had last,
// of which a wave is made when it is another.
package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
	"poolkeeper/zkmodel/event"
	"poolkeeper/zkmodel/recipe"
)

// Root holds the states of sources (docs/wire.md §8.7).
const Root = zkmodel.OwnRoot + "/sources"

// LockPath is the lock of who looks at sources.
const LockPath = Root + "/lock"

// longest is how much of a state or a failure people read, in bytes.
const longest = 200

// Record is what is known of a source.
type Record struct {
	Digest string    `json:"digest,omitempty"` // SHA-256 of the state; "" while none was seen
	Text   string    `json:"text,omitempty"`   // the beginning of the state, for people
	Since  time.Time `json:"since"`            // when the state was seen first
	Wave   string    `json:"wave,omitempty"`   // that was made for it
	// Failing is why the last look failed, "" when it did not.
	Failing string `json:"failing,omitempty"`
	// Gone is when it was first found missing in the configuration of the builder that looks.
	Gone *time.Time `json:"gone,omitempty"`

	name string
	stat recipe.Stat // zero when there is no record
}

// See notes a state that was seen at a time, with what people may read of it, and reports
// whether it is another than before, and whether there was one before.
func (r *Record) See(state []byte, text string, at time.Time) (changed, known bool) {
	sum := sha256.Sum256(state)
	digest := hex.EncodeToString(sum[:])
	changed, known = digest != r.Digest, r.Digest != ""
	if changed {
		r.Digest, r.Text, r.Since, r.Wave = digest, brief(text), at.UTC().Truncate(time.Second), ""
	}
	return changed, known
}

// WaveID is the id of the wave of a state that was just seen: who is killed and looks again
// makes the same. A state that comes back makes another.
func (r *Record) WaveID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{r.name, r.Digest, strconv.FormatInt(r.stat.Mzxid, 16)}, ",")))
	return r.name + "-" + hex.EncodeToString(sum[:6])
}

// Store reads and writes records within one session.
type Store struct{ session *recipe.Session }

// NewStore makes a Store. Its values are cheap.
func NewStore(s *recipe.Session) *Store { return &Store{s} }

// Record reads what is known of a source; that is nothing for a new one, or one whose record
// cannot be decoded.
func (st *Store) Record(ctx context.Context, name string) (*Record, error) {
	data, stat, err := st.session.Get(ctx, Root+"/"+name)
	switch {
	case errors.Is(err, recipe.ErrNoNode):
		return &Record{name: name}, nil
	case err != nil:
		return nil, fmt.Errorf("read source %s: %w", name, err)
	}
	r := &Record{}
	if json.Unmarshal(data, r) != nil {
		r = &Record{}
	}
	r.name, r.stat = name, stat
	return r, nil
}

// SaveOp is the step that writes a record, if nobody has since it was read.
func (r *Record) SaveOp() (recipe.Op, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return recipe.Op{}, fmt.Errorf("save source %s: %w", r.name, err)
	}
	if r.stat.Czxid == 0 {
		return recipe.OpCreate(Root+"/"+r.name, data, recipe.Persistent), nil
	}
	return recipe.OpSet(Root+"/"+r.name, data, r.stat.Version), nil
}

// Save writes a record behind the fence of LockPath's holder.
func (st *Store) Save(ctx context.Context, held *recipe.Held, r *Record) error {
	return st.tell(ctx, held, r, "")
}

// Fail notes why a source cannot be looked at, or with "" that it can again, and tells it in
// the same transaction. What is noted already is neither written nor told again.
func (st *Store) Fail(ctx context.Context, held *recipe.Held, r *Record, why string) error {
	if (why == "") == (r.Failing == "") {
		return nil
	}
	kind := event.SourceFailed
	if r.Failing = brief(why); why == "" {
		kind = event.SourceAnswers
	}
	if r.Since.IsZero() {
		r.Since = clock.Now(ctx).UTC().Truncate(time.Second)
	}
	return st.tell(ctx, held, r, kind)
}

func (st *Store) tell(ctx context.Context, held *recipe.Held, r *Record, kind string) error {
	op, err := r.SaveOp()
	if err != nil {
		return err
	}
	log, entries := st.session.Log(), [][]byte(nil)
	if log != nil && kind != "" {
		data, err := event.New(log.Writer(), kind, "source/"+r.name, clock.Now(ctx), event.Data{"source": r.name, "reason": r.Failing}).Encode()
		if err != nil {
			return err
		}
		entries = [][]byte{data}
	}
	err = log.Append(ctx, st.session, entries, func(also []recipe.Op) error {
		_, err := held.Multi(ctx, slices.Concat([]recipe.Op{op}, also)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("save source %s: %w", r.name, err)
	}
	return nil
}

// Kept is how long the record of a source is kept that the builder which looks has no more in
// its configuration: another builder may have it, as a changed file does not reach all at once.
const Kept = 24 * time.Hour

// Forget removes the records of sources, but those to keep, that were found missing for Kept,
// and notes of the others that they are missing since now. again is when the first of them is
// to be removed; zero is never.
func (st *Store) Forget(ctx context.Context, held *recipe.Held, now time.Time, keep func(name string) bool) (again time.Time, err error) {
	names, err := st.session.Children(ctx, Root)
	if err != nil {
		return again, fmt.Errorf("list sources: %w", err)
	}
	for _, name := range names {
		if Root+"/"+name == LockPath || keep(name) {
			continue
		}
		r, err := st.Record(ctx, name)
		if err != nil {
			return again, err
		}
		switch {
		case r.Gone == nil || r.Gone.After(now):
			r.Gone = new(now.UTC().Truncate(time.Second))
			err = st.Save(ctx, held, r)
		case now.Sub(*r.Gone) > Kept:
			err = held.Delete(ctx, Root+"/"+name, r.stat.Version)
			r.Gone = nil
		}
		if err != nil && !errors.Is(err, recipe.ErrNoNode) {
			return again, fmt.Errorf("forget source %s: %w", name, err)
		}
		if r.Gone != nil && (again.IsZero() || r.Gone.Add(Kept).Before(again)) {
			again = r.Gone.Add(Kept + time.Second)
		}
	}
	return again, nil
}

// Found notes that a source is in the configuration.
func (st *Store) Found(ctx context.Context, held *recipe.Held, r *Record) error {
	if r.Gone == nil {
		return nil
	}
	r.Gone = nil
	return st.Save(ctx, held, r)
}

// brief is as much of a text as people read.
func brief(text string) string {
	text = strings.TrimSpace(text)
	if len(text) > longest {
		text = text[:longest]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
}
