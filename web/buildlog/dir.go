package buildlog

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// More waits for a log to grow: it returns true once the log is longer than
// size bytes. It returns false when nothing more will come, or ctx ended.
type More = func(ctx context.Context, size int64) bool

// Logs finds the build logs of this host. A Dir is one.
type Logs interface {
	// Open opens a log for reading; the caller closes the file. A nil More says
	// that the log is complete. Errors: fs.ErrNotExist when there is none here.
	// Image and build have passed configs.CheckName.
	Open(image, build string) (*os.File, More, error)
}

// lookAgain is how often a log that is followed is looked at although nobody
// said that it grew: writers may be slow to tell.
const lookAgain = time.Second

// Dir is the folder of a host's build logs, with those that are being
// written at the moment. Builders tell it when a log begins, grows and ends, so
// that nobody who follows one has to poll.
type Dir struct {
	path func(image, build string) string

	mu   sync.Mutex
	live map[string]*liveLog // by path
}

// NewDir makes a Dir; path is the file of a build's log.
func NewDir(path func(image, build string) string) *Dir {
	return &Dir{path: path, live: map[string]*liveLog{}}
}

// Writing tells that a build's log is written from now on. The caller calls
// grew whenever there is more to read, and done, once, after the last of it.
func (d *Dir) Writing(image, build string) (grew, done func()) {
	file := d.path(image, build)
	l := &liveLog{changed: make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live[file] = l
	return l.grew, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.live[file] == l {
			delete(d.live, file)
		}
		l.end()
	}
}

// Open opens a log; see Logs.
func (d *Dir) Open(image, build string) (*os.File, More, error) {
	path := d.path(image, build)
	d.mu.Lock() // before the file: a build that ends in between has a complete log
	live := d.live[path]
	d.mu.Unlock()
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fs.ErrInvalid
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, fmt.Errorf("open log %s: %w", path, err)
	}
	if live == nil {
		return file, nil, nil
	}
	return file, func(ctx context.Context, size int64) bool { return live.more(ctx, file, size) }, nil
}

// liveLog is a log that is being written.
type liveLog struct {
	mu      sync.Mutex
	changed chan struct{} // closed, and replaced, with every change
	over    bool
}

// grew wakes those who wait.
func (l *liveLog) grew() { l.change(false) }

// end wakes them for the last time.
func (l *liveLog) end() { l.change(true) }

func (l *liveLog) change(over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = l.over || over
	close(l.changed)
	l.changed = make(chan struct{})
}

// state is to be asked before the file: what is written after the look at the
// file is then seen as a change.
func (l *liveLog) state() (changed <-chan struct{}, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed, l.over
}

// more waits; see More.
func (l *liveLog) more(ctx context.Context, file *os.File, size int64) bool {
	look := time.NewTicker(lookAgain)
	defer look.Stop()
	for {
		changed, over := l.state()
		if info, err := file.Stat(); err != nil || info.Size() > size {
			return err == nil
		}
		if over {
			return false
		}
		select {
		case <-changed:
		case <-look.C:
		case <-ctx.Done():
			return false
		}
	}
}
