// Package statsdtest is a server of statsd for tests: it keeps the packets as they come.
package statsdtest

import (
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"poolkeeper/configs/statsd"
	"poolkeeper/test/zktest"
)

// Server is where figures are sent.
type Server struct {
	Address string

	mu      sync.Mutex
	packets []string
}

// Start starts one, for the time of a test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{Address: conn.LocalAddr().String()}
	var group sync.WaitGroup
	group.Go(func() {
		buffer := make([]byte, 1<<16)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.packets = append(s.packets, string(buffer[:n]))
			s.mu.Unlock()
		}
	})
	tb.Cleanup(func() {
		_ = conn.Close()
		group.Wait()
	})
	return s
}

// Client is one that sends to the server, for the time of a test.
func (s *Server) Client(tb testing.TB) *statsd.Client {
	tb.Helper()
	c := statsd.New(s.Address)
	ctx := tb.Context()
	var group sync.WaitGroup
	group.Go(func() { c.Run(ctx, nil) })
	tb.Cleanup(group.Wait)
	zktest.Eventually(tb, c.Sends, "the client knows its server")
	return c
}

// Packets are those that have come.
func (s *Server) Packets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.packets)
}

// Lines are the figures that have come.
func (s *Server) Lines() []string {
	var lines []string
	for _, p := range s.Packets() {
		lines = append(lines, strings.Split(p, "\n")...)
	}
	return lines
}
