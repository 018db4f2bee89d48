// Package sshd is a machine for tests, as far as its host keys show.
package sshd

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key makes a host key of a type: ed25519, ecdsa or rsa.
func Key(tb testing.TB, kind string) ssh.Signer {
	tb.Helper()
	var key any
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		err = fmt.Errorf("no such type of key: %s", kind)
	}
	if err != nil {
		tb.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Authorized is a key as a line of known hosts has it.
func Authorized(key ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
}

// Listen opens a port of this host until the test ends; 0 is any.
func Listen(tb testing.TB, port int) net.Listener {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	return l
}

// Serve answers on a listener with some host keys, until the test ends or stop is called,
// and lets nobody stay.
func Serve(tb testing.TB, l net.Listener, keys ...ssh.Signer) (stop func()) {
	tb.Helper()
	config := &ssh.ServerConfig{NoClientAuth: true}
	for _, k := range keys {
		config.AddHostKey(k)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _, _, _ = ssh.NewServerConn(conn, config) // clients only look at the keys
			_ = conn.Close()
		}
	}()
	stop = func() { _ = l.Close(); <-done }
	tb.Cleanup(stop)
	return stop
}

// Machine is a machine with one host key.
type Machine struct {
	Port  int
	Key   string // as Authorized has it
	Close func() // ends it before the test ends
}

// Start starts a machine, with a key of its own, at a port; 0 is any.
func Start(tb testing.TB, port int) Machine {
	tb.Helper()
	l, key := Listen(tb, port), Key(tb, "ed25519")
	return Machine{Port: l.Addr().(*net.TCPAddr).Port, Key: Authorized(key), Close: Serve(tb, l, key)}
}
