package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// qmpTime bounds one conversation with QEMU, which serves one client at a time.
const qmpTime = 10 * time.Second

// qmp is a conversation with one QEMU (docs/interop/qmp-spec.txt of QEMU).
type qmp struct {
	conn net.Conn
	dec  *json.Decoder
	ctx  context.Context // bounds the conversation
	stop func() bool     // no longer bound by ctx
}

// message is what QEMU sends: an answer, an error or, now and then, an event.
type message struct {
	ID       string          `json:"id"` // of the command that is answered
	Greeting json.RawMessage `json:"QMP"`
	Return   json.RawMessage `json:"return"`
	Event    string          `json:"event"`
	Data     eventData       `json:"data"` // of the event
	Error    *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

// eventData is what an event may say.
type eventData struct {
	Guest  bool   `json:"guest"` // the guest itself did it
	Reason string `json:"reason"`
}

func newQMP(conn net.Conn) *qmp { return &qmp{conn: conn, dec: json.NewDecoder(conn)} }

// dialQMP connects to a socket of the QEMU of a guest's folder and waits until it
// answers, for qmpTime at most: one that is still starting does so when its main
// loop runs. The conversation then lasts until ctx ends.
func dialQMP(ctx context.Context, dir, socket string) (*qmp, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close() //nolint:errcheck // only read
	shaking, cancel := context.WithTimeout(ctx, qmpTime)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(shaking, "unix", throughFD(d, socket))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", filepath.Join(dir, socket), err)
	}
	q := newQMP(conn)
	q.bind(shaking)
	if _, err := q.receive(); err != nil {
		return nil, errors.Join(err, q.close())
	}
	if err := q.execute("qmp_capabilities", nil, nil); err != nil {
		return nil, errors.Join(err, q.close())
	}
	q.bind(ctx)
	return q, nil
}

// bind lets the conversation end with ctx, and no longer with what it was bound to.
func (q *qmp) bind(ctx context.Context) {
	if q.stop != nil {
		q.stop()
	}
	q.ctx = ctx
	q.stop = context.AfterFunc(ctx, func() { _ = q.conn.SetDeadline(time.Unix(1, 0)) })
}

func (q *qmp) close() error {
	q.stop()
	return q.conn.Close()
}

// receive reads the next message that is not an event.
func (q *qmp) receive() (message, error) {
	for {
		var m message
		if err := q.dec.Decode(&m); err != nil {
			if q.ctx.Err() != nil {
				err = context.Cause(q.ctx)
			}
			return m, fmt.Errorf("read from QEMU: %w", err)
		}
		if m.Error != nil {
			return m, fmt.Errorf("QEMU says: %s: %s", m.Error.Class, m.Error.Desc)
		}
		if m.Return != nil || m.Greeting != nil {
			return m, nil
		}
	}
}

// send asks for a command. Its answer carries the command as its id.
func (q *qmp) send(command string, arguments map[string]any) error {
	request := map[string]any{"execute": command, "id": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(q.conn).Encode(request); err != nil {
		return fmt.Errorf("%s: write to QEMU: %w", command, err)
	}
	return nil
}

// execute runs one command. Its answer is decoded into result, unless nil.
func (q *qmp) execute(command string, arguments map[string]any, result any) error {
	if err := q.send(command, arguments); err != nil {
		return err
	}
	m, err := q.receive()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(m.Return, result); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return nil
}

// converse has one conversation.
func converse(ctx context.Context, dir string, talk func(*qmp) error) error {
	ctx, cancel := context.WithTimeout(ctx, qmpTime)
	defer cancel()
	q, err := dialQMP(ctx, dir, socketName)
	if err != nil {
		return err
	}
	return errors.Join(talk(q), q.close())
}

// askStatus asks for the state of the machine: "running" when all is well.
func askStatus(ctx context.Context, dir string) (string, error) {
	var answer struct {
		Status string `json:"status"`
	}
	err := converse(ctx, dir, func(q *qmp) error { return q.execute("query-status", nil, &answer) })
	return answer.Status, err
}

// begin asks which port the kernel gave to the guest's forwarding, and lets the
// guest run.
func begin(ctx context.Context, dir string) (port int, err error) {
	err = converse(ctx, dir, func(q *qmp) error {
		if port, err = q.forwarded(); err != nil {
			return err
		}
		return q.execute("cont", nil, nil)
	})
	return port, err
}

// forwarded asks which port the kernel gave to the guest's forwarding.
func (q *qmp) forwarded() (int, error) {
	var answer string
	command := map[string]any{"command-line": "info usernet"}
	if err := q.execute("human-monitor-command", command, &answer); err != nil {
		return 0, err
	}
	return parsePort(answer)
}

// give passes an open file to QEMU, under a name.
func (q *qmp) give(f *os.File, name string) error {
	conn, ok := q.conn.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("getfd: %w", errors.ErrUnsupported)
	}
	text, err := json.Marshal(map[string]any{"execute": "getfd", "arguments": map[string]any{"fdname": name}})
	if err != nil {
		return err
	}
	if _, _, err := conn.WriteMsgUnix(append(text, '\n'), unix.UnixRights(int(f.Fd())), nil); err != nil {
		return fmt.Errorf("getfd: write to QEMU: %w", err)
	}
	if _, err := q.receive(); err != nil {
		return fmt.Errorf("getfd: %w", err)
	}
	return nil
}

// parsePort finds the forwarded port in the table that people are shown: there
// is no other way to ask.
func parsePort(table string) (int, error) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line) // protocol[state] fd address port …
		if len(f) > 3 && f[0] == "TCP[HOST_FORWARD]" {
			port, err := strconv.ParseUint(f[3], 10, 16)
			if err == nil && port > 0 {
				return int(port), nil
			}
		}
	}
	return 0, fmt.Errorf("no forwarded port in %q", table)
}

// quit tells QEMU to end.
func quit(ctx context.Context, dir string) error {
	return converse(ctx, dir, func(q *qmp) error { return q.execute("quit", nil, nil) })
}
