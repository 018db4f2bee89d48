package history

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Limits bound a file. What is oldest goes first.
type Limits struct {
	Age   time.Duration // of what has ended
	Bytes int64         // of the file
	Count int           // of entries that have ended
}

// DefaultLimits are those where the configuration says nothing.
var DefaultLimits = Limits{Age: 30 * 24 * time.Hour, Bytes: 512 << 20, Count: 2_000_000}

// Errors.
var (
	// ErrDamaged says that the file cannot be read as what it is.
	ErrDamaged = errors.New("the file of the history is damaged")
	// ErrClosed says that there is no file at the moment.
	ErrClosed = errors.New("there is no file of the history")
)

// The buckets of the file, and the keys of the last.
var (
	openBucket  = []byte("open")  // by kind and id: those whose records were there last
	endedBucket = []byte("ended") // by place
	gapBucket   = []byte("gaps")  // by their begin
	metaBucket  = []byte("meta")

	seenKey  = []byte("seen")  // the last moment at which everything was recorded
	begunKey = []byte("begun") // the first
	countKey = []byte("count") // of entries that have ended
	bytesKey = []byte("bytes") // of their places and themselves
)

// maxGaps is how many gaps are kept.
const maxGaps = 500

// Gap is a time in which nothing was recorded.
type Gap struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	Why  string    `json:"why"`
}

// Change is what a record has become.
type Change struct {
	Entry *Entry
	Over  bool // the record is gone
}

// Store is a file of history. Its methods may be called at any time.
type Store struct {
	path   string
	limits Limits
	log    hclog.Logger
	now    func() time.Time

	renew sync.Mutex   // is held to open the file, or to set it aside
	mu    sync.RWMutex // is held to read it while the file is used
	db    *bbolt.DB    // nil without one
	anew  int          // how often it was begun anew

	failures atomic.Int64 // to write it
}

// New makes a Store of a file that is opened by Open.
func New(path string, limits Limits, log hclog.Logger) *Store {
	return &Store{path: path, limits: limits, log: log, now: time.Now}
}

// Open opens the file, if it is not open, and makes it and its folder where they are not
// there. One that is damaged is set aside, and begun anew.
//
// Errors: those of the file system, and one for a file that another process has open.
func (s *Store) Open() error {
	s.renew.Lock()
	defer s.renew.Unlock()
	if s.current() != nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o750); err != nil {
		return fmt.Errorf("make folder of history: %w", err)
	}
	err := s.open()
	if errors.Is(err, ErrDamaged) {
		err = s.begin(err)
	}
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	return nil
}

// Anew is how often the file was begun anew, and has nothing of what was live before.
func (s *Store) Anew() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.anew
}

// current is the file that is open, or nil.
func (s *Store) current() *bbolt.DB {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.db
}

// Path is the file.
func (s *Store) Path() string { return s.path }

// open opens the file as it is, and reads it once to see that it is whole.
func (s *Store) open() (err error) {
	defer recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // of a file cut short, pages may be asked for where no memory is
	info, err := os.Lstat(s.path)
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", s.path)
	}
	db, err := bbolt.Open(s.path, 0o600, &bbolt.Options{
		Timeout: time.Second, FreelistType: bbolt.FreelistMapType, MaxSize: int(s.limits.Bytes),
	})
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s is in use by another process", s.path)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch),
		err != nil && strings.Contains(err.Error(), "file size too small"):
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	case err != nil:
		return err
	}
	db.AllocSize = 1 << 20
	err = checked(db)
	if err == nil {
		err = db.Update(func(tx *bbolt.Tx) error {
			for _, name := range [][]byte{openBucket, endedBucket, gapBucket, metaBucket} {
				if _, err := tx.CreateBucketIfNotExists(name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.mu.Lock()
	s.db = db
	s.mu.Unlock()
	return nil
}

// checked reads the whole file.
func checked(db *bbolt.DB) (err error) {
	defer recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a file is memory here
	return db.View(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{openBucket, endedBucket} {
			bucket := tx.Bucket(name)
			if bucket == nil {
				continue
			}
			if err := bucket.ForEach(func(k, v []byte) error {
				if !json.Valid(v) {
					return fmt.Errorf("%w: entry %q", ErrDamaged, k)
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
}

// recovered makes an error of the panic with which a damaged file is found.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, r)
	}
}

// begin sets a damaged file aside, and begins another. The caller holds renew.
func (s *Store) begin(why error) error {
	s.drop()
	s.mu.Lock()
	s.anew++
	s.mu.Unlock()
	aside := s.path + ".damaged"
	s.log.Warn("The history is damaged; it is set aside, and begins anew", "file", s.path, "aside", aside, "error", why)
	if err := os.Rename(s.path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("set damaged history aside: %w", err)
	}
	return s.open()
}

// drop gives up the file that is open. Where it is damaged, closing it may not come to an end.
func (s *Store) drop() {
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.mu.Unlock()
	if db == nil {
		return
	}
	closed := make(chan struct{})
	go func() {
		var err error
		defer close(closed)
		defer recovered(&err)
		err = db.Close() // what can be known of a file that is given up
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
	}
}

// Close closes the file.
func (s *Store) Close() { s.drop() }

// use runs f on the file. One that shows itself to be damaged is set aside and begun anew;
// what f wanted is then not done.
func (s *Store) use(f func(*bbolt.DB) error) error {
	db, err := s.try(f)
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	s.renew.Lock()
	defer s.renew.Unlock()
	if s.current() == db { // else another has seen it first
		if again := s.begin(err); again != nil {
			return again
		}
	}
	return err
}

func (s *Store) try(f func(*bbolt.DB) error) (db *bbolt.DB, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if db = s.db; db == nil {
		return nil, ErrClosed
	}
	defer recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return db, f(db)
}

// Live are the entries whose records were there when the file was written last, and that
// moment; zero for a file that was never written.
func (s *Store) Live() (all []*Entry, seen time.Time, err error) {
	err = s.use(func(db *bbolt.DB) error {
		return db.View(func(tx *bbolt.Tx) error {
			seen = timeOf(tx.Bucket(metaBucket).Get(seenKey))
			return tx.Bucket(openBucket).ForEach(func(k, v []byte) error {
				e := &Entry{}
				if err := json.Unmarshal(v, e); err != nil || e.key() != string(k) {
					return fmt.Errorf("%w: entry %q: %w", ErrDamaged, k, err)
				}
				all = append(all, e)
				return nil
			})
		})
	})
	return all, seen, err
}

// Write writes changes and gaps in one transaction, and that everything was recorded until
// now. What is too old, or too much, goes.
func (s *Store) Write(changes []Change, gaps []Gap) error {
	return s.use(func(db *bbolt.DB) error {
		err := db.Update(func(tx *bbolt.Tx) error { return s.write(tx, changes, gaps) })
		for range 5 { // what goes leaves room for the next transaction
			if !errors.Is(err, berrors.ErrMaxSizeReached) {
				break
			}
			if err = db.Update(func(tx *bbolt.Tx) error { return s.shrink(tx, 4) }); err == nil {
				err = db.Update(func(tx *bbolt.Tx) error { return s.write(tx, changes, gaps) })
			}
		}
		if err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		return nil
	})
}

// Add writes an entry that has ended when it is seen, as an action. It says nothing of what else was recorded.
//
// Errors: ErrClosed while the file is not open.
func (s *Store) Add(e Entry) error {
	e.bound()
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write %s: %w", e.key(), err)
	}
	return s.use(func(db *bbolt.DB) error {
		err := db.Update(func(tx *bbolt.Tx) error {
			t := tally{tx: tx}
			t.read()
			if err := t.put(e.place(), data); err != nil {
				return err
			}
			return errors.Join(s.prune(&t, s.now()), t.write())
		})
		if err != nil {
			return fmt.Errorf("write history: %w", err)
		}
		return nil
	})
}

func (s *Store) write(tx *bbolt.Tx, changes []Change, gaps []Gap) error {
	open, t := tx.Bucket(openBucket), tally{tx: tx}
	t.read()
	for _, c := range changes {
		data, err := json.Marshal(c.Entry)
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Entry.key(), err)
		}
		if !c.Entry.Ended.IsZero() {
			if err := t.put(c.Entry.place(), data); err != nil {
				return err
			}
		}
		if key := []byte(c.Entry.key()); c.Over {
			err = open.Delete(key)
		} else {
			err = open.Put(key, data)
		}
		if err != nil {
			return err
		}
	}
	if err := putGaps(tx.Bucket(gapBucket), gaps); err != nil {
		return err
	}
	now := s.now()
	if err := s.prune(&t, now); err != nil {
		return err
	}
	meta := tx.Bucket(metaBucket)
	if meta.Get(begunKey) == nil {
		if err := meta.Put(begunKey, timeBytes(now)); err != nil {
			return err
		}
	}
	return errors.Join(meta.Put(seenKey, timeBytes(now)), t.write())
}

func putGaps(bucket *bbolt.Bucket, gaps []Gap) error {
	for _, g := range gaps {
		data, err := json.Marshal(g)
		if err == nil {
			err = bucket.Put(timeBytes(g.From), data)
		}
		if err != nil {
			return fmt.Errorf("write gap: %w", err)
		}
	}
	count := 0
	c := bucket.Cursor()
	for k, _ := c.Last(); k != nil; k, _ = c.Prev() {
		if count++; count > maxGaps {
			if err := c.Delete(); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostPruned is how many entries go with one transaction.
const mostPruned = 5000

// prune removes the oldest entries, as far as there are too many, or they are too old.
func (s *Store) prune(t *tally, now time.Time) error {
	oldest := timeBytes(now.Add(-s.limits.Age))
	c := t.ended().Cursor()
	for range mostPruned {
		k, v := c.First()
		// Pages are not full, and what is replaced takes its room until the transaction ends.
		full := t.count > int64(s.limits.Count) || t.bytes > s.limits.Bytes/2
		if k == nil || !full && string(k[:min(8, len(k))]) >= string(oldest) {
			return nil
		}
		t.count, t.bytes = t.count-1, t.bytes-int64(len(k)+len(v))
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return nil
}

// shrink removes the oldest of so many parts of all entries.
func (s *Store) shrink(tx *bbolt.Tx, parts int64) error {
	t := tally{tx: tx}
	t.read()
	c := t.ended().Cursor()
	for n := t.count/parts + 1; n > 0; n-- {
		k, v := c.First()
		if k == nil {
			break
		}
		t.count, t.bytes = t.count-1, t.bytes-int64(len(k)+len(v))
		if err := c.Delete(); err != nil {
			return err
		}
	}
	return t.write()
}

// tally counts the entries that have ended.
type tally struct {
	tx           *bbolt.Tx
	count, bytes int64
}

func (t *tally) ended() *bbolt.Bucket { return t.tx.Bucket(endedBucket) }

func (t *tally) read() {
	meta := t.tx.Bucket(metaBucket)
	t.count, t.bytes = numberOf(meta.Get(countKey)), numberOf(meta.Get(bytesKey))
}

func (t *tally) write() error {
	meta := t.tx.Bucket(metaBucket)
	return errors.Join(meta.Put(countKey, numberBytes(t.count)), meta.Put(bytesKey, numberBytes(t.bytes)))
}

// put writes an entry.
func (t *tally) put(place, data []byte) error {
	bucket := t.ended()
	bucket.FillPercent = 0.9 // they come in the order of time, nearly
	if was := bucket.Get(place); was != nil {
		t.bytes -= int64(len(was))
	} else {
		t.count, t.bytes = t.count+1, t.bytes+int64(len(place))
	}
	t.bytes += int64(len(data))
	return bucket.Put(place, data)
}

func timeBytes(t time.Time) []byte { return numberBytes(max(0, t.UnixMilli())) }

func timeOf(data []byte) time.Time {
	if len(data) != 8 {
		return time.Time{}
	}
	return time.UnixMilli(numberOf(data)).UTC()
}

func numberBytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func numberOf(data []byte) int64 {
	if len(data) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(data))
}
