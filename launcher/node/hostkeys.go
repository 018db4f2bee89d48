package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	scansAtOnce = 100
	scanFirst   = 200 * time.Millisecond // how long the first connection may be silent; later ones may longer
	scanLongest = 10 * time.Second       // how long any may be silent, and take in all, at most
	scanPause   = 100 * time.Millisecond // between two that failed, at most
	floodPause  = 2 * time.Second        // or that, at least, where the other side said too much
)

// HostKeys are the SSH host keys of a node, "type base64", as its provider knows
// them or as the machine shows them; none where they are not to be checked. limit is
// for how long the machine may boot; 0 is for any time. A node on a backing node has those that
// the backing node had; where they are to be checked, it has to show one of them.
func (sc *Scanner) HostKeys(ctx context.Context, n *zkmodel.Node, i providers.Instance, check bool, limit time.Duration) ([]string, error) {
	if on := i.Slot; on != nil && len(on.Keys) > 0 {
		i.Slot = nil
		shown, err := sc.HostKeys(ctx, n, i, check, limit)
		if err == nil && len(shown) > 0 && !slices.ContainsFunc(shown, func(key string) bool { return slices.Contains(on.Keys, key) }) {
			err = fmt.Errorf("%w: its backing node %s had other host keys when it was launched", ErrKeyScan, on.Backing)
		}
		return on.Keys, err
	}
	if !check || i.SkipHostScan || len(i.HostKeys) > 0 {
		return i.HostKeys, nil
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeoutCause(ctx, limit, fmt.Errorf("boot-timeout of %s is over", limit))
		defer cancel()
	}
	port, _ := n.ConnectionPort.Int()
	addr := net.JoinHostPort(i.InterfaceIP, strconv.Itoa(port))
	switch n.ConnectionType {
	case "ssh", "network_cli":
		return sc.Keys(ctx, addr)
	}
	return nil, sc.Reach(ctx, addr)
}

// Scanner reads host keys of machines that have just booted.
type Scanner struct {
	slots chan struct{}
}

// NewScanner makes one; all scans of a process share it.
func NewScanner() *Scanner { return &Scanner{slots: make(chan struct{}, scansAtOnce)} }

// enter waits until there is room for one more scan.
func (sc *Scanner) enter(ctx context.Context, addr string) error {
	select {
	case sc.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("scan %s: %w: %w", addr, ErrKeyScan, context.Cause(ctx))
	}
}

func (sc *Scanner) leave() { <-sc.slots }

// Keys waits until the machine speaks SSH, and then asks for the key of every
// type. A server that has just opened its port may not have all keys yet, which
// is why a whole handshake comes first.
func (sc *Scanner) Keys(ctx context.Context, addr string) ([]string, error) {
	if err := sc.enter(ctx, addr); err != nil {
		return nil, err
	}
	defer sc.leave()
	var keys []string
	err := persist(ctx, addr, func(patience time.Duration) error {
		first, err := handshake(ctx, patience, addr, slices.Concat(keyTypes()...))
		if err == nil {
			keys, err = everyKey(ctx, patience, addr, first)
		}
		return err
	})
	return keys, err
}

// everyKey asks for the key of every type but that of the first, which is known. A type that the
// server offers and then fails at, twice, is one that it does not have: dropbear without an RSA key
// offers RSA all the same, and hangs up on a client that wants it.
func everyKey(ctx context.Context, patience time.Duration, addr, first string) ([]string, error) {
	var keys, offered []string // the latter is not known until the server has refused a type
	var failed error
	for _, algorithms := range keyTypes() {
		if name, _, _ := strings.Cut(first, " "); slices.Contains(algorithms, name) {
			keys = append(keys, first)
			continue
		}
		if offered != nil && !slices.ContainsFunc(algorithms, func(a string) bool { return slices.Contains(offered, a) }) {
			continue // each connection costs a small machine much
		}
		key, err := handshake(ctx, patience, addr, algorithms)
		if refused, is := errors.AsType[*ssh.AlgorithmNegotiationError](err); is {
			offered = refused.RequestedAlgorithms // of us, by the server
			continue
		}
		if err != nil {
			key, err = handshake(ctx, patience, addr, algorithms)
		}
		if err != nil {
			failed = err
			continue
		}
		keys = append(keys, key)
	}
	if failed != nil && (len(keys) == 0 || ctx.Err() != nil) {
		return nil, failed
	}
	return keys, nil
}

// Reach waits until the machine accepts a connection.
func (sc *Scanner) Reach(ctx context.Context, addr string) error {
	if err := sc.enter(ctx, addr); err != nil {
		return err
	}
	defer sc.leave()
	return persist(ctx, addr, func(patience time.Duration) error {
		ctx, cancel := clock.WithTimeout(ctx, patience)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// persist repeats try until it succeeds or ctx ends. It tells try how long one
// connection may be silent, which is more each time: a forwarded port swallows a
// connection that came too early, so the first ones are given up soon.
func persist(ctx context.Context, addr string, try func(patience time.Duration) error) error {
	patience := scanFirst
	for {
		err := try(patience)
		if err == nil {
			return nil
		}
		pause := min(patience/8, scanPause)
		if errors.Is(err, errFlood) {
			pause = max(floodPause, patience) // each try costs more than one that nobody answers
		}
		if ctx.Err() != nil || clock.Sleep(ctx, pause) != nil {
			return fmt.Errorf("scan %s: %w: %w (%w)", addr, ErrKeyScan, context.Cause(ctx), err)
		}
		patience = min(patience*5/4, scanLongest)
	}
}

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

// errGotKey ends a handshake that has shown its key.
var errGotKey = errors.New("key seen")

// handshake connects and returns the host key that the server proves to have. A server
// that is silent for patience is given up; one that has said something has more time.
// No user name or credential is ever sent: the connection ends before.
func handshake(ctx context.Context, patience time.Duration, addr string, algorithms []string) (string, error) {
	ctx, cancel := clock.WithTimeout(ctx, scanLongest)
	defer cancel()
	silent, heard := clock.WithTimeout(ctx, patience)
	defer heard()
	conn, err := new(net.Dialer).DialContext(silent, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	end := func() { _ = conn.Close() }
	defer context.AfterFunc(ctx, end)()
	wait := context.AfterFunc(silent, end)
	defer wait()
	return shownKey(&greeted{Conn: conn, heard: func() { wait() }}, addr, algorithms)
}

// greeted is a connection that calls heard when something is read.
type greeted struct {
	net.Conn
	heard func()
}

// Read implements net.Conn.
func (c *greeted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard()
	}
	return n, err
}

// shownKey returns the host key that the server at the other end proves to have.
func shownKey(conn net.Conn, addr string, algorithms []string) (string, error) {
	var key string
	_, _, _, err := ssh.NewClientConn(&frugal{Conn: conn, left: scanBytes}, addr, &ssh.ClientConfig{
		HostKeyAlgorithms: algorithms,
		HostKeyCallback: func(_ string, _ net.Addr, k ssh.PublicKey) error {
			key = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k)))
			return errGotKey
		},
	})
	if key != "" {
		return key, nil
	}
	return "", err
}
