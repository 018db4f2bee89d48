// Package tempdir makes folders for tests in which images are built: what is mounted in them is taken off before
// they are removed.
//
// A build that was killed leaves the /dev of this machine mounted below its folder. os.RemoveAll, and so
// testing.T.TempDir, would delete the machine's devices there.
package tempdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ErrMounted says that something is mounted in a folder, so that nothing in it was removed.
var ErrMounted = errors.New("something is mounted")

// patience is how long a folder may take to go: of a builder that was killed, the guard ends the build.
const patience = 30 * time.Second

// New makes a folder that goes with the test, as testing.TB.TempDir does. One in which something stays mounted
// stays too, and the test fails.
func New(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "poolkeeper-test-") //nolint:usetesting // TempDir removes what is mounted
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the kernel names what is mounted there
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for began := time.Now(); ; {
			err := Remove(dir)
			if err == nil {
				return
			}
			if time.Since(began) > patience {
				tb.Errorf("%s stays: %v", dir, err)
				return
			}
			<-time.After(100 * time.Millisecond)
		}
	})
	return dir
}
