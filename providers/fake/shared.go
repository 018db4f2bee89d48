package fake

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"poolkeeper/providers"
)

// compactAt is the size in bytes from which a log is rewritten when most of it
// is history.
const compactAt = 1 << 20

// shared is the ledger of several processes: DIR/NAME.log holds one event a
// line, and DIR/NAME.lock is held (flock) by whoever reads or appends. Each
// process replays what the others appended, so a change costs the same with one
// machine as with thousands.
type shared struct {
	mu    sync.Mutex // one goroutine at a time; flock knows only open files
	lock  *os.File
	path  string
	log   *os.File // nil until first used, and after another's compaction
	state *state
	seen  int64 // bytes of the log that state contains
	lines int   // events of the log that state contains
}

func openShared(dir, name string) (*shared, error) {
	if filepath.Base(name) != name || name == "." || name == ".." {
		return nil, fmt.Errorf("open state: %w: provider name %q is no file name", providers.ErrInvalid, name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	path := filepath.Join(dir, name)
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	return &shared{path: path + ".log", lock: lock, state: newState()}, nil
}

func (s *shared) read(look func(*state)) error {
	return s.change(func(st *state) (*event, error) {
		look(st)
		return nil, nil
	})
}

func (s *shared) change(decide func(*state) (*event, error)) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := flock(s.lock, unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock state: %w", err)
	}
	defer func() { err = errors.Join(err, flock(s.lock, unix.LOCK_UN)) }()
	if err := s.catchUp(); err != nil {
		return fmt.Errorf("read state: %w", err)
	}
	e, err := decide(s.state)
	if err != nil || e == nil {
		return err
	}
	if err := s.append(*e); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return s.compact()
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// catchUp replays what others appended since the last look.
func (s *shared) catchUp() error {
	if s.log == nil || !s.current() {
		return s.reopen()
	}
	return s.replay()
}

// replay applies the events behind those that state contains.
func (s *shared) replay() error {
	info, err := s.log.Stat()
	if err != nil || info.Size() == s.seen {
		return err
	}
	tail := make([]byte, info.Size()-s.seen)
	if _, err := s.log.ReadAt(tail, s.seen); err != nil {
		return err
	}
	for line := range bytes.Lines(tail) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return s.log.Truncate(s.seen) // its writer died in the middle
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("%s at byte %d: %w", s.path, s.seen, err)
		}
		s.state.apply(e)
		s.seen += int64(len(line))
		s.lines++
	}
	return nil
}

// reopen opens the log, or follows it to the file that a compaction put in its
// place.
func (s *shared) reopen() error {
	if s.log != nil {
		_ = s.log.Close() // read to the end already, nothing to lose
	}
	log, err := os.OpenFile(s.path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	waiters := s.state.gone
	s.log, s.state, s.seen, s.lines = log, newState(), 0, 0
	s.state.gone = waiters
	if err := s.replay(); err != nil {
		return err
	}
	s.state.wakeOrphans()
	return nil
}

// current says whether the open log still is the one that the path names.
func (s *shared) current() bool {
	ours, err := s.log.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(s.path)
	return err == nil && os.SameFile(ours, named)
}

func (s *shared) append(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if _, err := s.log.WriteAt(line, s.seen); err != nil {
		return errors.Join(err, s.log.Truncate(s.seen))
	}
	s.state.apply(e)
	s.seen += int64(len(line))
	s.lines++
	return nil
}

// compact replaces a log that is mostly history by the table alone.
func (s *shared) compact() error {
	if s.seen < compactAt || s.lines < 4*s.state.size() {
		return nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b) // one event a line
	for _, e := range s.state.events() {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("compact state: %w", err)
		}
	}
	if err := renameio.WriteFile(s.path, b.Bytes(), 0o644, renameio.WithTempDir(filepath.Dir(s.path))); err != nil {
		return fmt.Errorf("compact state: %w", err)
	}
	return nil
}

func (s *shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.lock.Close()
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	return err
}
