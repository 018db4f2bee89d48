package dispatch

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"poolkeeper/zkmodel/event"
)

// Headers of a webhook's request.
const (
	// SignatureHeader has "sha256=" and the HMAC-SHA256 of the body in hexadecimal digits.
	SignatureHeader = "X-Poolkeeper-Signature"
	// DeliveryHeader has the event's id, which is the same each time that it is sent.
	DeliveryHeader = "X-Poolkeeper-Delivery"
)

// temporary is the exit code of a command that asks to be called again (EX_TEMPFAIL).
const temporary = 75

// errRefused says that a sink does not take this event, and would not take it later.
var errRefused = errors.New("the sink refuses it")

// target is where a sink's events go. send fails with errRefused when it is of no use to
// send the event again for long; flush makes what was sent outlast a crash of the host.
type target interface {
	send(ctx context.Context, e event.Event, data []byte) error
	flush(ctx context.Context) error
	close()
}

// open makes the target of a sink.
func open(s Sink) target {
	switch {
	case s.File != "":
		return &file{path: s.File, turn: make(chan struct{}, 1)}
	case s.Command != "":
		return command{s.Command}
	default:
		return &webhook{url: s.Webhook, key: s.Key, client: &http.Client{
			Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}}
	}
}

// file appends a line an event. Its system calls may never return, where a file system is
// away; they are made beside the caller, who leaves them when its time is over.
type file struct {
	path string
	turn chan struct{} // held by what works on f
	f    *os.File
	torn bool // f may end within a line: of a write that failed, or was cut off by a crash
}

// beside runs work when what was left before has ended, and returns with ctx at the latest.
func (f *file) beside(ctx context.Context, work func() error) error {
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("write to %s: an earlier try has not ended: %w", f.path, ctx.Err())
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-f.turn }()
		done <- work()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("write to %s: it does not end: %w", f.path, ctx.Err())
	}
}

func (f *file) send(ctx context.Context, _ event.Event, data []byte) error {
	return f.beside(ctx, func() error { return f.write(ctx, append(data, '\n')) })
}

func (f *file) write(ctx context.Context, line []byte) error {
	// One that was moved away is left; the next line goes to the new one.
	if f.f != nil && !f.same() {
		f.shut()
	}
	if f.f == nil {
		// A pipe that nobody reads is an error at once.
		opened, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK, 0o640)
		if err != nil {
			return err
		}
		f.f, f.torn = opened, endsWithin(f.path)
	}
	if until, ok := ctx.Deadline(); ok {
		_ = f.f.SetWriteDeadline(until) // of a pipe; others have none
	}
	if f.torn { // what is there of a line stays one by itself; its event is sent again
		line = append([]byte{'\n'}, line...)
	}
	_, err := f.f.Write(line)
	f.torn = err != nil
	return err
}

// endsWithin reports whether a file ends within a line.
func endsWithin(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false // we may only write there
	}
	defer func() { _ = f.Close() }()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return err == nil && last[0] != '\n'
}

func (f *file) same() bool {
	ours, err := f.f.Stat()
	there, serr := os.Stat(f.path)
	return err == nil && serr == nil && os.SameFile(ours, there)
}

// flush syncs what can be: a pipe or a device cannot.
func (f *file) flush(ctx context.Context) error {
	return f.beside(ctx, func() error {
		if f.f == nil {
			return nil
		}
		err := f.f.Sync()
		if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
			return nil
		}
		return err
	})
}

// close waits for nothing. What was left goes when its system call ends, and nothing
// refers to it.
func (f *file) close() {
	select {
	case f.turn <- struct{}{}:
		go func() {
			defer func() { <-f.turn }()
			f.shut()
		}()
	default:
	}
}

func (f *file) shut() {
	if f.f != nil {
		_ = f.f.Close() // flushed before its cursor was written
		f.f = nil
	}
}

// command runs a program for each event, which is on its standard input.
type command struct{ path string }

func (c command) send(ctx context.Context, e event.Event, data []byte) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, c.path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(data), io.Discard, &limited{&said}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=" + os.Getenv("LANG"), "EVENT_ID=" + e.ID, "EVENT_TYPE=" + e.Type, "EVENT_SUBJECT=" + e.Subject}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it ends with all that it has started
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) && ctx.Err() == nil {
		err = nil // it exited with 0, and what it has left in the background has its standard error
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
		if exit.ExitCode() != temporary {
			err = fmt.Errorf("%w: %w", errRefused, err)
		}
	}
	return err
}

func (command) flush(context.Context) error { return nil }
func (command) close()                      {}

// limited keeps the beginning of what is written.
type limited struct{ *bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	if room := 1024 - l.Len(); room > 0 {
		_, _ = l.Buffer.Write(p[:min(room, len(p))]) // never fails
	}
	return len(p), nil
}

// webhook posts each event.
type webhook struct {
	url, key string
	client   *http.Client
}

func (w *webhook) send(ctx context.Context, e event.Event, data []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(data))
	if err != nil {
		return errors.New("the address cannot be used") // it may hold a token
	}
	r.Header.Set("Content-Type", "application/cloudevents+json")
	r.Header.Set("User-Agent", "poolkeeper")
	r.Header.Set(DeliveryHeader, e.ID)
	if w.key != "" {
		r.Header.Set(SignatureHeader, Sign(w.key, data))
	}
	answer, err := w.client.Do(r)
	if err != nil {
		return unaddressed(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10)) // so that the connection can be used again
	_ = answer.Body.Close()
	switch code := answer.StatusCode; {
	case code/100 == 2:
		return nil
	case code/100 == 5, code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code == http.StatusTooEarly:
		return fmt.Errorf("it answers %s", answer.Status)
	default:
		return fmt.Errorf("%w: it answers %s", errRefused, answer.Status)
	}
}

func (w *webhook) flush(context.Context) error { return nil }
func (w *webhook) close()                      { w.client.CloseIdleConnections() }

// unaddressed is an error without the address that the library puts before it.
func unaddressed(err error) error {
	if u := errors.Unwrap(err); u != nil {
		return u
	}
	return err
}

// Sign is the signature of a body.
func Sign(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = mac.Write(body) // never fails
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
