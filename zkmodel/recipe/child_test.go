package recipe_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"poolkeeper/zkmodel/recipe"
)

// A child is a process of its own that competes for a lock and writes a register
// under it, until its standard input ends. It tells of every call before and
// after it, so that a test may stop or kill it at any moment.

// childEnv holds "<client> <servers> <root>" in a child.
const childEnv = "RECIPE_TEST_CHILD"

// childMain is the main function of a child; it returns false in a test.
func childMain() bool {
	var client int
	var servers, root string
	if n, _ := fmt.Sscan(os.Getenv(childEnv), &client, &servers, &root); n != 3 {
		return false
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := recipe.Dial(recipe.Config{Servers: strings.Split(servers, ","), Chroot: root, Timeout: short})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return true
	}
	defer c.Close()
	w := &competitor{client: client, out: json.NewEncoder(os.Stdout)}
	_ = c.Serve(ctx, w.compete)
	return true
}

// competitor is what a child does.
type competitor struct {
	client int
	mu     sync.Mutex
	out    *json.Encoder
	writes int
}

// tell writes e; a line that cannot be written has no reader any more.
func (w *competitor) tell(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.Client = w.client
	_ = w.out.Encode(e)
}

// call does op and tells of it.
func (w *competitor) call(op, value string, f func() (string, error)) error {
	e := event{Op: op, Value: value, Call: time.Now().UnixNano()}
	w.tell(e)
	got, err := f()
	e.Return, e.Result = time.Now().UnixNano(), "ok"
	if got != "" {
		e.Value = got
	}
	switch {
	case err == nil:
	case errors.Is(err, recipe.ErrFenceLost), errors.Is(err, recipe.ErrVersion), op == "read", op == "acquire":
		e.Result = "not"
	default:
		e.Result, e.Return = "unknown", 1<<63-1
	}
	w.tell(e)
	return err
}

// compete takes the lock, writes, reads and gives it back, again and again.
func (w *competitor) compete(ctx context.Context, s *recipe.Session) error {
	for ctx.Err() == nil {
		var held *recipe.Held
		err := w.call("acquire", "", func() (_ string, err error) {
			held, err = recipe.NewLock(s, "/lock", strconv.Itoa(w.client)).Acquire(ctx)
			return "", err
		})
		if err != nil {
			continue
		}
		w.use(ctx, held)
		if held.Context().Err() == nil {
			_ = w.call("release", "", func() (string, error) { return "", held.Release(context.WithoutCancel(ctx)) })
		} else {
			now := time.Now().UnixNano() // it was lost at some time since it was taken
			w.tell(event{Op: "lose", Call: now, Return: now, Result: "ok"})
			_ = held.Release(ctx)
		}
		wait(ctx, time.Millisecond)
	}
	return nil
}

// use writes under the lock for as long as it is held, a few times.
func (w *competitor) use(ctx context.Context, held *recipe.Held) {
	s := held.Session()
	bound, cancel := held.Bind(ctx)
	defer cancel()
	for range 3 {
		w.writes++
		value, version := fmt.Sprintf("%d.%d", w.client, w.writes), recipe.AnyVersion
		err := w.call("read", "", func() (string, error) {
			if err := s.Sync(bound); err != nil {
				return "", err
			}
			data, stat, err := s.Get(bound, "/register")
			if w.writes%2 == 0 {
				version = stat.Version // otherwise the fence alone must do
			}
			return string(data), err
		})
		if err == nil {
			// Not bound to the lock: a process that does not notice its loss must be stopped as well.
			err = w.call("write", value, func() (string, error) {
				_, err := held.Set(ctx, "/register", []byte(value), version)
				return "", err
			})
		}
		if err != nil {
			return
		}
		wait(bound, 5*time.Millisecond)
	}
}

// wait returns after d or at the end of ctx.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// child is a child process as a test sees it.
type child struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	done   chan struct{}
	events []event // to be read when done is closed
}

// startChild starts the test binary as a child.
func startChild(t *testing.T, client int, servers []string, root string) *child {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %s %s", childEnv, client, strings.Join(servers, ","), root))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	ch := &child{cmd: cmd, stdin: stdin, done: make(chan struct{})}
	go func() {
		defer close(ch.done)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var e event
			if json.Unmarshal(lines.Bytes(), &e) == nil { // the last line of one that was killed may be cut
				ch.events = append(ch.events, e)
			}
		}
	}()
	t.Cleanup(func() { ch.end(true) })
	return ch
}

// signal sends sig to the child.
func (ch *child) signal(sig syscall.Signal) { _ = ch.cmd.Process.Signal(sig) }

// end ends the child, orderly or not, and returns its events.
func (ch *child) end(kill bool) []event {
	if kill {
		ch.signal(syscall.SIGKILL)
	}
	_ = ch.stdin.Close()
	<-ch.done
	_ = ch.cmd.Wait()
	return ch.events
}
