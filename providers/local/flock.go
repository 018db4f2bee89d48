package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"poolkeeper/configs/clock"
)

// How often a lock that somebody else holds is tried again. A blocking flock
// could not be cancelled, and these locks are held for moments.
const (
	firstRetry = 2 * time.Millisecond
	lastRetry  = 50 * time.Millisecond
)

// errBusy says that somebody else holds a lock.
var errBusy = errors.New("locked by another process")

// lock opens the file, made if need be, and waits until it holds its flock
// exclusively. Closing the file unlocks; so does the death of every process
// that has inherited it.
func lock(ctx context.Context, path string) (*os.File, error) {
	wait := firstRetry
	for {
		f, err := tryLock(path, unix.LOCK_EX)
		if !errors.Is(err, errBusy) {
			return f, err
		}
		if err := clock.Sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		wait = min(2*wait, lastRetry)
	}
}

// tryLock takes a lock (unix.LOCK_EX or LOCK_SH) that nobody disputes, or fails
// with errBusy.
func tryLock(path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return errBusy
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// locked says whether somebody holds the file's lock exclusively. It looks
// through a shared lock, so that two who look do not see each other.
func locked(path string) (bool, error) {
	f, err := tryLock(path, unix.LOCK_SH)
	if errors.Is(err, errBusy) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, f.Close()
}
