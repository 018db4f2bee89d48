package node

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/test/sshd"
)

// serveWith answers with a host key and nothing but some algorithms.
func serveWith(tb testing.TB, l net.Listener, only ssh.Config, keys ...ssh.Signer) {
	tb.Helper()
	config := &ssh.ServerConfig{Config: only, NoClientAuth: true}
	for _, k := range keys {
		config.AddHostKey(k)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			all.Go(func() {
				_, _, _, _ = ssh.NewServerConn(conn, config) // the scan hangs up
				_ = conn.Close()
			})
		}
	})
	tb.Cleanup(func() { _ = l.Close(); all.Wait() })
}

// Servers that were hardened, and network appliances that were not, show their keys as well.
func TestScanOffersWhatTheServerTakes(t *testing.T) {
	t.Parallel()
	for name, only := range map[string]ssh.Config{
		"hardened":  {KeyExchanges: []string{ssh.KeyExchangeDH16SHA512}, Ciphers: []string{ssh.CipherAES256GCM}, MACs: []string{ssh.HMACSHA512ETM}},
		"appliance": {KeyExchanges: []string{ssh.InsecureKeyExchangeDH1SHA1}, Ciphers: []string{ssh.InsecureCipherAES128CBC}, MACs: []string{ssh.HMACSHA1}},
		"old":       {KeyExchanges: []string{ssh.InsecureKeyExchangeDH14SHA1}, Ciphers: []string{ssh.InsecureCipherTripleDESCBC}, MACs: []string{ssh.InsecureHMACSHA196}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := []ssh.Signer{sshd.Key(t, "ecdsa"), sshd.Key(t, "rsa")}
			l := sshd.Listen(t, 0)
			serveWith(t, l, only, keys...)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			got, err := NewScanner().Keys(ctx, l.Addr().String())
			if want := []string{sshd.Authorized(keys[0]), sshd.Authorized(keys[1])}; err != nil || !slices.Equal(got, want) {
				t.Errorf("scanned %q (%v), want %q", got, err, want)
			}
		})
	}
}

// What the library lacks never comes by waiting: the scan ends at once, with both lists.
func TestScanWithoutACommonAlgorithmEnds(t *testing.T) {
	t.Parallel()
	list := func(names ...string) []string { return names }
	for name, c := range map[string]struct{ kex, mac, words []string }{
		"key exchange": {kex: list("diffie-hellman-group18-sha512"), mac: list("hmac-sha2-256"), words: list("the machine offers diffie-hellman-group18-sha512", ssh.InsecureKeyExchangeDH1SHA1)},
		"MAC":          {kex: list("curve25519-sha256"), mac: list("hmac-md5"), words: list("the machine offers hmac-md5", ssh.InsecureHMACSHA196)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ciphers, none := list("aes128-ctr"), list("none")
			message := ssh.Marshal(struct {
				Cookie                           [16]byte `sshtype:"20"`
				Kex, Keys, ToS, ToC, MToS, MToC  []string
				Compression, Compression2, L, L2 []string
				Follows                          bool
				Reserved                         uint32
			}{Kex: c.kex, Keys: list("ssh-ed25519"), ToS: ciphers, ToC: ciphers, MToS: c.mac, MToC: c.mac, Compression: none, Compression2: none})
			padding := 8 - (5+len(message))%8 + 8
			packet := binary.BigEndian.AppendUint32(nil, uint32(1+len(message)+padding)) //nolint:gosec // small
			packet = append(append(append(packet, byte(padding)), message...), make([]byte, padding)...)
			l := sshd.Listen(t, 0)
			var all sync.WaitGroup
			all.Go(func() {
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					all.Go(func() {
						_, _ = conn.Write(append([]byte("SSH-2.0-appliance\r\n"), packet...))
						_, _ = conn.Read(make([]byte, 1<<16)) // the client's version
						_, _ = conn.Read(make([]byte, 1<<16)) // and its lists
						_ = conn.Close()
					})
				}
			})
			t.Cleanup(func() { _ = l.Close(); all.Wait() })
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			_, err := NewScanner().Keys(ctx, l.Addr().String())
			if !errors.Is(err, ErrKeyScan) || ctx.Err() != nil {
				t.Fatalf("ended with %v", err)
			}
			for _, word := range append(c.words, name) {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v, want %q", err, word)
				}
			}
		})
	}
}

// startups is a listener that turns away whoever comes before the last one is forgotten, as sshd
// does with MaxStartups 1.
type startups struct {
	net.Listener
	mu     sync.Mutex
	before time.Time
}

// startupsLinger is how long a connection that has ended still counts.
const startupsLinger = 300 * time.Millisecond

// Accept implements net.Listener.
func (s *startups) Accept() (net.Conn, error) {
	for {
		conn, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		room := time.Now().After(s.before)
		if room {
			s.before = time.Now().Add(startupsLinger)
		}
		s.mu.Unlock()
		if room {
			return conn, nil
		}
		_, _ = conn.Write([]byte("Exceeded MaxStartups\r\n"))
		_ = conn.Close()
	}
}

// A server that takes one connection at a time shows all its keys.
func TestScanOfMaxStartups1(t *testing.T) {
	t.Parallel()
	keys := []ssh.Signer{sshd.Key(t, "ed25519"), sshd.Key(t, "ecdsa"), sshd.Key(t, "rsa")}
	l := &startups{Listener: sshd.Listen(t, 0)}
	sshd.Serve(t, l, keys...)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got, err := NewScanner().Keys(ctx, l.Addr().String())
	if want := []string{sshd.Authorized(keys[0]), sshd.Authorized(keys[1]), sshd.Authorized(keys[2])}; err != nil || !slices.Equal(got, want) {
		t.Errorf("scanned %d keys (%v), want %d", len(got), err, len(want))
	}
}
