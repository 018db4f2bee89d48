package zktest

import (
	"net"
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
	if one, two := Root(t), Root(t); one == two {
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

func TestEnsemble(t *testing.T) {
	e := StartEnsemble(t, 3)
	leader := e.Leader(t)
	e.Kill(leader)
	if next := e.Leader(t); next == leader {
		t.Fatal("the dead server leads")
	}
	e.Restart(t, leader)
}

func TestProxy(t *testing.T) {
	s := Start(t)
	p := StartProxy(t, s.Addr())
	through := *s
	through.port = p.listener.Addr().(*net.TCPAddr).Port
	if mode := through.mode(); mode != "standalone" {
		t.Fatalf("mode %q through proxy", mode)
	}
	p.CutDown()
	if mode := through.mode(); mode != "" {
		t.Fatalf("mode %q through cut proxy", mode)
	}
	p.Heal()
	if mode := through.mode(); mode != "standalone" {
		t.Fatalf("mode %q through healed proxy", mode)
	}
}

func TestKazoo(t *testing.T) {
	k := StartKazoo(t, Shared(t).Addr(), Root(t), `
zk.ensure_path("/x")
say(zk.exists("/x") is not None, hear())
`)
	k.Say("hello")
	k.Expect("True hello")
}
