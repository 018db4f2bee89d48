package node

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"poolkeeper/configs"
	"poolkeeper/configs/clock"
	"poolkeeper/zkmodel"
)

// Alive checks that a machine that exists already can be reached and shows the keys that
// it is known by, and returns its keys. Without host-key-checking it believes the
// configuration.
//
// Errors: ErrKeyScan when it shows other keys, or none.
func (sc *Scanner) Alive(ctx context.Context, n configs.StaticNode) ([]string, error) {
	if !n.HostKeyChecking {
		return n.HostKeys, nil
	}
	if n.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = clock.WithTimeoutCause(ctx, n.Timeout, fmt.Errorf("timeout of %s is over", n.Timeout))
		defer cancel()
	}
	addr := net.JoinHostPort(n.Name, strconv.Itoa(n.ConnectionPort))
	if n.ConnectionType != "ssh" && n.ConnectionType != "network_cli" {
		return nil, sc.Reach(ctx, addr)
	}
	keys, err := sc.Keys(ctx, addr)
	if err != nil {
		return nil, err
	}
	for _, known := range n.HostKeys {
		if !slices.Contains(keys, known) {
			return nil, fmt.Errorf("%w: %s does not show the key %s", ErrKeyScan, addr, known)
		}
	}
	if len(n.HostKeys) > 0 {
		return n.HostKeys, nil
	}
	return keys, nil
}

// SameKeys checks that a machine still has the keys that its record promises: one that
// was installed anew has others, and with the old ones nobody can log in.
//
// Errors: ErrKeyScan.
func SameKeys(n *zkmodel.Node, shown []string) error {
	for _, key := range n.HostKeys {
		if !slices.Contains(shown, key) {
			return fmt.Errorf("%w: %s has other keys than when it was registered", ErrKeyScan, n.Hostname)
		}
	}
	return nil
}

// resolveTime is how long a machine's name may take to resolve.
const resolveTime = 5 * time.Second

// Address is the address of a machine as jobs are told it: the first that its
// name resolves to, of whichever family. One that does not resolve has none.
func (*Scanner) Address(ctx context.Context, name string) (v4, v6 string) {
	ctx, cancel := clock.WithTimeout(ctx, resolveTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
	if err != nil || len(found) == 0 {
		return "", ""
	}
	if first := found[0].Unmap(); first.Is4() {
		return first.String(), ""
	}
	return "", found[0].String()
}
