// Package lacks is for tests that need what a machine may lack: programs, root, devices.
package lacks

import (
	"os"
	"testing"
)

// Required is the environment variable that has each test run or fail, as in CI.
const Required = "POOLKEEPER_REQUIRE_E2E"

// Skip ends a test for which this machine lacks something: where Required is set it fails, elsewhere it is skipped.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv(Required) != "" {
		tb.Fatalf(Required+" is set, and this machine lacks something: "+format, args...)
	}
	tb.Skipf(format, args...)
}
