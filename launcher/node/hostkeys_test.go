package node

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"poolkeeper/providers"
	"poolkeeper/test/sshd"
	"poolkeeper/zkmodel"
)

func TestScanFindsEveryKey(t *testing.T) {
	keys := []ssh.Signer{sshd.Key(t, "ed25519"), sshd.Key(t, "ecdsa"), sshd.Key(t, "rsa")}
	l := sshd.Listen(t, 0)
	sshd.Serve(t, l, keys...)
	got, err := NewScanner().Keys(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, k := range keys {
		want = append(want, sshd.Authorized(k))
	}
	if !slices.Equal(got, want) {
		t.Errorf("scanned %q, want %q", got, want)
	}
	if !strings.HasPrefix(want[2], "ssh-rsa AAAA") {
		t.Errorf("the type of an RSA key is ssh-rsa, not %.20s", want[2])
	}
}

// brokenSigner is a key that a server offers and does not have.
type brokenSigner struct{ ssh.Signer }

func (brokenSigner) Sign(io.Reader, []byte) (*ssh.Signature, error) {
	return nil, errors.New("no such key")
}

// Dropbear offers RSA without an RSA key, and hangs up on whoever asks for it.
func TestScanPassesOverAKeyThatFails(t *testing.T) {
	key := sshd.Key(t, "ed25519")
	l := sshd.Listen(t, 0)
	sshd.Serve(t, l, key, brokenSigner{sshd.Key(t, "rsa")})
	got, err := NewScanner().Keys(t.Context(), l.Addr().String())
	if err != nil || !slices.Equal(got, []string{sshd.Authorized(key)}) {
		t.Errorf("scanned %q (%v), want the key that works", got, err)
	}
}

// Mistake: what a server says it has is taken from the wrong place, or from half a message.
func TestGreeting(t *testing.T) {
	t.Parallel()
	message := ssh.Marshal(struct {
		Cookie       [16]byte `sshtype:"20"`
		KeyExchanges []string
		HostKeys     []string
		Rest         []byte `ssh:"rest"`
	}{KeyExchanges: []string{"curve25519-sha256"}, HostKeys: []string{"ssh-ed25519", "ssh-rsa"}, Rest: make([]byte, 45)})
	const padding = 4
	packet := binary.BigEndian.AppendUint32(nil, uint32(1+len(message)+padding)) //nolint:gosec // small
	packet = append(append(append(packet, padding), message...), make([]byte, padding)...)
	const dropbear = "SSH-2.0-dropbear_2022.83"
	for said, want := range map[string][]string{
		dropbear + "\r\n" + string(packet):                           {"ssh-ed25519", "ssh-rsa"},
		"hello\r\nSSH is below\n" + dropbear + "\n" + string(packet): {"ssh-ed25519", "ssh-rsa"},
		dropbear + "\r\n" + string(packet[:len(packet)-padding-1]):   nil,
		dropbear + "\r\n\x00\x00\x00\x01\xff" + string(packet):       nil,
		dropbear + "\r\n\xff\xff\xff\xff\x04" + string(packet):       nil,
		dropbear + "\r\n": nil,
		dropbear:          nil,
	} {
		version, offered := greeting([]byte(said))
		if version != dropbear || !slices.Equal(offered, want) {
			t.Errorf("%q: version %q, offered %q; want %q", said, version, offered, want)
		}
	}
	if version, offered := greeting([]byte("hello\n" + string(packet))); version != "" || offered != nil {
		t.Errorf("what is no SSH server: version %q, offered %q", version, offered)
	}
}

// counted is a listener that counts who comes.
type counted struct {
	net.Listener
	n atomic.Int32
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.n.Add(1)
	}
	return conn, err
}

// Mistake: a small machine is asked for a key that it has shown already, and for types that it said it does not have.
func TestScanAsksForNothingInVain(t *testing.T) {
	t.Parallel()
	keys := []ssh.Signer{sshd.Key(t, "ed25519"), sshd.Key(t, "rsa")}
	l := &counted{Listener: sshd.Listen(t, 0)}
	sshd.Serve(t, l, keys...)
	got, err := NewScanner().Keys(t.Context(), l.Addr().String())
	if err != nil || len(got) != len(keys) {
		t.Errorf("scanned %q (%v)", got, err)
	}
	if n := int(l.n.Load()); n != len(keys) && err == nil {
		t.Errorf("%d connections were made, %d would do", n, len(keys))
	}
}

// A machine that is still booting accepts connections without a word, and then
// speaks.
func TestScanWaitsForTheMachine(t *testing.T) {
	l := sshd.Listen(t, 0)
	key := sshd.Key(t, "ed25519")
	booted := make(chan struct{})
	go func() {
		defer close(booted)
		for range 3 {
			if conn, err := l.Accept(); err == nil {
				_ = conn.Close()
			}
		}
	}()
	type result struct {
		keys []string
		err  error
	}
	scanned := make(chan result, 1)
	go func() {
		keys, err := NewScanner().Keys(t.Context(), l.Addr().String())
		scanned <- result{keys, err}
	}()
	<-booted
	sshd.Serve(t, l, key)
	if got := <-scanned; got.err != nil || !slices.Equal(got.keys, []string{sshd.Authorized(key)}) {
		t.Errorf("scanned %q (%v)", got.keys, got.err)
	}
}

func TestScanOfAMuteMachineEnds(t *testing.T) {
	l := sshd.Listen(t, 0) // accepts, and never says anything
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := NewScanner().Keys(ctx, l.Addr().String())
	if !errors.Is(err, ErrKeyScan) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 2*time.Second {
		t.Errorf("ended with %v after %s", err, time.Since(start))
	}
}

// Mistake: a machine that has said who it is, and is slow with the rest, is given up as one that says nothing: all it has
// calculated so far was for nothing, and it is asked anew.
func TestASlowMachineIsNotASilentOne(t *testing.T) {
	t.Parallel()
	key := sshd.Key(t, "ed25519")
	server, front := sshd.Listen(t, 0), sshd.Listen(t, 0)
	sshd.Serve(t, server, key)
	t.Cleanup(func() { _ = front.Close() })
	go func() {
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			go slowly(t.Context(), client, server.Addr().String(), 3*time.Second)
		}
	}()
	got, err := handshake(t.Context(), 2*time.Second, front.Addr().String(), ssh.Config{}, []string{ssh.KeyAlgoED25519})
	if err != nil || got.key != sshd.Authorized(key) {
		t.Errorf("shown is %q (%v), want %q", got.key, err, sshd.Authorized(key))
	}
}

// slowly passes a connection on to a server; between its first words and the rest of its answers it pauses.
func slowly(ctx context.Context, client net.Conn, server string, pause time.Duration) {
	defer client.Close() //nolint:errcheck // the other side tells
	far, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // the same
	go func() {
		_, _ = io.Copy(far, client)
		_ = far.Close() // the client has gone
	}()
	hello := make([]byte, 1024)
	n, err := far.Read(hello)
	if err == nil {
		_, err = client.Write(hello[:n])
	}
	if err == nil {
		<-time.After(pause)
		_, _ = io.Copy(client, far)
	}
}

// What is scanned depends on configuration, connection and provider.
func TestHostKeys(t *testing.T) {
	key := sshd.Key(t, "ed25519")
	l := sshd.Listen(t, 0)
	sshd.Serve(t, l, key)
	port := l.Addr().(*net.TCPAddr).Port
	for name, tc := range map[string]struct {
		check      bool
		connection string
		instance   providers.Instance
		want       []string
	}{
		"scanned":     {check: true, connection: "ssh", want: []string{sshd.Authorized(key)}},
		"by ansible":  {check: true, connection: "network_cli", want: []string{sshd.Authorized(key)}},
		"not checked": {connection: "ssh"},
		"not SSH":     {check: true, connection: "winrm"},
		"the provider knows": {
			check: true, connection: "ssh", instance: providers.Instance{HostKeys: []string{"ssh-rsa X"}},
			want: []string{"ssh-rsa X"},
		},
		"nothing to scan": {check: true, connection: "ssh", instance: providers.Instance{SkipHostScan: true}},
	} {
		t.Run(name, func(t *testing.T) {
			n := &zkmodel.Node{ConnectionType: tc.connection, ConnectionPort: zkmodel.IntValue(port)}
			tc.instance.InterfaceIP = "127.0.0.1"
			got, err := NewScanner().HostKeys(t.Context(), n, tc.instance, tc.check, time.Minute)
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("keys %q (%v), want %q", got, err, tc.want)
			}
		})
	}
}
