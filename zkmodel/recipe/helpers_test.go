package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"poolkeeper/test/zktest"
	"poolkeeper/zkmodel/recipe"
)

func TestMain(m *testing.M) {
	if childMain() {
		return
	}
	goleak.VerifyTestMain(m)
}

// dial returns a Client on root at the shared server, unless change says otherwise.
func dial(t testing.TB, root string, change ...func(*recipe.Config)) *recipe.Client {
	t.Helper()
	cfg := recipe.Config{Chroot: root, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Servers == nil {
		cfg.Servers = []string{zktest.Shared(t).Addr()}
	}
	c, err := recipe.Dial(cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// through makes a Client connect to addrs.
func through(addrs ...string) func(*recipe.Config) {
	return func(cfg *recipe.Config) { cfg.Servers = addrs }
}

// timeout sets the session time-out.
func timeout(d time.Duration) func(*recipe.Config) {
	return func(cfg *recipe.Config) { cfg.Timeout = d }
}

// session returns the living session of c.
func session(t testing.TB, c *recipe.Client) *recipe.Session {
	t.Helper()
	s, err := c.Session(patiently(t))
	if err != nil {
		t.Fatalf("session: %v", err)
	}
	return s
}

// patiently returns the test's context with a deadline that only a failure reaches.
func patiently(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// lost waits for the end of ctx and checks its cause.
func lost(t testing.TB, ctx context.Context, cause error) {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-patiently(t).Done():
		t.Fatalf("context does not end")
	}
	if got := context.Cause(ctx); !errors.Is(got, cause) {
		t.Fatalf("context ended: %v, want %v", got, cause)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// want fails the test unless err is target.
func want(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want %v", err, target)
	}
}

// contextCause returns why ctx ended, as text.
func contextCause(ctx context.Context) string { return fmt.Sprint(context.Cause(ctx)) }
