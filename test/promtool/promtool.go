// Package promtool gets Prometheus' own programs for tests: promtool, which judges metrics
// and rules, and the server, which answers queries.
package promtool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Required is set where the programs must be had: a test that cannot get them fails there,
// and is skipped elsewhere.
const Required = "POOLKEEPER_REQUIRE_E2E"

// Path is a program of Debian's package prometheus: "promtool" or "prometheus". What is not
// on PATH is downloaded once, and unpacked into the user's cache; it is never installed,
// because the package would start a service.
func Path(t *testing.T, program string) string {
	t.Helper()
	if found, err := exec.LookPath(program); err == nil {
		return found
	}
	path, err := cached(t.Context(), program)
	if err != nil && os.Getenv(Required) == "" {
		t.Skipf("no %s: %v", program, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cached is a program in the cache, which is filled when it is not there.
func cached(ctx context.Context, program string) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, "poolkeeper", "debian")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }() // frees it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	path := filepath.Join(dir, "prometheus", "usr", "bin", program)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, unpack(ctx, dir)
}

// unpack downloads the package into dir, and unpacks it there.
func unpack(ctx context.Context, dir string) error {
	work, err := os.MkdirTemp(dir, "prometheus-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if err := run(ctx, work, "apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download", "prometheus"); err != nil {
		return err
	}
	debs, err := filepath.Glob(filepath.Join(work, "prometheus_*.deb"))
	if err != nil || len(debs) != 1 {
		return fmt.Errorf("apt-get download prometheus left %q", debs)
	}
	if err := run(ctx, work, "dpkg-deb", "-x", debs[0], "root"); err != nil {
		return err
	}
	return os.Rename(filepath.Join(work, "root"), filepath.Join(dir, "prometheus"))
}

func run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", name, err, out)
	}
	return nil
}
