// Package zktest gives tests a real ZooKeeper: Debian's package, run as a child
// of the test on loopback ports and in a folder of its own.
//
// Most tests want Shared and Root: one server for the whole test process, and a
// fresh part of its tree. Start gives a server that a test may stop and pause,
// StartEnsemble three of them, and Proxy a network between client and server
// that can be cut or slowed down. Kazoo runs Python's client against them.
//
// Every server ends with the test process however that ends, even by SIGKILL: a
// small shell beside it waits for the end of a pipe that only the test holds.
package zktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// tick is the servers' unit of time. They grant session time-outs from 2 ticks.
const tick = 100 * time.Millisecond

// Given is the variable that names a ZooKeeper, by its port, which is there already: Shared takes it, and
// tests that start their own, or Python's client, skip.
const Given = "ZKTEST_PORT"

// Server is one ZooKeeper server.
type Server struct {
	dir        string
	port       int
	securePort int
	heap       string
	place      Place
	process    *process
}

// loopback is where servers run if nothing else is said.
const loopback = "127.0.0.1"

// Option changes how a server is started.
type Option func(*settings)

type settings struct {
	tls   *CA
	heap  string
	extra []string
}

// WithHeap gives the server that much memory, such as "1g", for large trees.
func WithHeap(size string) Option { return func(s *settings) { s.heap = size } }

// WithTLS also opens a port for TLS, with a certificate of ca, that demands one
// of ca from clients.
func WithTLS(ca *CA) Option { return func(s *settings) { s.tls = ca } }

// WithConfig adds lines to the server's zoo.cfg.
func WithConfig(lines ...string) Option {
	return func(s *settings) { s.extra = append(s.extra, lines...) }
}

// Start starts a standalone server, which ends with the test.
func Start(tb testing.TB, opts ...Option) *Server {
	tb.Helper()
	ours(tb)
	s, err := launch(tb.TempDir(), opts...)
	if err != nil {
		tb.Fatalf("start ZooKeeper: %v", err)
	}
	tb.Cleanup(s.process.end)
	return s
}

// ours skips a test that cannot do with the server that is given.
func ours(tb testing.TB) {
	tb.Helper()
	if os.Getenv(Given) != "" {
		tb.Skip("needs a server of its own, or Python")
	}
}

// launch starts a standalone server in dir and waits until it serves. A port
// that another process took in between is no failure: others are tried.
func launch(dir string, opts ...Option) (*Server, error) {
	var set settings
	for _, opt := range opts {
		opt(&set)
	}
	for try := 0; ; try++ {
		s := &Server{dir: dir, port: FreePort(), heap: set.heap, place: Place{Addr: loopback}}
		lines := append([]string{fmt.Sprintf("clientPort=%d", s.port)}, set.extra...)
		if set.tls != nil {
			s.securePort = FreePort()
			lines = append(lines, set.tls.serverConfig(dir, s.securePort)...)
		}
		if err := writeConfig(dir, loopback, lines); err != nil {
			return nil, err
		}
		err := s.run()
		if err == nil || try == 3 || !errors.Is(err, errPortTaken) {
			return s, err
		}
	}
}

// run starts the process and waits until it serves.
func (s *Server) run() error {
	p, err := startServer(s)
	if err != nil {
		return err
	}
	s.process = p
	if err := s.await(func(mode string) bool { return mode != "" }); err != nil {
		p.end()
		return err
	}
	return nil
}

// Addr returns the server's "host:port".
func (s *Server) Addr() string { return fmt.Sprintf("%s:%d", s.place.Addr, s.port) }

// SecureAddr returns the "host:port" of the TLS port.
func (s *Server) SecureAddr() string { return fmt.Sprintf("%s:%d", s.place.Addr, s.securePort) }

// CPU is how much time of a processor the server has taken.
func (s *Server) CPU(tb testing.TB) time.Duration {
	tb.Helper()
	p, err := procfs.NewProc(s.process.pid)
	if err != nil {
		tb.Fatalf("processor time of ZooKeeper: %v", err)
	}
	stat, err := p.Stat()
	if err != nil {
		tb.Fatalf("processor time of ZooKeeper: %v", err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// Kill ends the server at once (SIGKILL), as a power cut would.
func (s *Server) Kill() { s.process.end() }

// Data is the folder of its transactions and snapshots.
func (s *Server) Data() string { return filepath.Join(s.dir, "data", "version-2") }

// Restart starts a server that was killed on its old data and ports.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if err := s.run(); err != nil {
		tb.Fatalf("restart ZooKeeper: %v", err)
	}
	tb.Cleanup(s.process.end)
}

// Pause stops the server's process (SIGSTOP) until Resume. It waits until all its threads stand still: on a busy
// machine some go on for a while, and may answer.
func (s *Server) Pause() {
	s.process.signal(syscall.SIGSTOP)
	for !s.process.stands() {
		pause(time.Millisecond)
	}
}

// Resume lets a paused server go on.
func (s *Server) Resume() { s.process.signal(syscall.SIGCONT) }

// startPatience is how long a server may take to serve: three that begin at once have taken more than a minute on a
// machine at a load of 57.
const startPatience = 3 * time.Minute

// await polls the server until ok accepts its mode: standalone, leader or
// follower, or empty while it does not serve.
func (s *Server) await(ok func(mode string) bool) error {
	deadline := time.Now().Add(startPatience)
	for !ok(s.mode()) {
		switch {
		case s.process.exited():
			return s.explain(errors.New("the server ended"))
		case time.Now().After(deadline):
			return s.explain(errors.New("the server does not serve"))
		}
		pause(20 * time.Millisecond)
	}
	return nil
}

// mode asks the server what it is, by ZooKeeper's command srvr.
func (s *Server) mode() string {
	answer, err := s.command("srvr", time.Second)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(answer, "\nMode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	return mode
}

// Requests returns how many requests the server has received, pings included.
func (s *Server) Requests(tb testing.TB) int {
	tb.Helper()
	answer, err := s.command("mntr", time.Minute) // it walks through the whole tree
	if err != nil {
		tb.Fatalf("ask ZooKeeper: %v", err)
	}
	var n int
	_, rest, _ := strings.Cut(answer, "zk_packets_received\t")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		tb.Fatalf("read answer of mntr: %v", err)
	}
	return n
}

// Processor returns for how many seconds the server has had a processor.
func (s *Server) Processor(tb testing.TB) float64 {
	tb.Helper()
	return processorOf(tb, s.process.pid)
}

// ProcessorOfTest is Processor of the test itself.
func ProcessorOfTest(tb testing.TB) float64 {
	tb.Helper()
	return processorOf(tb, os.Getpid())
}

func processorOf(tb testing.TB, pid int) float64 {
	tb.Helper()
	proc, err := procfs.NewProc(pid)
	if err != nil {
		tb.Fatalf("find process: %v", err)
	}
	stat, err := proc.Stat()
	if err != nil {
		tb.Fatalf("read state of process: %v", err)
	}
	return stat.CPUTime()
}

// command sends one of ZooKeeper's four-letter commands, and waits so long for the answer.
func (s *Server) command(word string, limit time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr())
	if err != nil {
		return "", err
	}
	defer drop(conn)
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	return string(answer), err
}

// explain adds the end of the server's log to err.
func (s *Server) explain(err error) error {
	text, rerr := os.ReadFile(filepath.Join(s.dir, "log"))
	if rerr != nil {
		return errors.Join(err, rerr)
	}
	if strings.Contains(string(text), "BindException") {
		err = fmt.Errorf("%w: %w", err, errPortTaken)
	}
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return fmt.Errorf("%w; its log ends:\n%s", err, text)
}

// shared is the server of the process. A package variable is what outlives one
// test; nothing else here has any.
var shared struct {
	sync.Mutex
	server *Server
	err    error
	roots  int
}

// Shared returns the one server of the test process, and starts it when it is
// asked for first. It ends with the process; tests must not stop it.
func Shared(tb testing.TB) *Server {
	tb.Helper()
	s, err := ForExamples()
	if err != nil {
		tb.Fatalf("start shared ZooKeeper: %v", err)
	}
	return s
}

// ForExamples is Shared for those who have no testing.TB.
func ForExamples() (*Server, error) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = launchShared()
	}
	return shared.server, shared.err
}

// launchShared starts the server of the process. No test owns its folder, which
// the watchdog removes.
func launchShared() (*Server, error) {
	if port, err := strconv.Atoi(os.Getenv(Given)); err == nil {
		return &Server{port: port, place: Place{Addr: loopback}}, nil
	}
	dir, err := os.MkdirTemp("", "zktest-")
	if err != nil {
		return nil, err
	}
	return launch(dir)
}

// Root returns a path that no other test of the process uses, to be taken as chroot.
func Root(tb testing.TB) string {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	shared.roots++
	name := strings.Map(func(r rune) rune {
		if r == '/' || r < '!' || r > '~' {
			return '_'
		}
		return r
	}, tb.Name())
	return fmt.Sprintf("/%s-%d", name, shared.roots)
}
