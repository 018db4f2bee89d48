package node

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs/clock"
)

// keyTypes are the host key algorithms to ask for, one group for each type of
// key, the most wanted first.
func keyTypes() [][]string {
	return [][]string{
		{ssh.KeyAlgoED25519},
		{ssh.KeyAlgoECDSA256},
		{ssh.KeyAlgoECDSA384},
		{ssh.KeyAlgoECDSA521},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA},
	}
}

// everyKey asks for the key of every type that a server offers, but for the first, which is known.
// Each connection costs a small machine much, and one that asks for what it does not have is an
// error in its log.
func everyKey(ctx context.Context, patience time.Duration, addr string, first shown) ([]string, error) {
	var keys []string
	var failed error
	for _, algorithms := range keyTypes() {
		if name, _, _ := strings.Cut(first.key, " "); slices.Contains(algorithms, name) {
			keys = append(keys, first.key)
			continue
		}
		if !slices.ContainsFunc(algorithms, first.offers) {
			continue
		}
		found, err := handshake(ctx, patience, addr, algorithms)
		switch {
		case err == nil:
		case found.lacks(err):
			continue
		default:
			found, err = handshake(ctx, patience, addr, algorithms)
		}
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

var (
	errGotKey = errors.New("key seen") // ends a handshake that has shown its key
	errNoKey  = errors.New("it shows no key of a type that we know")
)

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
	_, refused := errors.AsType[*ssh.AlgorithmNegotiationError](err)
	return refused || errors.Is(err, io.EOF) && strings.HasPrefix(s.version, "SSH-2.0-dropbear") && len(s.offered) > 0
}

// handshake connects and returns the host key that the server proves to have. A server
// that is silent for patience is given up; one that has said something has more time.
// No user name or credential is ever sent: the connection ends before.
func handshake(ctx context.Context, patience time.Duration, addr string, algorithms []string) (shown, error) {
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
	return shownKey(conn, func() { wait() }, addr, algorithms)
}

// shownKey returns the host key that the server at the other end proves to have. heard is called
// when the server says something.
func shownKey(conn net.Conn, heard func(), addr string, algorithms []string) (shown, error) {
	var s shown
	l := &listener{Conn: &frugal{Conn: conn, left: scanBytes}, heard: heard}
	_, _, _, err := ssh.NewClientConn(l, addr, &ssh.ClientConfig{
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
