package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/builder"
	"poolkeeper/test/zktest"
)

// serviceManager hears what daemons tell systemd.
type serviceManager struct {
	mu   sync.Mutex
	told []string
}

// newServiceManager is where $NOTIFY_SOCKET leads to for the rest of the test.
func newServiceManager(t *testing.T) *serviceManager {
	t.Helper()
	path := fmt.Sprintf("@poolkeeper-%d-%d", os.Getpid(), time.Now().UnixNano()) // no path: a TMPDIR may be too long for one
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NOTIFY_SOCKET", path)
	m := &serviceManager{}
	var reader sync.WaitGroup
	reader.Go(func() {
		buffer := make([]byte, 1<<10)
		for {
			n, err := socket.Read(buffer)
			if err != nil {
				return // the test is over
			}
			m.mu.Lock()
			m.told = append(m.told, string(buffer[:n]))
			m.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = socket.Close()
		reader.Wait()
	})
	return m
}

// heard counts the messages that begin so.
func (m *serviceManager) heard(beginning string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, message := range m.told {
		if strings.HasPrefix(message, beginning) {
			n++
		}
	}
	return n
}

// patient is a daemon whose health a test decides.
type patient struct {
	mu    sync.Mutex
	ready error
	check error
}

func (p *patient) set(ready, check error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.check = ready, check
}

func (p *patient) Ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ready
}

func (p *patient) Check(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.check
}

func TestSystemdIsTold(t *testing.T) {
	m := newServiceManager(t)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	p := &patient{}
	p.set(errors.New("no session\nwith ZooKeeper"), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var teller sync.WaitGroup
	teller.Go(func() { tellSystemd(ctx, site{log: hclog.NewNullLogger()}, p) })
	eventually := func(what, beginning string) {
		t.Helper()
		before := m.heard(beginning)
		zktest.Eventually(t, func() bool { return m.heard(beginning) > before }, "%s", what)
	}
	eventually("it waits, and asks for time", extend+"\nSTATUS=Not ready: no session; with ZooKeeper")
	if m.heard("READY=1") != 0 {
		t.Error("a daemon that waits is called ready")
	}
	p.set(nil, nil)
	zktest.Eventually(t, func() bool { return m.heard("READY=1\nSTATUS=Running") == 1 }, "it is ready")
	eventually("it lives", "WATCHDOG=1")
	p.set(errors.New("no session"), nil)
	zktest.Eventually(t, func() bool { return m.heard("STATUS=Not ready: no session") == 1 }, "it says why it does nothing")
	eventually("it lives all the same", "WATCHDOG=1")
	p.set(nil, errors.New("stuck"))
	zktest.Eventually(t, func() bool { return m.heard("STATUS=Running") == 1 }, "it is told so")
	alive := m.heard("WATCHDOG=1")
	time.AfterFunc(200*time.Millisecond, cancel)
	teller.Wait()
	if n := m.heard("WATCHDOG=1"); n > alive+1 { // one may have been on its way
		t.Errorf("a daemon that is stuck gave %d signs of life", n-alive)
	}
	zktest.Eventually(t, func() bool { return m.heard("STOPPING=1") == 1 }, "it stops")
}

// A builder whose host cannot build has started, and says what it lacks.
func TestWithdrawnBuilderHasStarted(t *testing.T) {
	m := newServiceManager(t)
	p := &patient{}
	p.set(fmt.Errorf("%w: no logs", builder.ErrWithdrawn), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var teller sync.WaitGroup
	teller.Go(func() { tellSystemd(ctx, site{log: hclog.NewNullLogger()}, p) })
	const not = "\nSTATUS=Not ready: this builder has withdrawn from building: no logs"
	zktest.Eventually(t, func() bool { return m.heard("READY=1"+not) == 1 }, "it has started")
	tellReload(site{log: hclog.NewNullLogger()}, p)(nil)
	zktest.Eventually(t, func() bool { return m.heard("READY=1"+not) == 2 }, "it has read its configuration again")
	cancel()
	teller.Wait()
}

func TestReloadIsTold(t *testing.T) {
	m := newServiceManager(t)
	p := &patient{}
	s := site{log: hclog.NewNullLogger()}
	tellReload(s, p)(nil)
	tellReload(s, p)(errors.New("a.yaml:1: wrong\na.yaml:2: wrong"))
	p.set(errors.New("no session"), nil)
	tellReload(s, p)(nil)
	zktest.Eventually(t, func() bool {
		return m.heard("RELOADING=1\nMONOTONIC_USEC=") == 2 && m.heard("READY=1\nSTATUS=Running") == 2 &&
			m.heard("READY=1\nSTATUS=Running with the old configuration: a.yaml:1: wrong; a.yaml:2: wrong") == 1
	}, "it is told")
}
