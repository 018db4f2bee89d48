package web

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// lookAgain is how often a log that is followed is looked at although nobody
// said that it grew: writers may be slow to tell.
const lookAgain = time.Second

// LogDir is the folder of a host's build logs, with those that are being
// written at the moment. Builders tell it when a log begins, grows and ends, so
// that nobody who follows one has to poll.
type LogDir struct {
	path func(image, build string) string

	mu   sync.Mutex
	live map[string]*liveLog // by path
}

// NewLogDir makes a LogDir; path is the file of a build's log.
func NewLogDir(path func(image, build string) string) *LogDir {
	return &LogDir{path: path, live: map[string]*liveLog{}}
}

// Writing tells that a build's log is written from now on. The caller calls
// grew whenever there is more to read, and done, once, after the last of it.
func (d *LogDir) Writing(image, build string) (grew, done func()) {
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
func (d *LogDir) Open(image, build string) (*os.File, More, error) {
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
