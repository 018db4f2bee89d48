// Package script writes shell scripts for tests.
package script

import (
	"os"
	"path/filepath"
	"testing"
)

// Write makes an executable shell script in a folder of the test's own and returns its
// path.
func Write(tb testing.TB, name, body string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body), 0o755); err != nil {
		tb.Fatal(err)
	}
	return file
}
