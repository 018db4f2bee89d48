package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// fakeQEMU answers on both sockets of a folder as a QEMU does whose machine waits for its identity; how it goes on while the
// state is saved, asked says: an answer, none (""), or its death (an error).
func fakeQEMU(t *testing.T, dir string, asked func() (string, error)) {
	t.Helper()
	serve := func(name string, talk func(net.Conn)) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			if conn, err := l.Accept(); err == nil {
				talk(conn)
			}
		}()
	}
	serve(portName, func(conn net.Conn) { _, _ = io.WriteString(conn, sayReady) })
	serve(socketName, func(conn net.Conn) {
		defer conn.Close() //nolint:errcheck // it is dead
		fmt.Fprintln(conn, `{"QMP": {}}`)
		for read := json.NewDecoder(conn); ; {
			var m struct{ Execute string }
			if read.Decode(&m) != nil {
				return
			}
			answer, err := `{}`, error(nil)
			switch m.Execute {
			case "human-monitor-command":
				text, _ := json.Marshal(usernet)
				answer = string(text)
			case "query-migrate":
				answer, err = asked()
			}
			if err != nil {
				return
			}
			if answer != "" {
				fmt.Fprintf(conn, `{"return": %s}`+"\n", answer)
			}
		}
	})
	if err := os.WriteFile(filepath.Join(dir, stateName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A machine that dies, or hangs, while its state is saved is noticed: at once, or when the time of the snapshot is over.
func TestMachineThatIsNotSaved(t *testing.T) {
	for name, c := range map[string]struct {
		asked func() (string, error)
		limit time.Duration
		want  error
	}{
		"it is saved":     {func() (string, error) { return `{"status": "completed"}`, nil }, time.Minute, nil},
		"it dies":         {func() (string, error) { return "", errEnded }, time.Minute, io.EOF},
		"it is not done":  {func() (string, error) { return `{"status": "active"}`, nil }, 300 * time.Millisecond, errNotReady},
		"it says nothing": {func() (string, error) { return "", nil }, 300 * time.Millisecond, errNotReady},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Chdir(dir) // a socket's name is short
			fakeQEMU(t, dir, c.asked)
			ctx, cancel := context.WithTimeoutCause(t.Context(), c.limit, errNotReady)
			defer cancel()
			if err := (&Provider{}).saveTemplate(ctx, dir); !errors.Is(err, c.want) {
				t.Errorf("it ends with %v, want %v", err, c.want)
			}
			if c.limit == time.Minute && ctx.Err() != nil {
				t.Error("that took the whole time")
			}
		})
	}
}
