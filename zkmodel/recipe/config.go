package recipe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"poolkeeper/configs/clock"
)

// DefaultTimeout is the session time-out asked for when Config names none, as Nodepool does.
const DefaultTimeout = 10 * time.Second

// Config says where ZooKeeper is and how to speak with it.
type Config struct {
	// Servers are "host:port" entries; IPv6 literals stand in brackets. At least one.
	Servers []string
	// Chroot is the node that all paths start from, "" or "/" for the whole tree.
	// It is created when it is missing, unless ChrootExists.
	Chroot string
	// ChrootExists makes a missing chroot ErrBadConfig: for those who look at a
	// tree that others keep, and would take an empty one for the truth.
	ChrootExists bool
	// Timeout is the session time-out to ask for; the server may grant another.
	// 0 means DefaultTimeout.
	Timeout time.Duration
	// TLS is nil for plain text.
	TLS *TLS
	// Digest is nil for no authentication, as Nodepool has it.
	Digest *Digest
	// Dial opens the connection to a server, under TLS, as net.Dialer.DialContext does, which
	// nil stands for. Nothing else here opens connections or looks up names, so with a Dial
	// of its own a Client needs no network: a simulation hands out pipes.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Clock is what sessions go by, and what their contexts carry; the zero value is the host's.
	Clock clock.Clock
	// Rand is what the order of servers, and pauses between them, are drawn from; nil is the
	// runtime's. It is this Client's alone. What must not be guessed is never drawn from it.
	Rand rand.Source
	// MaxPacket is the longest packet, in either direction, for who knows that none is longer: the
	// library has room for one ready in each direction of each connection. 0 is what a server takes
	// by default, and no bound for what it sends.
	MaxPacket int
	// Logger receives what happens to sessions and connections; nil discards it.
	Logger hclog.Logger

	log      *atomic.Pointer[Log]      // of the Client; see SetLog
	observer *atomic.Pointer[Observer] // of the Client; see SetObserver
	refused  *Throttle                 // of warnings about refused operations, of the Client
}

// TLS names the PEM files of a connection. They are read again at every
// connection, so that renewed certificates are taken up without a restart.
type TLS struct {
	CertFile, KeyFile, CAFile string
	// VerifyHostname also demands that the server's certificate bears its host
	// name. Certificates made by Nodepool's tools do not, so it is off by default;
	// the chain to CAFile is verified always.
	VerifyHostname bool
}

// Digest is a user and password for ZooKeeper's digest authentication.
type Digest struct {
	User, Password string
	// Private creates nodes with an access control list for this user alone,
	// instead of the open one that Nodepool and Zuul expect.
	Private bool
}

// prepare validates cfg and fills in defaults.
func (cfg Config) prepare() (Config, error) {
	servers, err := parseServers(cfg.Servers)
	if err != nil {
		return cfg, err
	}
	cfg.Servers = servers
	cfg.Chroot = strings.TrimRight(cfg.Chroot, "/")
	if cfg.Chroot != "" {
		if err := checkPath(cfg.Chroot); err != nil {
			return cfg, fmt.Errorf("check chroot: %w: %w", ErrBadConfig, err)
		}
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Timeout < 0 || cfg.Timeout.Milliseconds() > 1<<31-1 {
		return cfg, fmt.Errorf("check time-out %s: %w", cfg.Timeout, ErrBadConfig)
	}
	if cfg.Digest != nil && (cfg.Digest.User == "" || strings.Contains(cfg.Digest.User, ":")) {
		return cfg, fmt.Errorf("check digest user %q: %w: must be set and hold no colon", cfg.Digest.User, ErrBadConfig)
	}
	if cfg.TLS != nil {
		if _, err := cfg.TLS.load(""); err != nil {
			return cfg, fmt.Errorf("%w: %w", ErrBadConfig, err)
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = new(net.Dialer).DialContext
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	return cfg, nil
}

// parseServers checks every "host:port" of list.
func parseServers(list []string) ([]string, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("check servers: %w: the list is empty", ErrBadConfig)
	}
	for _, server := range list {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			return nil, fmt.Errorf("check server %q: %w: %w", server, ErrBadConfig, err)
		}
		if n, err := strconv.Atoi(port); err != nil || host == "" || n < 1 || n > 65535 {
			return nil, fmt.Errorf("check server %q: %w: want host:port", server, ErrBadConfig)
		}
	}
	return append([]string(nil), list...), nil
}

// load reads the files and returns the configuration for a connection to host.
func (t *TLS) load(host string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("load key pair %s, %s: %w", t.CertFile, t.KeyFile, err)
	}
	pem, err := os.ReadFile(t.CAFile)
	if err != nil {
		return nil, fmt.Errorf("load CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("load CA %s: no certificate in it", t.CAFile)
	}
	conf := &tls.Config{
		Certificates: []tls.Certificate{cert},
		RootCAs:      roots,
		ServerName:   host,
		MinVersion:   tls.VersionTLS12,
	}
	if !t.VerifyHostname {
		// The standard check is chain and host name or nothing, so the chain is verified here.
		conf.InsecureSkipVerify = true
		conf.VerifyConnection = func(state tls.ConnectionState) error { return verifyChain(state, roots) }
	}
	return conf, nil
}

// verifyChain checks that the peer's certificate leads to one of roots.
func verifyChain(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("no certificate from the server")
	}
	opts := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
	for _, cert := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(opts)
	return err
}
