package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// soon is how long a guest lives that stops or dies.
const soon = 100 * time.Millisecond

// machine is a QEMU that speaks QMP and runs nothing.
type machine struct {
	mode  string
	port  int      // forwarded to nobody
	ended chan end // how QEMU ends

	mu      sync.Mutex
	state   string
	clients map[net.Conn]bool // that have negotiated: they get events
}

// end is how QEMU ends.
type end struct {
	code int
	err  error
}

// pretend is a QEMU until it ends, with an exit status.
func pretend(mode string, args []string) (code int, err error) {
	forward, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // for life
	if err != nil {
		return 1, err
	}
	m := &machine{
		mode: mode, port: forward.Addr().(*net.TCPAddr).Port, ended: make(chan end, 1),
		state: "prelaunch", clients: map[net.Conn]bool{},
	}
	for _, device := range []string{"qmp", "events"} {
		fd, found := descriptor(args, device)
		if !found {
			continue
		}
		socket, err := net.FileListener(os.NewFile(fd, device))
		if err != nil {
			return 1, err
		}
		go func() { m.ended <- end{1, m.serve(socket)} }()
	}
	e := <-m.ended
	return e.code, e.err
}

// serve serves one client after the other.
func (m *machine) serve(socket net.Listener) error {
	for {
		conn, err := socket.Accept()
		if err != nil {
			return err
		}
		if err := m.converse(conn); err != nil {
			return err
		}
	}
}

// converse serves one client.
func (m *machine) converse(conn net.Conn) error {
	defer func() {
		m.mu.Lock()
		delete(m.clients, conn)
		m.mu.Unlock()
		_ = conn.Close()
	}()
	m.say(conn, map[string]any{"QMP": map[string]any{"version": map[string]any{}, "capabilities": []string{}}})
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var request struct {
			Execute string `json:"execute"`
			ID      any    `json:"id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		m.mu.Lock()
		m.clients[conn] = true
		m.mu.Unlock()
		m.say(conn, map[string]any{"return": m.answer(request.Execute), "id": request.ID})
		if request.Execute == "quit" {
			m.ended <- end{}
		}
	}
	return nil
}

// answer runs one command.
func (m *machine) answer(command string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch command {
	case "cont":
		m.state = "running"
		m.live()
	case "query-status":
		return map[string]any{"status": m.state, "running": m.state == "running"}
	case "human-monitor-command":
		return fmt.Sprintf("  TCP[HOST_FORWARD]  12       127.0.0.1 %d       10.0.2.15    22     0     0\r\n", m.port)
	case "ringbuf-read":
		return ""
	}
	return map[string]any{}
}

// live begins the guest's short life.
func (m *machine) live() {
	switch m.mode {
	case crawls:
		if err := os.WriteFile("console.log", []byte("Loading the kernel...\r\n"), 0o600); err != nil {
			m.ended <- end{1, err}
		}
	case dies:
		time.AfterFunc(soon, func() { m.ended <- end{134, errors.New("error: failed to set MSR 0x10a to 0x69")} })
	case stops:
		time.AfterFunc(soon, m.stop)
	}
}

// stop is what KVM does with an instruction that it does not know.
func (m *machine) stop() {
	fmt.Fprint(os.Stderr, "KVM internal error. Suberror: 1\nemulation failure\nEAX=00000010 EBX=00007e00\n")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = "internal-error"
	for conn := range m.clients {
		m.say(conn, map[string]any{"event": "STOP", "timestamp": map[string]any{}})
	}
}

// say writes a message; a client that is gone hears nothing.
func (*machine) say(conn net.Conn, message any) {
	if err := json.NewEncoder(conn).Encode(message); err != nil && !errors.Is(err, net.ErrClosed) {
		fmt.Fprintln(os.Stderr, "badkvm:", err)
	}
}
