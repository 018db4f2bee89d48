package recipe_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// A partner is a process of its own that takes a lock when it is told to, says
// when it got it, and gives it back when it is told again.

// partnerEnv holds the server's address in a partner.
const partnerEnv = "RECIPE_TEST_PARTNER"

// partnerMain is the main function of a partner; it returns false in a test.
func partnerMain() bool {
	addr := os.Getenv(partnerEnv)
	if addr == "" {
		return false
	}
	if err := partnerWork(addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

func partnerWork(addr string) error {
	ctx := context.Background()
	c, err := recipe.Dial(recipe.Config{Servers: []string{addr}})
	if err != nil {
		return err
	}
	defer c.Close()
	s, err := c.Session(ctx)
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		held, err := recipe.NewLock(s, "/lock", "").Acquire(ctx)
		if err != nil {
			return err
		}
		fmt.Println(time.Now().UnixNano())
		if !in.Scan() {
			return nil
		}
		if err := held.Release(ctx); err != nil {
			return err
		}
		fmt.Println(time.Now().UnixNano())
	}
	return nil
}

// partner is a partner as a benchmark sees it.
type partner struct {
	in  io.Writer
	out io.Reader
}

// startPartner starts the test binary as a partner.
func startPartner(tb testing.TB, addr string) *partner {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), partnerEnv+"="+addr), os.Stderr
	in, err := cmd.StdinPipe()
	must(tb, err)
	out, err := cmd.StdoutPipe()
	must(tb, err)
	must(tb, cmd.Start())
	tb.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &partner{in, out}
}

// tell makes the partner take the lock, or give it back.
func (p *partner) tell(tb testing.TB) {
	tb.Helper()
	_, err := fmt.Fprintln(p.in)
	must(tb, err)
}

// hear returns when the partner did so, in nanoseconds.
func (p *partner) hear(tb testing.TB) int64 {
	tb.Helper()
	var at int64
	_, err := fmt.Fscan(p.out, &at)
	must(tb, err)
	return at
}
