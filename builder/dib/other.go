//go:build !linux

package dib

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
)

// Builds are made on Linux only. Elsewhere, which is in the simulation's replay, another Host stands
// for the machine, and this is all that works of it: files, where nothing is ever mounted.

// Guard has no processes to guard here.
func Guard(_, _ *os.File) error { return fmt.Errorf("%w: %w", ErrGuard, errors.ErrUnsupported) }

// Do runs nothing here.
func (Run) Do(context.Context) (Result, error) {
	return Result{}, fmt.Errorf("%w: %w", ErrGuard, errors.ErrUnsupported)
}

// Reclaim has nothing to end here.
func Reclaim(context.Context, Processes, Scratch) error { return errors.ErrUnsupported }

// Free implements Host.
func (Here) Free(string) (int64, error) { return math.MaxInt64, nil }

// RemoveTree removes a file, or a folder with all that is in it.
func RemoveTree(_ context.Context, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("remove files: %w: %w", ErrLeft, err)
	}
	return nil
}

// Unmount has nothing to take off.
func Unmount(context.Context, string) error { return nil }
