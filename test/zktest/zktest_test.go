package zktest

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStart(t *testing.T) {
	s := Start(t)
	if mode := s.mode(); mode != "standalone" {
		t.Fatalf("mode %q", mode)
	}
	s.Kill()
	if mode := s.mode(); mode != "" {
		t.Fatalf("mode %q after kill", mode)
	}
	s.Restart(t)
	if mode := s.mode(); mode != "standalone" {
		t.Fatalf("mode %q after restart", mode)
	}
}

func TestShared(t *testing.T) {
	s := Shared(t)
	if s != Shared(t) {
		t.Fatal("two shared servers")
	}
	if Root(t) == Root(t) {
		t.Fatal("one root twice")
	}
	if s.Requests(t) < 0 {
		t.Fatal("no count")
	}
}

func TestStartTLS(t *testing.T) {
	s := Start(t, WithTLS(NewCA(t)))
	if mode := s.mode(); mode != "standalone" {
		t.Fatalf("mode %q", mode)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "server.pem")); err != nil {
		t.Fatal(err)
	}
}
