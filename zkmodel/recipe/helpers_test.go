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
	if childMain() || partnerMain() || logChildMain() {
		return
	}
	zktest.Parallel("4")
	goleak.VerifyTestMain(m)
}

// dial returns a Client on root at the shared server, unless change says otherwise.
func dial(tb testing.TB, root string, change ...func(*recipe.Config)) *recipe.Client {
	tb.Helper()
	cfg := recipe.Config{Chroot: root, Timeout: 10 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Servers == nil {
		cfg.Servers = []string{zktest.Shared(tb).Addr()}
	}
	c, err := recipe.Dial(cfg)
	if err != nil {
		tb.Fatalf("dial: %v", err)
	}
	tb.Cleanup(c.Close)
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
func session(tb testing.TB, c *recipe.Client) *recipe.Session {
	tb.Helper()
	s, err := c.Session(patiently(tb))
	if err != nil {
		tb.Fatalf("session: %v", err)
	}
	return s
}

// patiently returns the test's context with a deadline that only a failure reaches.
func patiently(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	tb.Cleanup(cancel)
	return ctx
}

// lost waits for the end of ctx and checks its cause.
func lost(tb testing.TB, ctx context.Context, cause error) {
	tb.Helper()
	select {
	case <-ctx.Done():
	case <-patiently(tb).Done():
		tb.Fatalf("context does not end")
	}
	if got := context.Cause(ctx); !errors.Is(got, cause) {
		tb.Fatalf("context ended: %v, want %v", got, cause)
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// want fails the test unless err is target.
func want(tb testing.TB, err, target error) {
	tb.Helper()
	if !errors.Is(err, target) {
		tb.Fatalf("error %v, want %v", err, target)
	}
}

// contextCause returns why ctx ended, as text.
func contextCause(ctx context.Context) string { return fmt.Sprint(context.Cause(ctx)) }
