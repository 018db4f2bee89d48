package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"poolkeeper/configs/clock"
	"poolkeeper/providers"
	"poolkeeper/zkmodel"
)

const (
	scansAtOnce = 100
	scanFirst   = 200 * time.Millisecond // how long the first connection may be silent; later ones may longer
	scanLongest = 10 * time.Second       // how long any may be silent, and take in all, at most
	scanPause   = 100 * time.Millisecond // between two that failed, at most
	scanSoonest = 10 * time.Millisecond  // and at least; between them, a sixteenth of how long it has taken
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
	err := persist(ctx, addr, func(patience time.Duration) (err error) {
		keys, err = allKeys(ctx, patience, addr)
		return err
	})
	return keys, err
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

// persist repeats try until it succeeds, fails with errNoAlgorithm, or ctx ends. It tells try how long one
// connection may be silent, which is more each time: a forwarded port swallows a
// connection that came too early, so the first ones are given up soon.
func persist(ctx context.Context, addr string, try func(patience time.Duration) error) error {
	patience, began := scanFirst, clock.Now(ctx)
	for {
		tried := clock.Now(ctx)
		err := try(patience)
		if err == nil {
			return nil
		}
		if errors.Is(err, errNoAlgorithm) { // the boot does not change that
			return fmt.Errorf("scan %s: %w: %w", addr, ErrKeyScan, err)
		}
		if clock.Since(ctx, tried) >= patience { // which one that was refused did not need
			patience = min(patience*5/4, scanLongest)
		}
		pause := min(max(clock.Since(ctx, began)/16, scanSoonest), scanPause)
		if errors.Is(err, errFlood) {
			pause = min(max(clock.Since(ctx, began)/4, floodPause), scanLongest) // each try costs more than one that nobody answers
		}
		if ctx.Err() != nil || clock.Sleep(ctx, pause) != nil {
			return fmt.Errorf("scan %s: %w: %w (%w)", addr, ErrKeyScan, context.Cause(ctx), err)
		}
	}
}
