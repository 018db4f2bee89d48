package zktest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// Ensemble is several servers that replicate one tree.
type Ensemble struct {
	Servers []*Server
}

// Place is where a server of an ensemble runs: on an address, and below a command that
// takes it to another network, if there is one.
type Place struct {
	Addr    string
	Command []string
}

// StartEnsemble starts n servers as one ensemble, which ends with the test.
func StartEnsemble(tb testing.TB, n int) *Ensemble {
	tb.Helper()
	return StartEnsembleAt(tb, slices.Repeat([]Place{{Addr: loopback}}, n)...)
}

// StartEnsembleAt is StartEnsemble with a server in each place. A port that another
// process took in between is no failure: others are tried.
func StartEnsembleAt(tb testing.TB, places ...Place) *Ensemble {
	tb.Helper()
	ours(tb)
	for try := 0; ; try++ {
		e, err := newEnsemble(tb, places)
		if err != nil {
			tb.Fatalf("write configuration: %v", err)
		}
		for i := range e.Servers {
			e.start(tb, i)
		}
		if err = e.await(); err == nil {
			return e
		}
		if try == 3 || !errors.Is(err, errPortTaken) {
			tb.Fatalf("start ensemble: %v", err)
		}
		for _, s := range e.Servers {
			s.Kill()
		}
	}
}

// newEnsemble writes the configuration of the servers.
func newEnsemble(tb testing.TB, places []Place) (*Ensemble, error) {
	tb.Helper()
	e := &Ensemble{}
	var members []string
	for i, at := range places {
		e.Servers = append(e.Servers, &Server{dir: tb.TempDir(), port: FreePort(), place: at})
		members = append(members, fmt.Sprintf("server.%d=%s:%d:%d", i+1, at.Addr, FreePort(), FreePort()))
	}
	for i, s := range e.Servers {
		lines := append([]string{
			fmt.Sprintf("clientPort=%d", s.port), "initLimit=200", "syncLimit=20", "cnxTimeout=1",
		}, members...)
		if err := writeConfig(s.dir, s.place.Addr, lines); err != nil {
			return nil, err
		}
		data := filepath.Join(s.dir, "data")
		if err := os.MkdirAll(data, 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(data, "myid"), []byte(strconv.Itoa(i+1)), 0o600); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// start starts server i without waiting for it.
func (e *Ensemble) start(tb testing.TB, i int) {
	tb.Helper()
	p, err := startServer(e.Servers[i])
	if err != nil {
		tb.Fatalf("start ZooKeeper: %v", err)
	}
	e.Servers[i].process = p
	tb.Cleanup(p.end)
}

// Await waits until all servers serve.
func (e *Ensemble) Await(tb testing.TB) {
	tb.Helper()
	if err := e.await(); err != nil {
		tb.Fatal(err)
	}
}

func (e *Ensemble) await() error {
	for i, s := range e.Servers {
		if err := s.await(func(mode string) bool { return mode != "" }); err != nil {
			return fmt.Errorf("server %d: %w", i, err)
		}
	}
	return nil
}

// Addrs returns the "host:port" of all servers.
func (e *Ensemble) Addrs() []string {
	addrs := make([]string, len(e.Servers))
	for i, s := range e.Servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Kill ends server i at once.
func (e *Ensemble) Kill(i int) { e.Servers[i].Kill() }

// Restart starts the servers that were killed and waits until all serve.
func (e *Ensemble) Restart(tb testing.TB, killed ...int) {
	tb.Helper()
	for _, i := range killed {
		e.start(tb, i)
	}
	e.Await(tb)
}

// Leader returns the index of the server that leads, and waits for one.
func (e *Ensemble) Leader(tb testing.TB) int {
	tb.Helper()
	leader := -1
	Eventually(tb, func() bool {
		for i, s := range e.Servers {
			if !s.process.exited() && s.mode() == "leader" {
				leader = i
			}
		}
		return leader >= 0
	}, "the ensemble has a leader")
	return leader
}
