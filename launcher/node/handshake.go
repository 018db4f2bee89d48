package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
)

// suite is what a scan offers to a machine.
type suite struct {
	ssh.Config

	keyTypes [][]string // host key algorithms, a group for each type of key, the most wanted first
}

// modern offers what the library has without known weaknesses, and RSA keys with SHA-1 signatures.
func modern() suite {
	all := ssh.SupportedAlgorithms()
	return suite{
		Config: ssh.Config{KeyExchanges: all.KeyExchanges, Ciphers: all.Ciphers, MACs: all.MACs},
		keyTypes: [][]string{
			{ssh.KeyAlgoED25519},
			{ssh.KeyAlgoECDSA256},
			{ssh.KeyAlgoECDSA384},
			{ssh.KeyAlgoECDSA521},
			{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA},
		},
	}
}

// insecure also offers all else that the library has. A scan sends no secret and reads only keys that
// are public; old network appliances have nothing better.
func insecure() suite {
	s, all := modern(), ssh.InsecureAlgorithms()
	s.KeyExchanges = append(s.KeyExchanges, all.KeyExchanges...)
	s.Ciphers = append(s.Ciphers, all.Ciphers...)
	s.MACs = append(s.MACs, all.MACs...)
	s.keyTypes = append(s.keyTypes, []string{ssh.InsecureKeyAlgoDSA}) //nolint:staticcheck // some appliances have no other key, and a scan trusts none
	return s
}

// allKeys asks for the key of every type that a server offers. A server that has no algorithm in common
// with the modern ones is asked with the insecure ones.
//
// Errors: errNoAlgorithm, which does not change while the machine boots.
func allKeys(ctx context.Context, patience time.Duration, addr string) ([]string, error) {
	with := modern()
	first, err := handshake(ctx, patience, addr, with.Config, slices.Concat(with.keyTypes...))
	if _, none := errors.AsType[*ssh.AlgorithmNegotiationError](err); none {
		with = insecure()
		first, err = with.ask(ctx, patience, addr, slices.Concat(with.keyTypes...))
	}
	if none, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok && none.What != whatHostKey {
		return nil, fmt.Errorf("%w for %s: the machine offers %s; the scan offers %s", errNoAlgorithm, none.What,
			providers.Words(strings.Join(none.RequestedAlgorithms, ",")), strings.Join(none.SupportedAlgorithms, ","))
	}
	if err != nil {
		return nil, err
	}
	return with.everyKey(ctx, patience, addr, first)
}

// everyKey asks for the key of every type that a server offers, but for the first, which is known.
// Each connection costs a small machine much, and one that asks for what it does not have is an
// error in its log.
func (s suite) everyKey(ctx context.Context, patience time.Duration, addr string, first shown) ([]string, error) {
	var keys []string
	var failed error
	for _, algorithms := range s.keyTypes {
		if name, _, _ := strings.Cut(first.key, " "); slices.Contains(algorithms, name) {
			keys = append(keys, first.key)
			continue
		}
		if !slices.ContainsFunc(algorithms, first.offers) {
			continue
		}
		found, err := s.ask(ctx, patience, addr, algorithms)
		if err == nil {
			keys = append(keys, found.key)
		} else if !found.lacks(err) {
			failed = err
		}
	}
	switch {
	case failed != nil && (len(keys) == 0 || ctx.Err() != nil):
		return nil, failed
	case len(keys) == 0:
		return nil, errNoKey
	}
	return keys, nil
}

// ask is handshake, repeated once if it fails, and for up to scanLongest if the server turns us away: with
// MaxStartups 1, sshd refuses a connection until it has noticed the end of the one before.
func (s suite) ask(ctx context.Context, patience time.Duration, addr string, algorithms []string) (shown, error) {
	began := clock.Now(ctx)
	for tries := 1; ; tries++ {
		found, err := handshake(ctx, patience, addr, s.Config, algorithms)
		again := tries == 1 || found.version == "" && clock.Since(ctx, began) < scanLongest
		if err == nil || found.lacks(err) || !again || clock.Sleep(ctx, scanPause) != nil {
			return found, err
		}
	}
}

var (
	errGotKey = errors.New("key seen") // ends a handshake that has shown its key
	errNoKey  = errors.New("it shows no key of a type that we know")
	// errNoAlgorithm: the machine and the library have nothing in common.
	errNoAlgorithm = errors.New("no common algorithm")
)

// whatHostKey is the library's word for the algorithm of host keys.
const whatHostKey = "host key"

// shown is what a handshake tells of a server.
type shown struct {
	key     string   // that it proves to have, "type base64"; "" if the handshake failed
	offered []string // the algorithms of all that it says it has; none if that is not known
	version string   // of its software, as "SSH-2.0-OpenSSH_9.2"
}

// offers reports whether the server may have a key for an algorithm.
func (s shown) offers(algorithm string) bool {
	return len(s.offered) == 0 || slices.Contains(s.offered, algorithm)
}

// lacks reports whether a handshake failed as the server has no key of the type: it says so; or it is
// a dropbear, which offers RSA without an RSA key, and hangs up on a client that wants it. All others are
// asked a second time.
func (s shown) lacks(err error) bool {
	none, refused := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	return refused && none.What == whatHostKey || errors.Is(err, io.EOF) && strings.HasPrefix(s.version, "SSH-2.0-dropbear") && len(s.offered) > 0
}

// handshake connects and returns the host key that the server proves to have. A server
// that is silent for patience is given up; one that has said something has more time.
// No user name or credential is ever sent: the connection ends before.
func handshake(ctx context.Context, patience time.Duration, addr string, with ssh.Config, algorithms []string) (shown, error) {
	ctx, cancel := clock.WithTimeout(ctx, scanLongest)
	defer cancel()
	silent, heard := clock.WithTimeout(ctx, patience)
	defer heard()
	conn, err := new(net.Dialer).DialContext(silent, "tcp", addr)
	if err != nil {
		return shown{}, err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	end := func() { _ = conn.Close() }
	defer context.AfterFunc(ctx, end)()
	wait := context.AfterFunc(silent, end)
	defer wait()
	return shownKey(conn, func() { wait() }, addr, with, algorithms)
}

// shownKey returns the host key that the server at the other end proves to have. heard is called
// when the server says something.
func shownKey(conn net.Conn, heard func(), addr string, with ssh.Config, algorithms []string) (shown, error) {
	var s shown
	l := &listener{Conn: &frugal{Conn: conn, left: scanBytes}, heard: heard}
	_, _, _, err := ssh.NewClientConn(l, addr, &ssh.ClientConfig{
		Config:            with,
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			s.key = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
			return errGotKey
		},
	})
	s.version, s.offered = greeting(l.begun())
	if s.key != "" {
		return s, nil
	}
	return s, err
}

// listener is a connection that calls heard when something is read, and keeps the beginning of it.
type listener struct {
	net.Conn
	heard func()

	mu   sync.Mutex // the library may still read when a handshake is over
	said []byte
}

// keptBytes are enough for the names of a server's algorithms, which take one or two thousand.
const keptBytes = 16 << 10

// Read implements net.Conn.
func (l *listener) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	if n > 0 {
		l.heard()
		l.mu.Lock()
		l.said = append(l.said, p[:min(n, keptBytes-len(l.said))]...)
		l.mu.Unlock()
	}
	return n, err
}

// begun is the beginning of what was read.
func (l *listener) begun() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.said)
}

// greeting finds a server's version and the algorithms of its host keys in the beginning of what it says, which is
// not encrypted yet: lines of which the last is the version (RFC 4253, section 4.2), and a packet
// (section 6) with the message KEXINIT (section 7.1). What it does not find is empty.
func greeting(said []byte) (version string, offered []string) {
	for more := true; more && version == ""; {
		var line []byte
		if line, said, more = bytes.Cut(said, []byte("\n")); bytes.HasPrefix(line, []byte("SSH-")) {
			version = string(bytes.TrimRight(line, "\r"))
		}
	}
	const header = 5 // the length of the rest, and of the padding at its end
	if len(said) < header {
		return version, nil
	}
	size, padding := uint64(binary.BigEndian.Uint32(said)), uint64(said[4])
	if uint64(len(said)) < 4+size || size < 1+padding {
		return version, nil
	}
	var message struct {
		Cookie       [16]byte `sshtype:"20"`
		KeyExchanges []string
		HostKeys     []string
		Rest         []byte `ssh:"rest"`
	}
	if ssh.Unmarshal(said[header:4+size-padding], &message) != nil {
		return version, nil
	}
	return version, message.HostKeys
}
